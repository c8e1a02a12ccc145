from __future__ import annotations

import re

import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.analysis.edits import explain_edit
from hf_paraphrase.generation.loading import load_pair_model
from hf_paraphrase.generation.paraphrase_choice import NOT_CHOSEN
from hf_paraphrase.generation.paraphrase_table import Paraphrases
from hf_paraphrase.generation.paraphraser import Paraphrase
from hf_paraphrase.serving.demo_pages import format_edits, format_match, format_paraphrases
from tests.models.test_pipeline_pairs import PAIRS
from tests.models.tiny import save, tiny_bart, tiny_matcher

GOOD = Paraphrase("the dog <i> sat", 0.5, 0.25, 1.0, 0.125)
BAD = Paraphrase("the cat & sat", reason="is the <source>")


def test_paraphrases_come_with_scores_and_marks() -> None:
    page = format_paraphrases("the cat sat", Paraphrases([GOOD, BAD]))
    assert '<p class="after">the <ins>dog &lt;i&gt;</ins> sat</p><p class="before">the <del>cat</del> sat</p>' in page
    assert re.findall(r"<dt>(\w+)</dt>.*?width: (\d+)%.*? ([\d.]+)</dd>", page) == [
        ("score", "50", "0.50"),
        ("adequacy", "25", "0.25"),
        ("fluency", "100", "1.00"),
        ("novelty", "12", "0.12"),
    ]
    assert re.findall('class="copy" data-text="(.*?)"', page) == ["the dog &lt;i&gt; sat"]
    assert "<details><summary>1 rejected</summary>" in page
    assert "<li>the cat &amp; sat <em>is the &lt;source&gt;</em></li>" in page


def test_words_show_what_the_other_candidates_say() -> None:
    other = Paraphrase("the bird sat", 0.4, 0.2, 1.0, 0.125, NOT_CHOSEN)
    page = format_paraphrases("the cat sat", Paraphrases([Paraphrase("the dog sat", 0.5, 0.25, 1.0, 0.1), other, BAD]))
    assert re.findall('class="others"> (.*?)<', page) == ["[bird]"] and "Click an underlined word" in page


def test_where_nothing_passes_the_reasons_are_open() -> None:
    page = format_paraphrases("the cat sat", Paraphrases([BAD]))
    assert "No candidate passed." in page and "<details open>" in page and "<ol" not in page
    assert format_paraphrases("the cat sat", Paraphrases()) == "<p>No candidate passed.</p>"


def test_a_refused_text_says_why() -> None:
    refused = Paraphrases([Paraphrase("1 <b>", reason="why & how")], "1 <b>", "why & how")
    assert format_paraphrases("1 <b>", refused) == "<p>Not paraphrased: why &amp; how.</p>"


def test_edits_show_the_nearest_pairs_and_what_explain_says(editor: str) -> None:
    paraphraser = Paraphraser.from_pretrained(editor, device="cpu")
    page = format_edits(paraphraser, "the cat sat on", 2)
    assert page.count("<details") == 2 and page.count("<details open>") == 1
    summaries = re.findall("<summary>(.*?)</summary>", page)
    assert [re.sub("<.*?>", "", one).split(" → ") for one in summaries] == [list(pair) for pair in PAIRS[:2]]
    edit = explain_edit(paraphraser.model, paraphraser.tokenizer, "the cat sat on", PAIRS[0])
    first = page.split("</details>")[0]
    assert f"<strong>{edit.paraphrase}</strong>" in first
    weights = [*edit.retrieved_weights.flatten().tolist(), *edit.source_weights.flatten().tolist()]
    assert re.findall(r"<td[^>]*>(\d+)</td>", first) == [f"{100 * weight:.0f}" for weight in weights]


def test_what_edits_by_no_pair_shows_none(tmp_path) -> None:
    paraphraser = Paraphraser.from_pretrained(save(tiny_bart(), tmp_path), device="cpu")
    assert format_edits(paraphraser, "the cat sat") == ""


@pytest.mark.parametrize("unit", [None, 2])
def test_a_match_shows_labels_and_the_heat_map_of_a_unit(matcher: str, unit: int | None) -> None:
    model, tokenizer = load_pair_model(matcher, "cpu")
    page = format_match(model.eval(), tokenizer, "a b", "c d e", unit)
    shown = [float(score) for score in re.findall(r"</span> ([\d.]+)</dd>", page)]
    assert len(shown) == model.config.num_labels and sum(shown) == pytest.approx(1, abs=0.02)
    h = model.model(**tokenizer("a b", "c d e", return_tensors="pt")).last_hidden_state[0]
    widest = int((h.amax((0, 1)) - h.amin((0, 1))).argmax())
    chosen = widest if unit is None else unit
    assert f"<h2>Unit {chosen}</h2>" in page
    cells = [int(cell) for cell in re.findall(r"<td[^>]*>(-?\d+)</td>", page)]
    largest = h[..., chosen].abs().max()
    assert f"percent of the largest, {largest:.2f}." in page and 100 in map(abs, cells)
    assert cells == pytest.approx((100 * h[..., chosen] / largest).flatten().tolist(), abs=0.51)


def test_other_matchers_show_their_labels_alone(tmp_path) -> None:
    labels = {0: "different", 1: "same"}
    model, tokenizer = load_pair_model(save(tiny_matcher(2, labels), tmp_path), "cpu")
    page = format_match(model.eval(), tokenizer, "the cat", "a cat")
    assert set(re.findall("<dt>(.*?)</dt>", page)) == set(labels.values()) and "<table>" not in page
