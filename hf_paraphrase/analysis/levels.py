"""Which words a model that knows levels took for phrases, and which for the sentence's template."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import InputError
from ..models.dnpg.levels import LEVELS, read_levels
from ..models.layers.portable import can
from ..models.text.encoded_inputs import decode_with_words, encode_inputs
from .edits import format_page

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8").strip()


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
    return format_page("Levels", STYLE, f"<dl>\n{terms}\n</dl>\n<p>{legend}</p>")


def _colour(words: list[tuple[str, str]]) -> str:
    return " ".join(f'<span class="{level}" title="{level}">{html.escape(word)}</span>' for word, level in words)
