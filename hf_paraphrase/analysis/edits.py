"""How a model made its paraphrase: what an editing one attended to, and the levels that DNPG took words for."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..common.errors import InputError
from ..models.dnpg.levels import LEVELS, read_levels
from ..models.layers.portable import can
from ..models.text.encoded_inputs import decode_with_words, encode_inputs

STYLE, LEVEL_STYLE = (
    Path(__file__).with_name(name).read_text(encoding="utf-8").strip() for name in ("edits.css", "levels.css")
)


@dataclass(frozen=True)
class EditExplanation:
    """An edit and its attention, as in the case study of Kazemnejad et al. 2020, Table 4."""

    source: str  # x
    retrieved_source: str  # p
    retrieved_target: str  # q
    paraphrase: str  # what the model wrote
    source_tokens: list[str]  # tokens of x
    retrieved_tokens: list[str]  # tokens of p
    output_tokens: list[str]  # tokens of the paraphrase
    # `(output, source)`: from each output token to the tokens of x, the mean over layers and heads.
    source_weights: torch.Tensor
    # `(output, retrieved)`: the same to the tokens of p, whose micro edits it took; None for a model without them.
    retrieved_weights: torch.Tensor | None


@torch.inference_mode()
def explain_edit(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    source: str,
    pair: tuple[str, str],
    **generate_kwargs,
) -> EditExplanation:
    """Edit a sentence by a pair, and read off where each token of the output attended to.

    Args:
        model: One that edits by retrieved pairs.
        tokenizer: Its tokenizer.
        source: x.
        pair: p and q.
        generate_kwargs: Handed to `model.generate`.

    Raises:
        InputError: The model reads no pairs or has no attention, or a text has no words.
    """
    if not can(model.config, "reads_pairs"):
        raise InputError(f"a {type(model).__name__} does not edit by retrieved pairs: nothing to explain")
    texts = {"input_ids": source, "retrieved_source_ids": pair[0], "retrieved_target_ids": pair[1]}
    for name, text in texts.items():
        if not text.strip():
            raise InputError(f"the text of `{name}` is blank")
    inputs = {
        name: tokenizer(text, return_tensors="pt", verbose=False)["input_ids"].to(model.device)
        for name, text in texts.items()
    }
    generated = cast(Any, model).generate(**inputs, **{**generate_kwargs, "num_return_sequences": 1})
    # The whole output at once: beams would have to be traced back otherwise.
    outputs = model(**inputs, decoder_input_ids=generated[:, :-1], output_attentions=True)
    if outputs.cross_attentions is None:
        raise InputError(f"this {type(model).__name__} has no attention: nothing to explain")
    retrieved = outputs.get("retrieved_attentions")

    def tokens(ids: torch.Tensor) -> list[str]:
        return cast(list[str], tokenizer.convert_ids_to_tokens(ids[0].tolist()))

    return EditExplanation(
        source=source,
        retrieved_source=pair[0],
        retrieved_target=pair[1],
        paraphrase=cast(str, tokenizer.decode(generated[0], skip_special_tokens=True)),
        source_tokens=tokens(inputs["input_ids"]),
        retrieved_tokens=tokens(inputs["retrieved_source_ids"]),
        output_tokens=tokens(generated[:, 1:]),
        source_weights=mean_weights(outputs.cross_attentions),
        retrieved_weights=None if retrieved is None else mean_weights(retrieved),
    )


def mean_weights(layers: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The mean over layers and heads of weights `(1, heads, output, memory)`."""
    return torch.cat(layers).float().mean(dim=(0, 1)).cpu()


def format_maps(explanation: EditExplanation) -> str:
    """The attention of an edit as HTML: a heat map for p, if the model has one, and one for x."""
    maps = {"Micro edits taken, by token of p": (explanation.retrieved_tokens, explanation.retrieved_weights)}
    maps |= {"Attention to x": (explanation.source_tokens, explanation.source_weights)}
    tables = [
        f"<h2>{title}</h2>\n{format_heat_map(explanation.output_tokens, tokens, weights.tolist())}"
        for title, (tokens, weights) in maps.items()
        if weights is not None
    ]
    note = "<p>Rows: tokens of the paraphrase. Weights in percent, the mean over layers and heads.</p>"
    return "\n".join([*tables, note])


def format_html(explanation: EditExplanation) -> str:
    """A standalone page without scripts: the four sentences, and heat maps for p and x."""
    sentences = {
        "source x": explanation.source,
        "retrieved p": explanation.retrieved_source,
        "its paraphrase q": explanation.retrieved_target,
        "paraphrase of x": explanation.paraphrase,
    }
    terms = "\n".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in sentences.items())
    return format_page("An edit", STYLE, f"<dl>\n{terms}\n</dl>\n{format_maps(explanation)}")


def format_page(title: str, style: str, body: str) -> str:
    """A standalone HTML page."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


# Red-green-blue of what is above and below 0, over whatever the page's background is. No cell is quite opaque, so that
# its number can be read both in black and in white.
WARM, COLD = "214, 92, 24", "38, 110, 214"
MOST_OPAQUE = 0.7


def format_heat_map(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """An HTML table of numbers `(rows, columns)` from -1 to 1, shown in percent, by a word for each row and column, in
    a box that may scroll sideways."""
    head = "".join(f'<th class="column">{html.escape(word)}</th>' for word in columns)
    lines = [
        f"<tr><th>{html.escape(word)}</th>{''.join(map(_format_cell, cells))}</tr>"
        for word, cells in zip(rows, values, strict=True)
    ]
    table = "\n".join(["<table>", f"<tr><th></th>{head}</tr>", *lines, "</table>"])
    return f'<div class="heat-map">\n{table}\n</div>'


def _format_cell(value: float) -> str:
    colour = COLD if value < 0 else WARM
    return f'<td style="background: rgba({colour}, {MOST_OPAQUE * abs(value):.2f})">{100 * value:.0f}</td>'


@dataclass(frozen=True)
class LevelExplanation:
    """A source and its paraphrase by levels."""

    paraphrase: str  # what the model wrote
    source: list[tuple[str, str]]  # the words of the source, each with its level, "phrase" or "sentence"
    # The same of the paraphrase; the level is the likelier one before the word was written.
    output: list[tuple[str, str]]


@torch.inference_mode()
def explain_levels(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str, **generate_kwargs
) -> LevelExplanation:
    """Paraphrase a sentence, and read off the levels of its words and of those written.

    Args:
        model: One that knows levels, in evaluation.
        tokenizer: Its tokenizer.
        text: The sentence.
        generate_kwargs: Handed to `model.generate`, such as `levels`, and `source_levels` as names or numbers.

    Raises:
        InputError: The model knows no levels, or the text has no words.
    """
    if not can(model.config, "has_levels"):
        raise InputError(f"a {type(model).__name__} has no levels: nothing to explain")
    if not text.strip():
        raise InputError("the text is blank")
    inputs, (outside,) = encode_inputs(tokenizer, [text], model=model)
    inputs = inputs.to(model.device)
    if generate_kwargs.get("source_levels") is not None:
        inputs["source_levels"] = read_levels(generate_kwargs.pop("source_levels"), inputs["input_ids"])
    generated = cast(Any, model).generate(**inputs, **{**generate_kwargs, "num_return_sequences": 1})
    outputs = model(**inputs, decoder_input_ids=generated[:, :-1], output_levels=True)

    def words(ids: torch.Tensor, levels: torch.Tensor) -> list[tuple[str, str]]:
        tokens = [outside.get(word) or cast(str, tokenizer.convert_ids_to_tokens(word)) for word in ids[0].tolist()]
        return [(token, LEVELS[level]) for token, level in zip(tokens, levels[0].tolist(), strict=True)]

    return LevelExplanation(
        paraphrase=decode_with_words(tokenizer, generated[0].tolist(), outside, skip_special_tokens=True),
        source=words(inputs["input_ids"], outputs.source_levels),
        output=words(generated[:, 1:], outputs.target_levels),
    )


def format_levels(explanation: LevelExplanation) -> str:
    """A standalone page without scripts: source and paraphrase, each word in the colour of its level."""
    sentences = {"source": explanation.source, "paraphrase": explanation.output}
    terms = "\n".join(f"<dt>{name}</dt><dd>{_colour(words)}</dd>" for name, words in sentences.items())
    legend = _colour([("phrase", "phrase"), ("template", "sentence")])
    return format_page("Levels", LEVEL_STYLE, f"<dl>\n{terms}\n</dl>\n<p>{legend}</p>")


def _colour(words: list[tuple[str, str]]) -> str:
    return " ".join(f'<span class="{level}" title="{level}">{html.escape(word)}</span>' for word, level in words)
