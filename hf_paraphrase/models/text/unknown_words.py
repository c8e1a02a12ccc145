"""Words of the source in place of unknown words in outputs, and of rare ones that were copied wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import cast

import torch
from torch import Tensor
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from .encoded_inputs import control_ids


def can_replace_unknown(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether unknown words can be replaced: see `check_replaceable`."""
    return getattr(model, "attends_to_words", True) and tokenizer.is_fast


def check_replaceable(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise ValueError unless the model attends to source words, and the tokenizer has their offsets."""
    # Models of transformers all do.
    if not getattr(model, "attends_to_words", True):
        raise ValueError(
            f"`replace_unknown`: this {type(model).__name__} attends to no words of the source that could stand for "
            "unknown ones"
        )
    if not tokenizer.is_fast:
        raise ValueError("`replace_unknown` needs a tokenizer that knows where its tokens stand, a fast one")


def read_words_of_source(inputs: BatchEncoding, texts: Sequence[str]) -> list[list[str]]:
    """For each text the words that its tokens, without padding, are of; "" for end marks and control tokens.

    `inputs` are the tokenizer's output for the texts.
    """
    found = [
        [
            "" if word is None else text[slice(*cast(tuple[int, int], encoding.word_to_chars(word)))].strip()
            for word, is_real in zip(encoding.word_ids, encoding.attention_mask, strict=True)
            if is_real
        ]
        for text, encoding in zip(texts, inputs.encodings or (), strict=True)
    ]
    # A control token was put before a text after it was encoded.
    lengths = inputs["attention_mask"].sum(1).tolist()
    return [[""] * (length - len(words)) + words for length, words in zip(lengths, found, strict=True)]


def find_attended(
    model: PreTrainedModel, inputs: Mapping[str, Tensor], sequences: Tensor, tokenizer: PreTrainedTokenizerBase
) -> Tensor:
    """Find the word of the source that a model attended to most when it wrote an unknown one.

    The weights are the mean over the heads of the last layer that attends to the source. They are recomputed from the
    finished sequences, which works for any search, and only for sequences with an unknown word.

    Args:
        inputs: The inputs, each `(texts, source_length)`.
        sequences: `(texts, sequences of each, length)`, from the start token on.
        tokenizer: Knows the unknown word and which tokens are not words.

    Returns:
        Of the shape of `sequences`: the number of the attended token among those of its source, without padding; -1
        where a word is known, or the source has none.

    Source: Jean et al. 2015, On Using Very Large Target Vocabulary for Neural Machine Translation, section 3.3; in one
    language the word itself stands for its translation.
    """
    attended = torch.full_like(sequences, -1)
    is_unknown = torch.zeros_like(sequences, dtype=torch.bool)
    if tokenizer.unk_token_id is not None:
        is_unknown[..., 1:] = sequences[..., 1:] == tokenizer.unk_token_id
    rows, places = is_unknown.any(-1).nonzero(as_tuple=True)
    if not len(rows):
        return attended
    inputs = {name: tensor[rows] for name, tensor in inputs.items()}
    written = sequences[rows, places]
    with torch.no_grad(), _with_weights(model):
        outputs = model(**inputs, decoder_input_ids=written[:, :-1], output_attentions=True, use_cache=False)
    weights = outputs.cross_attentions[-1].mean(dim=1)
    special = {*tokenizer.all_special_ids, *control_ids(model.config, tokenizer)} - {tokenizer.unk_token_id}
    is_real = inputs["attention_mask"].bool()
    is_word = is_real & ~torch.isin(inputs["input_ids"], torch.tensor(sorted(special), device=is_real.device))
    columns = weights.masked_fill(~is_word.unsqueeze(1), -1.0).argmax(dim=-1)
    numbers = (is_real.cumsum(dim=1) - 1).gather(1, columns)
    is_found = is_unknown[rows, places][:, 1:] & is_word.any(dim=1, keepdim=True)
    attended[rows, places, 1:] = numbers.where(is_found, -1)
    return attended


def put_words(
    ids: Sequence[int], attended: Sequence[int], source: Sequence[str], outside_words: Mapping[int, str]
) -> tuple[list[int], dict[int, str]]:
    """Give each replaced word its own id, for `decode_with_words`.

    `attended` is of `find_attended`, `source` of `read_words_of_source`; `outside_words` have an id already. Returns
    the sequence with these ids, and all words outside the vocabulary by their ids.
    """
    first = max([*ids, *outside_words]) + 1
    replaced = {first + number: source[number] for number in attended if number >= 0}
    ids = [word if number < 0 else first + number for word, number in zip(ids, attended, strict=True)]
    return ids, {**outside_words, **replaced}


@contextmanager
def _with_weights(model: PreTrainedModel) -> Iterator[None]:
    """Let a model's attention compute its weights, which its faster implementations do not have."""
    implementation = model.config._attn_implementation
    if implementation in (None, "eager"):
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(implementation)


LETTERS = re.compile(r"[^\W_]+")
# Least sub-words of a word that can have been copied wrongly, and of the wrong copy.
RARE, BROKEN = 2, 3
LIKE = 0.6  # of `difflib`


def mend_miscopied_words(tokenizer: PreTrainedTokenizerBase, text: str, source: Iterable[str]) -> str:
    """Replace words of many sub-words that are not in the source by the rare words of it that they resemble.

    "Duraimrugan" becomes "Duraimurugan" where the source has that word and the text has not. Inflections stay:
    neither word may begin with the other. A tokenizer of words mends nothing: each is one token. `text` is an output,
    `source` the words of its source.
    """
    ours, theirs = (list(dict.fromkeys(LETTERS.findall(words))) for words in (text, " ".join(source)))
    present, known = ({word.lower() for word in words} for words in (ours, theirs))
    invented = [word for word in ours if word.lower() not in known and len(tokenizer.tokenize(word)) >= BROKEN]
    if not invented:
        return text
    lost = [word for word in theirs if word.lower() not in present and len(tokenizer.tokenize(word)) >= RARE]
    for wrong in invented:
        for right in get_close_matches(wrong, lost, n=1, cutoff=LIKE):
            if not (wrong.startswith(right) or right.startswith(wrong)):
                lost.remove(right)
                text = re.sub(rf"(?<![^\W_]){wrong}(?![^\W_])", right, text)
    return text
