from __future__ import annotations

import itertools

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError

from hf_paraphrase import CoupledLstmConfig, CoupledLstmForSequenceClassification, CoupledLstmModel
from hf_paraphrase.models.coupled_lstm import grid as coupled_lstm_grid
from hf_paraphrase.models.coupled_lstm.modeling_coupled_lstm import match_features, pool
from hf_paraphrase.models.layers.sentence_pair import PairSide
from tests.models import naive_coupled_lstm as naive
from tests.models.pair_mixin import FIRST, SECOND, SentencePairMixin, two_sequences


def small_config(**overrides) -> CoupledLstmConfig:
    return CoupledLstmConfig(**{"vocab_size": 10, "embedding_size": 3, "hidden_size": 4, "num_blocks": 2} | overrides)


def small_model(**overrides) -> CoupledLstmModel:
    torch.manual_seed(0)
    model = CoupledLstmModel(small_config(**overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def gradients(model, loss) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


class TestCoupledLstm(SentencePairMixin):
    config_class = CoupledLstmConfig
    model_class = CoupledLstmForSequenceClassification
    variants = {
        "tight": {"pooling_size": (2, 2)},
        "loose": {"coupling": "loose"},
        "loose, two LSTMs": {"coupling": "loose", "share_lstms": False},
        "features": {"match_features": True},
        "loose, features": {"coupling": "loose", "match_features": True},
        "one direction": {"num_directions": 1},
        "directions of their own": {"share_directions": False, "num_blocks": 1},
    }

    def small_config(self, **overrides):
        return small_config(**overrides)


CELLS = [
    {"coupling": "tight"},
    {"coupling": "tight", "match_features": True},
    {"coupling": "loose"},
    {"coupling": "loose", "share_lstms": False},
    {"coupling": "loose", "match_features": True},
    {"coupling": "loose", "share_lstms": False, "match_features": True},
]
cells = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell.values())))
OPTIONS = list(itertools.product((1, 4), (True, False), (1, 3)))


@cells
@pytest.mark.parametrize(("num_directions", "share_directions", "num_blocks"), OPTIONS)
def test_values_and_gradients_equal_the_double_loop(cell, num_directions, share_directions, num_blocks):
    model = small_model(
        **cell,
        num_directions=num_directions,
        share_directions=share_directions,
        num_blocks=num_blocks,
        pooling_size=(2, 3),
    )
    outputs = model(**two_sequences(), output_hidden_states=True)
    expected = [naive.coupled_lstm(model, x, y) for x, y in zip(FIRST, SECOND, strict=True)]
    pooled = [naive.pool(grids[-1], 2, 3) for grids in expected]
    for row, grids in enumerate(expected):
        for got, grid in zip(outputs.hidden_states, grids, strict=True):
            n, m, _ = grid.shape
            torch.testing.assert_close(got[row, :n, :m], grid, rtol=0, atol=1e-10)
            assert not got[row, n:].any() and not got[row, :, m:].any()
        torch.testing.assert_close(outputs.pooler_output[row], pooled[row], rtol=0, atol=1e-10)
    weights = torch.randn(outputs.pooler_output.shape, dtype=torch.float64)
    fast = gradients(model, (outputs.pooler_output * weights).sum() + outputs.hidden_states[0].square().sum())
    slow_loss = (torch.stack(pooled) * weights).sum() + sum(grids[0].square().sum() for grids in expected)
    for name, gradient in gradients(model, slow_loss).items():
        torch.testing.assert_close(fast[name], gradient, rtol=0, atol=1e-10)


@cells
@pytest.mark.parametrize("rows", [1, 40])
def test_scanning_in_parts_changes_nothing(cell, rows, monkeypatch):
    model, both = small_model(**cell), []
    for limit in (1280, rows):
        monkeypatch.setattr(coupled_lstm_grid, "ROWS_AT_ONCE", limit)
        pooled = model(**two_sequences()).pooler_output
        both.append(gradients(model, pooled.square().sum()) | {"pooled": pooled})
    for name, expected in both[0].items():
        torch.testing.assert_close(both[1][name], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 6), (6, 1), (2, 7), (7, 2)])
@cells
def test_grids_of_every_shape(cell, sizes):
    model = small_model(**cell)
    x, y = (torch.randint(1, 10, (size,)).tolist() for size in sizes)
    got = model(input_ids=torch.tensor([x]), pair_input_ids=torch.tensor([y]), output_hidden_states=True)
    for fast, slow in zip(got.hidden_states, naive.coupled_lstm(model, x, y), strict=True):
        torch.testing.assert_close(fast[0], slow, rtol=0, atol=1e-10)


@pytest.mark.parametrize("is_x_alone", [True, False])
def test_beside_a_single_word_it_is_an_ordinary_lstm(is_x_alone):
    """With one word on one side, the tight cell is `nn.LSTM` over the other, that word being part of the bias."""
    model = small_model(num_blocks=1, num_directions=1)
    cell, table = model.blocks[0].cells[0], model.embed_tokens.weight
    alone, words = 7, [4, 6, 9, 5]
    lstm = torch.nn.LSTM(3, 4, batch_first=True, dtype=torch.float64)
    single, many = (cell.input_x, cell.input_y) if is_x_alone else (cell.input_y, cell.input_x)
    # nn.LSTM's gates are i, f, g, o; of ours, c̃, o, i, f1, f2, the one that looks along the words is f1 or f2.
    order = torch.tensor([2, 3 if is_x_alone else 4, 0, 1])
    states = slice(0, 4) if is_x_alone else slice(4, 8)

    def gates(weight):
        return weight.unflatten(0, (5, 4))[order].flatten(0, 1)

    with torch.no_grad():
        lstm.weight_ih_l0.copy_(gates(many.weight))
        lstm.weight_hh_l0.copy_(gates(cell.recurrent[0].weight[:, states]))
        lstm.bias_ih_l0.copy_(gates(cell.input_x.bias + single.weight @ table[alone]))
        lstm.bias_hh_l0.zero_()
        expected = lstm(table[words][None])[0][0]
    sides = {"input_ids": torch.tensor([[alone]]), "pair_input_ids": torch.tensor([words])}
    if not is_x_alone:
        sides = dict(zip(sides, [*sides.values()][::-1], strict=True))
    torch.testing.assert_close(model(**sides).last_hidden_state[0].flatten(0, 1), expected, rtol=0, atol=1e-10)


def test_four_directions_see_the_sentences_from_every_corner():
    model = small_model(num_blocks=1)
    x, y = torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8, 9, 4]])
    grid = model(input_ids=x, pair_input_ids=y).last_hidden_state
    for dims in ((1,), (2,), (1, 2)):
        flipped = model(
            input_ids=x.flip(1) if 1 in dims else x, pair_input_ids=y.flip(1) if 2 in dims else y
        ).last_hidden_state
        torch.testing.assert_close(flipped.flip(dims), grid, rtol=0, atol=1e-12)


def test_parameter_counts_of_the_paper():
    """Liu et al. 2016, section 5.3: about 190k parameters without embeddings, the directions sharing theirs."""
    model = CoupledLstmForSequenceClassification(CoupledLstmConfig(vocab_size=10, num_labels=3))
    blocks = [sum(parameter.numel() for parameter in block.parameters()) for block in model.model.blocks]
    assert blocks == [75_250, 37_750, 37_750, 37_750] and sum(blocks) == 188_500
    assert {name.split(".")[0] for name, _ in model.model.named_parameters()} == {"embed_tokens", "blocks"}
    head = sum(parameter.numel() for parameter in model.head.parameters())
    assert model.num_parameters() - model.model.embed_tokens.weight.numel() == 188_500 + head == 191_203
    own = CoupledLstmModel(CoupledLstmConfig(vocab_size=10, share_directions=False))
    assert sum(parameter.numel() for parameter in own.blocks.parameters()) == 4 * 188_500


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 45_403),
        ({"num_directions": 1}, 45_403),
        ({"num_blocks": 4}, 136_003),
        ({"share_lstms": False}, 85_603),
        ({"match_features": True}, 45_403 + 2 * 4 * 50),
        ({"match_features": True, "share_lstms": False}, 85_603 + 2 * (2 * 4 * 50)),
        ({"match_features": True, "num_blocks": 4, "coupling": "tight"}, 191_203 + 2 * 5 * 50),
    ],
)
def test_parameter_counts(options, count):
    """Section 5: nearly a fifth of the attention LSTM's 232,103, only if LSTM1 and LSTM2 have the same weights."""
    config = CoupledLstmConfig(**{"vocab_size": 10, "num_labels": 3, "coupling": "loose", "num_blocks": 1} | options)
    model = CoupledLstmForSequenceClassification(config)
    assert model.num_parameters() - model.get_input_embeddings().weight.numel() == count


def test_features_of_pairs_of_words():
    ids = torch.tensor([[4, 3, 5, 0]]), torch.tensor([[5, 3, 4]])
    sides = [PairSide(side, torch.tensor([side.shape[1]])) for side in ids]
    table = torch.tensor([[0.0, 0.0], [1, 1], [1, 1], [1, 2], [3, 4], [8, -6]])
    expected = {
        (0, 2): [1, 1],  # the same word
        (0, 0): [0, 0],  # at a right angle
        (2, 0): [1, 1],
        (1, 1): [0, 0],  # twice an unknown word, which need not be one word
        (0, 1): [0, 0],
        (1, 0): [0, 0],
        (3, 2): [0, 0],  # padding's vector is zeros
    }
    features = match_features(*sides, *(table[side] for side in ids), unk_token_id=3)[0]
    for (i, j), values in expected.items():
        assert features[i, j].tolist() == pytest.approx(values), (i, j)
    features = match_features(*sides, *(table[side] for side in ids), unk_token_id=None)[0]
    assert features[1, 1].tolist() == pytest.approx([1, 1])
    assert features[0, 1].tolist() == pytest.approx([0, 11 / (5 * 5**0.5)])


def test_with_features_equal_words_are_told_from_others():
    """Whatever the weights of the words, nothing else depends on which words the two sides have in common."""
    model = small_model(match_features=True, num_blocks=1)
    with torch.no_grad():
        for side in (model.blocks[0].cells[0].input_x, model.blocks[0].cells[0].input_y):
            side.weight.zero_()
        same, other = (
            model(input_ids=torch.tensor([[4, 5]]), pair_input_ids=torch.tensor([words])).pooler_output
            for words in ([5, 6], [7, 8])
        )
    assert (same - other).abs().max() > 0.01


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 4), (7, 2)])
def test_pooling_by_cells(size):
    grid = torch.randn(len(FIRST), 5, 6, 3)
    lengths = torch.tensor([4, 1, 5, 2, 1]), torch.tensor([2, 5, 6, 1, 1])
    got = pool(grid, *lengths, size)
    for row, (n, m) in enumerate(zip(*map(torch.Tensor.tolist, lengths), strict=True)):
        torch.testing.assert_close(got[row], naive.pool(grid[row, :n, :m], *size))


def test_a_short_sentence_is_stretched_over_the_cells():
    grid = torch.arange(6.0).view(1, 2, 3, 1)
    got = pool(grid, torch.tensor([2]), torch.tensor([3]), (4, 1))
    assert got.tolist() == [[2.0, 2.0, 5.0, 5.0]]


def test_an_empty_sentence_gives_finite_scores():
    model = small_model(pooling_size=(2, 2))
    batch = two_sequences()
    batch["attention_mask"][0] = 0
    outputs = model(**batch)
    assert not outputs.pooler_output[0].any() and not outputs.last_hidden_state[0].any()
    for gradient in gradients(model, outputs.pooler_output.sum()).values():
        assert gradient.isfinite().all()


@pytest.mark.parametrize("problem_type", ["single_label_classification", "ranking"])
def test_a_device_is_never_asked_for_values(problem_type):
    """Tensors without values refuse to be looked at: what runs on them can be captured in a CUDA graph."""
    config = small_config(problem_type=problem_type, pooling_size=(2, 2), match_features=True)
    model = CoupledLstmForSequenceClassification(config).to("meta")
    batch = {name: value.to("meta") for name, value in two_sequences().items()}
    model(**batch, labels=torch.ones(5, device="meta").long()).loss.backward()
    assert all(parameter.grad.shape == parameter.shape for parameter in model.parameters())


def test_frozen_weights_and_second_passes():
    model = small_model()
    outputs = model(**two_sequences())
    first = torch.autograd.grad(outputs.pooler_output.sum(), model.embed_tokens.weight, retain_graph=True)[0]
    second = torch.autograd.grad(outputs.pooler_output.sum(), model.embed_tokens.weight)[0]
    assert torch.equal(first, second)
    with torch.no_grad():
        assert torch.equal(model(**two_sequences()).pooler_output, outputs.pooler_output)
    model.blocks.requires_grad_(False)
    outputs = model(**two_sequences()).pooler_output.sum()
    torch.testing.assert_close(torch.autograd.grad(outputs, model.embed_tokens.weight)[0], first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_blocks": 0}, "`num_blocks` must be at least 1"),
        ({"pooling_size": (2,)}, "`pooling_size` must be two sizes"),
        ({"pooling_size": (2, 0)}, "`pooling_size` must be two sizes"),
        ({"dropout": 1.0}, "`dropout` must be in"),
        ({"hidden_size": 0}, "`hidden_size` must be at least 1"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(StrictDataclassClassValidationError, match=message):
        small_config(**options)


def test_hidden_states_are_captured_from_the_blocks():
    model = TestCoupledLstm().small_model("tight").model
    kept = []
    for block in model.blocks:
        block.register_forward_hook(lambda block, args, grid: kept.append(grid))
    inputs = {"input_ids": torch.tensor([[4, 5, 6]]), "pair_input_ids": torch.tensor([[5, 6, 0]])}
    outputs = model(**inputs, pair_attention_mask=torch.tensor([[1, 1, 0]]), output_hidden_states=True)
    assert len(outputs.hidden_states) == len(kept) == len(model.blocks)
    assert all(map(torch.equal, outputs.hidden_states, kept))
    assert not outputs.hidden_states[0][:, :, 2].any()
    assert outputs.hidden_states[0][:, :, :2].any()
    assert torch.equal(outputs.hidden_states[-1], outputs.last_hidden_state)
    model.config.output_hidden_states = True
    assert len(model(**inputs).hidden_states) == len(model.blocks)


def test_more_grid_cells_than_the_limit_are_refused():
    model = TestCoupledLstm().small_model("tight").model
    x, y = torch.full((2, 3), 4), torch.full((2, 5), 5)
    model.config.max_grid_cells = 30
    assert model(input_ids=x, pair_input_ids=y).last_hidden_state.shape[:3] == (2, 3, 5)
    model.config.max_grid_cells = 29
    with pytest.raises(ValueError, match="`input_ids`: 2 pairs of up to 3 and 5 words are 30 grid cells.*`truncation"):
        model(input_ids=x, pair_input_ids=y)
    model.config.max_grid_cells = None
    model(input_ids=x, pair_input_ids=y)
    # Two texts of 20,000 words: refused before anything of that size is made.
    model.config.max_grid_cells = small_config().max_grid_cells
    long = torch.full((1, 20_000), 4)
    with pytest.raises(ValueError, match="400,000,000 grid cells"):
        model(input_ids=long, pair_input_ids=long)
