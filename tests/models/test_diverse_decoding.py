from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MarianConfig, MarianMTModel, PreTrainedModel

from hf_paraphrase.generation import dips, diverse_beam_search
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration
from hf_paraphrase.models.search.dips import SubmodularObjective, WordsOfSource, choose_set, word_closeness
from hf_paraphrase.models.search.diverse_beam_search import GroupedSearch
from hf_paraphrase.models.search.found_sentences import DEAD, Frame, forbid_source

from . import naive_decoding as naive
from .small_batches import pad
from .test_pipeline_pairs import tiny_fset
from .tiny import SPECIAL_IDS, WORDS, tiny_bart, tiny_gpt2, tiny_model

SOURCES = [[5, 6, 7, 8, 9], [9, 4, 7], [12]]
PAIRS = [([6, 6, 4], [8]), ([10, 5], [9, 4, 7, 5]), ([4], [5, 6])]
EOS = 2


def tiny_marian() -> MarianMTModel:
    sizes = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 40}
    layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    torch.manual_seed(1)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(WORDS), decoder_start_token_id=0, forced_eos_token_id=None, **sizes, **layers, **SPECIAL_IDS
        )
    )
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return model.eval()


def wide_gpt2() -> PreTrainedModel:
    torch.manual_seed(2)
    model = tiny_gpt2().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return model


MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "BART": tiny_bart,
    "Marian": tiny_marian,
    "residual LSTM": lambda: tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration),
    "FSET": tiny_fset,
    "GPT-2": wide_gpt2,
}


class Case(NamedTuple):
    """A model, and what it reads."""

    model: PreTrainedModel

    def inputs(self, rows: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of some texts, padded as the model wants it."""
        side = "right" if self.model.config.is_encoder_decoder else "left"
        columns = {"input_ids": [SOURCES[row] for row in rows]}
        if self.model.config.model_type == "fset":
            columns["retrieved_source_ids"] = [PAIRS[row][0] for row in rows]
            columns["retrieved_target_ids"] = [PAIRS[row][1] for row in rows]
        inputs = {}
        for name, texts in columns.items():
            alone = len(texts) == 1
            mask = name.replace("_ids", "_mask") if name != "input_ids" else "attention_mask"
            inputs[name] = torch.tensor(texts) if alone else pad(texts, side, 0)
            inputs[mask] = (
                torch.ones_like(inputs[name]) if alone else pad([[1] * len(text) for text in texts], side, 0)
            )
        return inputs

    def start(self, row: int) -> list[int]:
        """What the model is to continue."""
        config = self.model.generation_config
        return [config.decoder_start_token_id or 0] if self.model.config.is_encoder_decoder else SOURCES[row]

    def generate(self, rows: list[int], **kwargs) -> tuple[list[list[int]], list[float]]:
        """What the model writes, to the end of each sentence, and its scores."""
        inputs = self.inputs(rows)
        found = self.model.generate(
            **inputs, pad_token_id=0, do_sample=False, return_dict_in_generate=True, output_scores=True, **kwargs
        )
        length = 1 if self.model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        return [until_end(ids) for ids in found.sequences[:, length:].tolist()], found.sequences_scores.tolist()


def until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(EOS) + 1] if EOS in ids else ids


@pytest.fixture(scope="module", params=MODELS)
def case(request) -> Case:
    return Case(MODELS[request.param]())


DECODINGS = {
    "diverse beam": {"custom_generate": diverse_beam_search, "num_beam_groups": 2, "diversity_penalty": 0.7},
    "a group a beam": {"custom_generate": diverse_beam_search, "diversity_penalty": 1.5},
    "dips": {"custom_generate": dips},
    "dips, diverse only": {"custom_generate": dips, "fidelity": 0.0, "candidates_per_beam": 5},
}


@pytest.mark.parametrize(("groups", "penalty"), [(1, 0.0), (2, 0.8), (4, 2.0), (4, 0.0), (2, 0.05)])
def test_diverse_beam_search_equals_the_plain_one(case: Case, groups: int, penalty: float) -> None:
    for row in range(len(SOURCES)):
        ids, scores = case.generate(
            [row],
            custom_generate=diverse_beam_search,
            num_beams=4,
            num_return_sequences=4,
            num_beam_groups=groups,
            diversity_penalty=penalty,
            max_new_tokens=6,
        )
        expected = naive.diverse_beam_search(
            case.model,
            case.inputs([row]),
            case.start(row),
            eos=EOS,
            num_beams=4,
            groups=groups,
            penalty=penalty,
            max_new_tokens=6,
        )
        assert scores == pytest.approx([score for _, score in expected], abs=1e-4)
        assert ids == [words for words, _ in expected]
        assert len(set(map(tuple, ids))) == 4


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    beams_and_groups=st.sampled_from([(2, 1), (2, 2), (4, 2), (4, 4), (6, 3)]),
    penalty=st.sampled_from([0.0, 0.05, 0.7, 5.0]),
    options=st.fixed_dictionaries(
        {"max_new_tokens": st.integers(1, 9), "early_stopping": st.sampled_from([False, True, "never"])},
        optional={
            "exclude_source": st.just(True),
            "length_penalty": st.sampled_from([-1.0, 0.0, 2.0]),
            "eos_token_id": st.sampled_from([[2, 5], [2, 5, 6, 7]]),
            "suppress_tokens": st.just([4, 9]),
            "no_repeat_ngram_size": st.integers(1, 2),
            "repetition_penalty": st.just(1.5),
        },
    ),
)
def test_the_lean_diverse_search_finds_what_that_of_transformers_finds(
    case: Case, beams_and_groups: tuple[int, int], penalty: float, options: dict
) -> None:
    """Scores of every step, where they are asked for, leave the search to transformers."""
    num_beams, groups = beams_and_groups
    kwargs = {"num_beams": num_beams, "num_return_sequences": num_beams, "pad_token_id": 0, "do_sample": False}
    kwargs |= {"num_beam_groups": groups, "diversity_penalty": penalty, "custom_generate": diverse_beam_search}
    inputs, kwargs = case.inputs([0, 1, 2]), {**kwargs, "return_dict_in_generate": True, **options}
    found = case.model.generate(**inputs, **kwargs)
    expected = case.model.generate(**inputs, **kwargs, output_scores=True)
    # Only the search of transformers returns the cache.
    assert ("cache" in found) == (not case.model.config.is_encoder_decoder)
    assert "cache" in expected
    is_possible = expected.sequences_scores > DEAD
    assert torch.equal(found.sequences[is_possible], expected.sequences[is_possible])
    assert torch.equal(found.beam_indices[is_possible], expected.beam_indices[is_possible])
    torch.testing.assert_close(
        found.sequences_scores[is_possible], expected.sequences_scores[is_possible], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("exclude_source", [True, False])
@pytest.mark.parametrize("fidelity", [0.0, 0.5, 1.0])
def test_dips_equals_the_plain_one(case: Case, fidelity: float, exclude_source: bool) -> None:
    for row in range(len(SOURCES)):
        options = {"num_beams": 3, "max_new_tokens": 5, "exclude_source": exclude_source}
        ids, scores = case.generate([row], custom_generate=dips, fidelity=fidelity, num_return_sequences=3, **options)
        expected = naive.dips(
            case.model, case.inputs([row]), case.start(row), SOURCES[row], eos=EOS, fidelity=fidelity, **options
        )
        assert scores == pytest.approx([score for _, score in expected], abs=1e-4)
        assert ids == [words for words, _ in expected]


@pytest.mark.parametrize("decoding", DECODINGS)
def test_a_batch_gives_what_its_texts_give(case: Case, decoding: str) -> None:
    options = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 7, **DECODINGS[decoding]}
    together, scores = case.generate([0, 1, 2], **options)
    alone = [case.generate([row], **options) for row in range(3)]
    assert together == [words for texts, _ in alone for words in texts]
    assert scores == pytest.approx([score for _, values in alone for score in values], abs=1e-4)


def test_one_group_without_penalty_is_beam_search(case: Case) -> None:
    for options in ({}, {"length_penalty": 2.0, "early_stopping": True}, {"no_repeat_ngram_size": 1}):
        kwargs = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 7, "pad_token_id": 0, **options}
        plain = case.model.generate(**case.inputs([0, 1, 2]), **kwargs)
        grouped = case.model.generate(
            **case.inputs([0, 1, 2]),
            **kwargs,
            custom_generate=diverse_beam_search,
            num_beam_groups=1,
            diversity_penalty=0.0,
        )
        assert torch.equal(plain, grouped)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_limits_are_kept_and_the_model_is_left_alone(case: Case, decoding: str) -> None:
    before = dict(vars(case.model))
    kwargs = {"num_beams": 4, "pad_token_id": 0, **DECODINGS[decoding]}
    prompt = 1 if case.model.config.is_encoder_decoder else case.inputs([0, 1, 2])["input_ids"].shape[1]
    for limits in ({"max_new_tokens": 1}, {"min_new_tokens": 4, "max_new_tokens": 4}):
        ids = case.model.generate(**case.inputs([0, 1, 2]), num_return_sequences=2, **limits, **kwargs)
        assert ids.shape == (6, prompt + limits["max_new_tokens"])
    assert not (ids[:, prompt : prompt + 3] == EOS).any()
    ids = case.model.generate(**case.inputs([1]), max_new_tokens=3, bad_words_ids=[[7]], **kwargs)
    assert len(ids) == 1 and 7 not in ids[0, prompt:]
    assert vars(case.model) == before


@pytest.mark.parametrize("decoding", ["diverse beam", "dips"])
def test_caches_are_only_a_shortcut(case: Case, decoding: str) -> None:
    kwargs = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 6, **DECODINGS[decoding]}
    fast, slow = (case.generate([0, 1], use_cache=use_cache, **kwargs) for use_cache in (True, False))
    assert fast[0] == slow[0] and fast[1] == pytest.approx(slow[1], abs=1e-4)


def test_scores_belong_to_the_sequences() -> None:
    """Without length penalty and penalties, a sequence's score is the sum of its words' log-probabilities."""
    case = Case(tiny_marian())
    kwargs = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 5, "length_penalty": 0.0}
    for decoding in ({"custom_generate": diverse_beam_search, "diversity_penalty": 0.0}, {"custom_generate": dips}):
        found = case.model.generate(
            **case.inputs([0, 1]), **kwargs, **decoding, return_dict_in_generate=True, output_scores=True
        )
        steps = case.model.compute_transition_scores(found.sequences, found.scores, found.beam_indices)
        torch.testing.assert_close(steps.sum(dim=1), found.sequences_scores, rtol=0, atol=1e-4)


def test_what_a_group_chooses_is_worth_more_than_the_plain_choice() -> None:
    """Log-probabilities less Hamming penalties: never below those of the words that are likeliest without them."""
    torch.manual_seed(0)
    texts, groups, beams, vocab = 5, 4, 3, 9
    model = tiny_gpt2()
    search = GroupedSearch(model, groups, 0.9, Frame(model.generation_config, torch.device("cpu")), None, 20)
    log_probs = torch.randn(texts, groups, beams, vocab).mul(2)
    # Beams of other words each, so that nothing is found twice.
    written = torch.arange(groups * beams).view(1, groups, beams, 1).expand(texts, -1, -1, -1)
    charged = search.charge(log_probs, written, torch.arange(vocab).expand(log_probs.shape))
    costs = torch.zeros(texts, vocab)
    for group in range(groups):
        expected = log_probs[:, group] - 0.9 * costs.unsqueeze(1)
        torch.testing.assert_close(charged[:, group], expected)
        likeliest = log_probs[:, group].flatten(1).topk(beams).indices
        plain = charged[:, group].flatten(1).gather(1, likeliest).sum(1)
        assert (charged[:, group].flatten(1).topk(beams).values.sum(1) >= plain - 1e-6).all()
        for text in range(texts):
            places = charged[text, group].flatten().argsort(descending=True).tolist()
            for place in [place for place in places if place % vocab != EOS][:beams]:
                costs[text, place % vocab] += 1


def test_groups_differ_the_more_the_penalty_is() -> None:
    case = Case(tiny_marian())
    kwargs = {"num_beams": 4, "num_return_sequences": 4, "min_new_tokens": 8, "max_new_tokens": 8}
    distances = []
    for penalty in (0.0, 1.0, 5.0):
        ids, _ = case.generate([0, 1, 2], custom_generate=diverse_beam_search, diversity_penalty=penalty, **kwargs)
        distances.append(hamming(ids))
    plain, _ = case.generate([0, 1, 2], **kwargs)
    # Without a penalty, the groups find the same but for the last word, in which all four differ.
    assert distances[0] == 3 * 6 < distances[1] < distances[2]
    assert distances[2] > hamming(plain)


def hamming(ids: list[list[int]]) -> int:
    """Places in which the four sentences of a text differ, over all pairs."""
    groups = [ids[start : start + 4] for start in range(0, len(ids), 4)]
    return sum(
        one != other
        for group in groups
        for place, first in enumerate(group)
        for second in group[:place]
        for one, other in zip(first, second, strict=True)
    )


class CopyModel:
    """Makes any model write some sentence with hardly anything else beside it."""

    def __init__(self, sentence: list[int], other: int):
        self.sentence, self.other = sentence, other

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        likely = torch.full_like(scores, -20.0)
        likely[:, 3] = -torch.inf
        for row, ids in zip(likely, input_ids[:, 1:].tolist(), strict=True):
            place = len(ids) if ids == self.sentence[: len(ids)] else len(self.sentence)
            row[[*self.sentence, EOS, EOS][place]] = 0.0
            row[self.other] = -3.0
        return likely


SEARCHES = {
    "diverse beam": {"custom_generate": diverse_beam_search, "diversity_penalty": 0.1},
    "two groups": {"custom_generate": diverse_beam_search, "num_beam_groups": 2, "diversity_penalty": 0.0},
    "dips": {"custom_generate": dips, "exclude_source": False},
}


@pytest.mark.parametrize("exclude_source", [True, False])
@pytest.mark.parametrize("search", SEARCHES)
def test_no_sentence_is_returned_twice_and_the_source_only_where_it_may_be(search: str, exclude_source: bool) -> None:
    """Where all but one sentence, the source, is unlikely."""
    for name in ("BART", "residual LSTM"):
        case = Case(MODELS[name]())
        options = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 9, **SEARCHES[search]}
        options["exclude_source"] = exclude_source
        for row in range(len(SOURCES)):
            ids, scores = case.generate([row], logits_processor=[CopyModel(SOURCES[row], 13)], **options)
            assert len(set(map(tuple, ids))) == 4
            assert ([*SOURCES[row], EOS] in ids) == (not exclude_source)
            assert scores == sorted(scores, reverse=True)


def test_the_source_is_compared_word_by_word_wherever_its_padding_stands() -> None:
    """Other rows' copies are not copies, a beginning is none, and marks around it count for nothing."""
    model = tiny_bart()
    frame = Frame(model.generation_config, torch.device("cpu"))
    source = frame.words(torch.tensor([[0, 5, 6, 2], [7, 0, 8, 2]]), torch.tensor([[0, 1, 1, 1], [1, 0, 1, 1]]).bool())
    written = torch.tensor(
        [[[1, 5, 6], [5, 6, 1], [5, 6, 5], [7, 8, 1]], [[7, 8, 1], [7, 1, 8], [5, 6, 1], [1, 1, 7]]]
    )
    listed = torch.arange(9).expand(2, 4, 9)
    scores = forbid_source(torch.zeros(2, 4, 9), written, source, frame, listed)
    assert (scores[..., EOS] == -torch.inf).tolist() == [[True, True, False, False], [True, True, False, False]]
    assert scores.isinf().sum() == 4
    # A beam that can do nothing but end, ends.
    forced = torch.full((2, 4, 9), -torch.inf)
    forced[..., EOS] = 0.0
    assert torch.equal(forbid_source(forced, written, source, frame, listed), forced)


@pytest.mark.parametrize("search", ["diverse beam", "dips"])
def test_where_nothing_else_may_follow_doubles_and_copies_come_last(search: str) -> None:
    case = Case(tiny_bart())
    sentences = [[*SOURCES[0], EOS], [6, EOS]]

    def allowed(row: int, ids: torch.Tensor) -> list[int]:
        written = ids[1:].tolist()
        following = [one[len(written)] for one in sentences if one[: len(written)] == written and written != one]
        return following or [EOS]

    options = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 9, "prefix_allowed_tokens_fn": allowed}
    options |= {**SEARCHES[search], "exclude_source": True}
    if search == "diverse beam":  # so that not all groups begin alike
        options["diversity_penalty"] = 20.0
    ids, _ = case.generate([0], **options)
    assert len(ids) == 3
    assert ids[0] == [6, EOS]
    best = case.model.generate(**case.inputs([0]), **(options | {"num_return_sequences": 1}))
    assert until_end(best[0, 1:].tolist()) == [6, EOS]


def test_groups_and_penalty_of_the_generation_config() -> None:
    case, groups = Case(tiny_marian()), {"num_beam_groups": 2, "diversity_penalty": 2.0}
    options = {"custom_generate": diverse_beam_search, "num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 6}
    expected, usual = case.generate([0], **groups, **options), case.generate([0], **options)
    assert expected[0] != usual[0]
    assert usual == case.generate([0], num_beam_groups=4, diversity_penalty=0.5, **options)
    case.model.generation_config.update(**groups)
    assert case.generate([0], **options) == expected


@pytest.mark.parametrize("fidelity", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("length", [1, 2, 6])
def test_objective_equals_the_plain_one(length: int, fidelity: float) -> None:
    generator = torch.Generator().manual_seed(length)
    candidates = torch.randint(4, 9, (6, 6, length), generator=generator)
    embeddings = torch.randn(12, 5, generator=generator)
    ids = torch.randint(4, 9, (6, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 6, 3, 2, 1, 0]).unsqueeze(1)
    available = torch.rand(6, 6, generator=generator) < 0.8
    source = WordsOfSource(ids, mask, word_closeness(embeddings, ids, mask))
    objective = SubmodularObjective(candidates, available, source, fidelity)
    for size in (1, 3, 6):
        chosen = choose_set(objective, size)
        values, likeliest = objective.value(chosen), available & (available.cumsum(1) <= size)
        assert (values >= objective.value(likeliest)).all()
        for text in range(6):
            places = available[text].nonzero().flatten().tolist()
            plain = naive.Objective(
                [candidates[text, place].tolist() for place in places],
                ids[text][mask[text]].tolist(),
                embeddings,
                fidelity,
            )
            picked = [places.index(place) for place in chosen[text].nonzero().flatten().tolist()]
            assert len(picked) == min(size, len(places))
            assert float(values[text]) == pytest.approx(plain(picked), abs=1e-6)
            assert plain(picked) == pytest.approx(plain(naive.choose_set(plain, size)), abs=1e-6)


def test_objective_is_monotone_and_submodular() -> None:
    generator = torch.Generator().manual_seed(7)
    candidates = torch.randint(4, 8, (40, 6, 5), generator=generator)
    ids = torch.randint(4, 8, (40, 4), generator=generator)
    mask = torch.ones_like(ids, dtype=torch.bool)
    source = WordsOfSource(ids, mask, word_closeness(torch.randn(8, 3, generator=generator), ids, mask))
    objective = SubmodularObjective(candidates, torch.ones(40, 6, dtype=torch.bool), source)
    small = torch.rand(40, 6, generator=generator) < 0.3
    large = small | (torch.rand(40, 6, generator=generator) < 0.3)
    small[:, 0] = large[:, 0] = False
    gains = []
    for chosen in (small, large):
        more = chosen.clone()
        more[:, 0] = True
        gains.append(objective.value(more) - objective.value(chosen))
        torch.testing.assert_close(objective.value_with_each(chosen)[:, 0], objective.value(more))
    assert (gains[1] >= -1e-9).all()
    assert (gains[0] >= gains[1] - 1e-9).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"custom_generate": diverse_beam_search, "num_beam_groups": 3}, "3 does not divide 4"),
        ({"custom_generate": diverse_beam_search, "num_beam_groups": 0}, "0 does not divide 4"),
        ({"custom_generate": diverse_beam_search, "diversity_penalty": -1.0}, "must be at least 0, not -1.0"),
        ({"custom_generate": diverse_beam_search, "do_sample": True}, "pass `do_sample=False`"),
        ({"custom_generate": dips, "do_sample": True}, "pass `do_sample=False`"),
        ({"custom_generate": dips, "fidelity": 1.5}, "must be from 0 to 1, not 1.5"),
        ({"custom_generate": dips, "candidates_per_beam": 0}, "must be at least 1, not 0"),
    ],
)
def test_wrong_arguments(kwargs: dict, message: str) -> None:
    case = Case(tiny_bart())
    with pytest.raises(ValueError, match=message):
        case.model.generate(**case.inputs([0]), num_beams=4, max_new_tokens=3, **kwargs)


def test_dips_needs_the_words_of_the_source() -> None:
    model = tiny_bart()
    embeddings = torch.randn(1, 3, 16)
    with pytest.raises(ValueError, match="pass `input_ids`"):
        model.generate(inputs_embeds=embeddings, num_beams=2, max_new_tokens=3, custom_generate=dips)
    with pytest.raises(ValueError, match="`exclude_source` compares outputs with the text: pass `input_ids`"):
        model.generate(
            inputs_embeds=embeddings,
            num_beams=2,
            max_new_tokens=3,
            custom_generate=diverse_beam_search,
            exclude_source=True,
        )
