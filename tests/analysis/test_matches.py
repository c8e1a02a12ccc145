from __future__ import annotations

import pytest
import torch

from hf_paraphrase import CoupledLstmConfig, CoupledLstmForSequenceClassification
from hf_paraphrase.analysis.matches import (
    ExcitingPair,
    format_exciting_pairs,
    load_matcher,
    most_exciting_pairs,
    plot_unit,
    read_grids,
)
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.tiny import save, tiny_matcher

PAIRS = [("a b c", "d e"), ("f", "a b c d e f"), ("b a", "e e d"), ("c", "a")]


@pytest.fixture(scope="module")
def matcher():
    torch.manual_seed(0)
    config = CoupledLstmConfig(vocab_size=10, embedding_size=4, hidden_size=3, num_blocks=2, initializer_range=1.0)
    tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10, sentence_pairs=True)
    return CoupledLstmForSequenceClassification(config).eval(), tokenizer


def test_grids_are_those_of_each_pair_alone(matcher):
    model, tokenizer = matcher
    for (text, text_pair), grid in zip(PAIRS, read_grids(model, tokenizer, PAIRS), strict=True):
        assert grid.x == [*text.split(), "</s>"] and grid.y == [*text_pair.split(), "</s>"]
        alone = model.model(**tokenizer(text, text_pair, return_tensors="pt")).last_hidden_state[0]
        torch.testing.assert_close(grid.h, alone)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_the_most_exciting_pairs_are_those_of_an_exhaustive_search(matcher, batch_size):
    model, tokenizer = matcher
    found = most_exciting_pairs(model, tokenizer, PAIRS, top=4, batch_size=batch_size)
    assert len(found) == 3
    for unit, pairs in enumerate(found):
        values: dict[tuple[str, str], float] = {}
        for grid in read_grids(model, tokenizer, PAIRS):
            for i, x in enumerate(grid.x[:-1]):
                for j, y in enumerate(grid.y[:-1]):
                    values[x, y] = max(values.get((x, y), -2.0), grid.h[i, j, unit].item())
        expected = sorted(values.items(), key=lambda item: -item[1])[:4]
        assert [(pair.x, pair.y) for pair in pairs] == [words for words, _ in expected]
        assert [pair.activation for pair in pairs] == pytest.approx([value for _, value in expected], abs=1e-5)


def test_the_table_is_markdown():
    pairs = [[ExcitingPair(1.5, "red", "green"), ExcitingPair(0.25, "|", "*")], []]
    assert format_exciting_pairs(pairs).splitlines()[2:] == [
        "| 0 | (red, green) 1.50, (\\|, \\*) 0.25 |",
        "| 1 |  |",
    ]


def test_heat_map(matcher, tmp_path):
    (grid,) = read_grids(*matcher, PAIRS[:1])
    widest = (grid.h.amax((0, 1)) - grid.h.amin((0, 1))).argmax()
    assert plot_unit(grid, tmp_path / "unit.png") == widest
    assert (tmp_path / "unit.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["unit.png"]
    with pytest.raises(InputError, match="no unit 3; the model has units 0 to 2"):
        plot_unit(grid, tmp_path / "unit.png", unit=3)


def test_what_is_no_matcher_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="neither a checkpoint folder"):
        load_matcher(tmp_path / "nowhere")
    other = save(tiny_matcher(2), tmp_path / "bert")
    with pytest.raises(InputError, match="only a coupled_lstm has a grid"):
        load_matcher(other)
