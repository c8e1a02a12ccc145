from __future__ import annotations

import pytest

from hf_paraphrase.analysis.edits import explain_levels, format_levels
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.models.dnpg.configuration_dnpg import DnpgConfig
from hf_paraphrase.models.dnpg.modeling_dnpg import DnpgForConditionalGeneration
from tests.models.tiny import tiny_bart, tiny_model, word_tokenizer


@pytest.fixture(scope="module")
def model():
    return tiny_model(DnpgConfig, DnpgForConditionalGeneration)


def test_every_word_has_its_level(model):
    by_hand = ["sentence", "phrase", "phrase", "sentence"]
    found = explain_levels(
        model, word_tokenizer(), "the cat <b> sat", source_levels=by_hand[:3] + by_hand[2:] * 2, max_new_tokens=5
    )
    assert found.source[:2] == [("the", "sentence"), ("cat", "phrase")]
    assert found.source[-1] == ("</s>", "sentence")
    assert {level for _, level in found.output} <= {"phrase", "sentence"} and len(found.output) == 5
    # A word outside the vocabulary stands for itself.
    assert ("b", "phrase") in found.source
    page = format_levels(found)
    assert '<span class="phrase" title="phrase">cat</span>' in page and "<b>" not in page


def test_a_kept_template_shows(model):
    kept = ["sentence", "phrase", "sentence", "sentence"]
    found = explain_levels(
        model, word_tokenizer(), "the cat sat on", source_levels=kept, levels="phrase", max_new_tokens=9
    )
    assert found.paraphrase.split()[0] == "the" and found.paraphrase.split()[1] != "sat"


def test_what_cannot_be_explained_is_refused(model):
    with pytest.raises(InputError, match="has no levels"):
        explain_levels(tiny_bart(), word_tokenizer(), "the cat")
    with pytest.raises(InputError, match="blank"):
        explain_levels(model, word_tokenizer(), " ")
