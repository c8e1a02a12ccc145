"""Whether a DNPG that is trained as its recipe says takes questions apart as the grammar made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
import torch

from hf_paraphrase.datasets import synthetic_questions as grammar
from hf_paraphrase.models.dnpg.levels import PHRASE, SENTENCE
from hf_paraphrase.models.search.beam_search import beam_search
from hf_paraphrase.tokenization import train_word_tokenizer
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import load_recipe
from hf_paraphrase.training.tasks.decompose import DecomposeTask

ROWS, BATCH = 500, 50


def word_with_slots(meaning, template: str, choose) -> tuple[str, list[tuple[int, int]]]:
    """A meaning in the words of a template, and for each slot the places of its first letter and behind its last."""
    template = grammar.CHOICE.sub(lambda match: choose(grammar._alternatives(match[1])), template)
    text, slots, end = "", [], 0
    for match in grammar.FIELD.finditer(template):
        text += template[end : match.start()]
        slot = grammar.FORMS[match[2]](choose(meaning[1][match[1]].split("|")))
        slots.append((len(text), len(text) + len(slot)))
        text, end = text + slot, match.end()
    text += template[end:]
    return text[0].upper() + text[1:], slots


def draw_questions(tokenizer) -> Iterator[tuple[list[int], list[int]]]:
    """Questions of meanings of the split `test`: their tokens, and the grammar's own level of each."""
    choose = grammar._chooser("levels")
    while True:
        meaning = grammar._draw_meaning(choose)
        if grammar.split_of(meaning, 42) != "test":
            continue
        text, slots = word_with_slots(meaning, choose(grammar.FRAMES[meaning[0]]), choose)
        encoded = tokenizer(text, return_offsets_mapping=True)
        in_slot = [any(start <= first < end for start, end in slots) for first, _ in encoded["offset_mapping"]]
        yield encoded["input_ids"], [PHRASE if is_in else SENTENCE for is_in in in_slot]


def survive(source: list[int], levels: list[int], level: int, written: list[int]) -> bool:
    """Whether all words of a level, but for the end mark, stand in an output."""
    kept = Counter(word for word, own in zip(source[:-1], levels[:-1], strict=True) if own == level)
    return kept <= Counter(written)


@pytest.mark.slow
def test_the_trained_recipe_takes_apart_and_keeps_what_it_is_told_to(tmp_path):
    train(load_recipe("dnpg-synthetic").override({"disable_tqdm": True}), tmp_path)
    model = DecomposeTask.auto_class.from_pretrained(tmp_path).eval()
    tokenizer = DecomposeTask(load_recipe("dnpg-synthetic").training).load_tokenizer(str(tmp_path))
    questions = list(islice(draw_questions(tokenizer), ROWS))
    agree, words, survived, changed = 0, 0, Counter(), Counter()
    for first in range(0, ROWS, BATCH):
        rows = questions[first : first + BATCH]
        inputs = tokenizer.pad({"input_ids": [ids for ids, _ in rows]}, return_tensors="pt")
        with torch.no_grad():
            encoded = model.get_encoder()(**inputs)
        for (_, levels), found in zip(rows, encoded.levels.argmax(-1).tolist(), strict=True):
            agree += sum(own == one for own, one in zip(levels[:-1], found, strict=False))
            words += len(levels) - 1
        for mode, kept in (("phrase", SENTENCE), ("sentence", PHRASE)):
            outputs = model.generate(
                **inputs, levels=mode, num_beams=3, max_new_tokens=32, custom_generate=beam_search
            )
            for (ids, levels), written in zip(rows, outputs.tolist(), strict=True):
                survived[mode] += survive(ids, levels, kept, written)
                changed[mode] += not survive(ids, levels, PHRASE + SENTENCE - kept, written)
    assert agree >= 0.8 * words
    assert survived["phrase"] >= 0.8 * ROWS and survived["sentence"] >= 0.8 * ROWS
    # And it rewrites the rest: nearly every template, where that is asked for.
    assert changed["sentence"] >= 0.5 * ROWS


def test_slots_are_where_the_grammar_put_them():
    """What is measured above, on the questions themselves."""
    choose = grammar._chooser("words")
    meanings = (grammar._draw_meaning(choose) for _ in range(3000))
    texts = [grammar.word_meaning(one, choose(grammar.FRAMES[one[0]]), choose) for one in meanings]
    tokenizer, seen = train_word_tokenizer(texts, 4000), 0
    for ids, levels in islice(draw_questions(tokenizer), 20):
        assert ids[-1] == tokenizer.eos_token_id and levels[-1] == SENTENCE and PHRASE in levels
        assert survive(ids, levels, PHRASE, ids) and survive(ids, levels, SENTENCE, ids)
        place = levels.index(PHRASE)
        rest = ids[:place] + ids[place + 1 :]
        if ids[place] not in rest:
            seen += 1
            assert not survive(ids, levels, PHRASE, rest) and survive(ids, levels, SENTENCE, rest)
    assert seen > 10
