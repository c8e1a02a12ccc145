"""The demo's answers as HTML: paraphrases with scores and marked words, edits, and matches of sentence pairs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..analysis.edits import explain_edit, format_heat_map, format_maps
from ..analysis.matches import PairGrid, choose_unit, read_grids
from ..analysis.word_diff import format_changes
from ..common.errors import InputError
from ..generation.paraphrase_choice import NOT_CHOSEN
from ..generation.paraphrase_table import Paraphrases
from ..generation.paraphraser import Paraphrase, Paraphraser
from ..models.coupled_lstm.modeling_coupled_lstm import CoupledLstmForSequenceClassification

COPY = "navigator.clipboard.writeText(this.dataset.text)"
SCORES = ("score", "adequacy", "fluency", "novelty")


def format_paraphrases(text: str, found: Paraphrases) -> str:
    """The paraphrases of a text with scores and changed words, followed by rejected candidates and reasons.

    `found` is a `Paraphraser`'s result, with `return_rejected`.
    """
    if found.refusal:
        return f"<p>Not paraphrased: {html.escape(found.refusal)}.</p>"
    chosen = [one for one in found if one.reason is None]
    rejected = [one for one in found if one.reason is not None]
    passed = [one.text for one in found if one.reason in (None, NOT_CHOSEN)]
    items = "".join(_format_paraphrase(text, one, passed) for one in chosen)
    parts = [f'<ol class="paraphrases">{items}</ol>' if chosen else "<p>No candidate passed.</p>"]
    if 'class="word"' in items:
        parts.append('<p class="note">Click an underlined word to see what other candidates say.</p>')
    if rejected:
        reasons = "".join(
            f"<li>{html.escape(one.text)} <em>{html.escape(one.reason or '')}</em></li>" for one in rejected
        )
        is_open = "" if chosen else " open"
        parts.append(f"<details{is_open}><summary>{len(rejected)} rejected</summary><ul>{reasons}</ul></details>")
    return "\n".join(parts)


def _format_paraphrase(text: str, one: Paraphrase, others: Sequence[str]) -> str:
    before, after = format_changes(text, one.text, others)
    bars = _format_bars({name: getattr(one, name) for name in SCORES})
    copy = f'<button type="button" class="copy" data-text="{html.escape(one.text)}" onclick="{COPY}">Copy</button>'
    return f'<li>{copy}<p class="after">{after}</p><p class="before">{before}</p>{bars}</li>'


def _format_bars(scores: Mapping[str, float]) -> str:
    """Numbers from 0 to 1 with bars of that length."""
    bars = (
        f"<div><dt>{html.escape(name)}</dt>"
        f'<dd><span class="bar"><span style="width: {100 * score:.0f}%"></span></span> {score:.2f}</dd></div>'
        for name, score in scores.items()
    )
    return f'<dl class="scores">{"".join(bars)}</dl>'


def format_edits(paraphraser: Paraphraser, text: str, count: int = 3) -> str:
    """How a model edits a text by each of the nearest pairs: the pair, the edit, and what each word attended to.

    A model that reads no pairs has nothing to show.
    """
    if paraphraser.retriever is None:
        return ""
    pairs = paraphraser.retriever.retrieve([text], count)[0]
    edits = [_format_edit(paraphraser, text, pair[:2], is_open=not place) for place, pair in enumerate(pairs)]
    return "\n".join(["<h2>By which pairs it edits</h2>", *edits])


def _format_edit(paraphraser: Paraphraser, text: str, pair: tuple[str, str], *, is_open: bool) -> str:
    before, after = format_changes(*pair)
    try:
        edit = explain_edit(paraphraser.model, paraphraser.tokenizer, text, pair)
        shown = f"<p>By this pair it writes: <strong>{html.escape(edit.paraphrase)}</strong></p>{format_maps(edit)}"
    except InputError as error:  # of a model without attention
        shown = f"<p>{html.escape(str(error))}</p>"
    summary = f'<summary>{before} <span class="arrow">→</span> {after}</summary>'
    return f"<details{' open' if is_open else ''}>{summary}{shown}</details>"


def format_match(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, text_pair: str, unit: int | None = None
) -> str:
    """How two sentences match: the model's labels or score and, of a coupled LSTM, what a unit sees in their words.

    Args:
        model: A classifier or scorer of sentence pairs.
        tokenizer: Its tokenizer.
        text: The first sentence.
        text_pair: The second sentence.
        unit: Of the last block; None for the one with the widest range over these sentences.
    """
    classify = TextClassificationPipeline(model=model, tokenizer=tokenizer)
    labels = classify({"text": text, "text_pair": text_pair}, top_k=None)
    parts = [_format_bars({found["label"]: found["score"] for found in labels})]
    if isinstance(model, CoupledLstmForSequenceClassification):
        (grid,) = read_grids(model, tokenizer, [(text, text_pair)])
        parts.append(_format_grid(grid, choose_unit(grid) if unit is None else unit))
    return "\n".join(parts)


def _format_grid(grid: PairGrid, unit: int) -> str:
    h = grid.h[..., unit]
    largest = h.abs().max().item() or 1.0
    note = f"<p>Rows: words of the first sentence. Activations in percent of the largest, {largest:.2f}.</p>"
    return f"<h2>Unit {unit}</h2>\n{format_heat_map(grid.x, grid.y, (h / largest).tolist())}\n{note}"
