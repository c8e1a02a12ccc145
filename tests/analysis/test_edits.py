from __future__ import annotations

import pytest
import torch

from hf_paraphrase.analysis.edits import explain_edit, format_html
from hf_paraphrase.common.errors import InputError
from tests.models.test_pipeline_pairs import tiny_fset
from tests.models.tiny import tiny_bart, word_tokenizer

PAIR = ("the dog sat", "a dog <b>")


@pytest.fixture(scope="module")
def explanation():
    return explain_edit(tiny_fset(), word_tokenizer(), "the cat sat on mat", PAIR, num_beams=3)


def test_weights_lead_from_each_output_token(explanation):
    assert explanation.retrieved_tokens == ["the", "dog", "sat", "</s>"]
    assert explanation.source_tokens == ["the", "cat", "sat", "on", "mat", "</s>"]
    count = len(explanation.output_tokens)
    for weights, length in ((explanation.retrieved_weights, 4), (explanation.source_weights, 6)):
        assert weights.shape == (count, length)
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(count))


def test_page_shows_sentences_and_both_maps(explanation):
    page = format_html(explanation)
    assert "a dog &lt;b&gt;" in page and "<b>" not in page
    assert page.count("<table>") == 2
    cells = page.split("</table>")[0].count("<td")
    assert cells == len(explanation.output_tokens) * 4


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(InputError, match="nothing to explain"):
        explain_edit(tiny_bart(), word_tokenizer(), "the cat", PAIR)
    with pytest.raises(InputError, match="`retrieved_target_ids` is blank"):
        explain_edit(tiny_fset(), word_tokenizer(), "the cat", ("the dog", " "))
