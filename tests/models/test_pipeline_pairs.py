"""The text2text pipeline with models that edit by retrieved pairs, and with candidates to choose from."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from transformers import pipeline

from hf_paraphrase import (
    CoupledLstmConfig,
    CoupledLstmForSequenceClassification,
    EditLstmConfig,
    EditLstmForConditionalGeneration,
    FsetConfig,
    FsetForConditionalGeneration,
    ParaphraseRetriever,
)
from hf_paraphrase.generation import select_candidates
from hf_paraphrase.generation.engine import generate_paraphrases
from hf_paraphrase.models.text.candidate_selection import select_by_jaccard
from hf_paraphrase.tokenization import train_word_tokenizer

from .tiny import SPECIAL_IDS, WORDS, save, tiny_bart, word_tokenizer

PAIRS = [
    ("the cat sat", "a cat sat"),
    ("the dog sat", "the dog on the mat"),
    ("how do i learn ?", "how learn faster ?"),
]


def tiny_fset() -> FsetForConditionalGeneration:
    """One whose outputs depend on its input, on the pair and on what it has written, which wider weights undo."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "provider_layers": 1, "provider_heads": 2}
    config = FsetConfig(vocab_size=len(WORDS), initializer_range=0.3, **sizes, **SPECIAL_IDS)
    model = FsetForConditionalGeneration(config).eval()
    model.generation_config.max_new_tokens = 5
    model.generation_config.num_beams = 2
    return model


def tiny_copy_editor() -> EditLstmForConditionalGeneration:
    """One that copies, and hardly ever generates."""
    torch.manual_seed(0)
    config = EditLstmConfig(
        vocab_size=len(WORDS),
        copy=True,
        attention="additive",
        embedding_size=8,
        hidden_size=8,
        num_layers=1,
        initializer_range=1.0,
        **SPECIAL_IDS,
    )
    model = EditLstmForConditionalGeneration(config).eval()
    model.model.decoder.copy.gate.bias.data[0] = -9.0
    model.generation_config.max_new_tokens = 5
    model.generation_config.num_beams = 2
    return model


def tiny_matcher(folder) -> tuple:
    torch.manual_seed(0)
    tokenizer = train_word_tokenizer(WORDS, vocab_size=30, sentence_pairs=True)
    config = CoupledLstmConfig(
        vocab_size=len(tokenizer), embedding_size=4, hidden_size=4, num_blocks=1, initializer_range=1.0
    )
    return CoupledLstmForSequenceClassification(config), folder, tokenizer


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("fset")
    save(tiny_fset(), folder)
    ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(folder / "retriever")
    return str(folder)


@pytest.fixture(scope="module")
def pipe(checkpoint):
    return pipeline("text2text-generation", model=checkpoint, device="cpu")


def generate(pipe, text: str, pair: tuple[str, str], **options) -> list[str]:
    ids = [pipe.tokenizer(part, return_tensors="pt")["input_ids"] for part in (text, *pair)]
    names = ("input_ids", "retrieved_source_ids", "retrieved_target_ids")
    out = pipe.model.generate(**dict(zip(names, ids, strict=True)), **options)
    return pipe.tokenizer.batch_decode(out, skip_special_tokens=True)


def test_the_nearest_pair_of_the_checkpoint_s_retriever(pipe):
    assert pipe("the dog on the mat", return_retrieved=True) == [
        {
            "generated_text": generate(pipe, "the dog on the mat", PAIRS[1])[0],
            "retrieved_source": PAIRS[1][0],
            "retrieved_target": PAIRS[1][1],
        }
    ]


def test_a_paraphrase_by_each_of_several_pairs(pipe):
    texts = ["the cat", "", "how do i learn faster ?"]
    groups = pipe(texts, num_neighbors=2, return_retrieved=True, batch_size=4)
    assert [len(group) for group in groups] == [2, 2, 2]
    assert [record["generated_text"] for record in groups[1]] == ["", ""]
    assert groups[2][0]["retrieved_target"] == PAIRS[2][1]
    for text, group in zip(texts[::2], groups[::2], strict=True):
        for record in group:
            pair = record["retrieved_source"], record["retrieved_target"]
            assert record["generated_text"] == generate(pipe, text, pair)[0]


def test_pairs_given_by_the_user(pipe):
    pair = ("x y", "y z")
    expected = [{"generated_text": generate(pipe, text, pair)[0]} for text in ("the cat", "a dog")]
    assert pipe(["the cat", "a dog"], retrieved=[pair]) == expected
    assert len(pipe("the cat", retrieved=[pair, *PAIRS], num_return_sequences=2)) == 8


def test_words_outside_the_vocabulary_are_copied_into_the_text():
    model, tokenizer = tiny_copy_editor(), word_tokenizer()
    pairs = [("zurich zurich", "basel"), ("geneva", "geneva basel zug"), PAIRS[0]]
    pipe = pipeline("text2text-generation", model=model, tokenizer=tokenizer, device="cpu", min_new_tokens=3)
    texts, options = ["the cat", "", "a dog on basel"], {"min_new_tokens": 3}
    groups = pipe(texts, retrieved=pairs)
    assert pipe(texts, retrieved=pairs, batch_size=3) == groups
    assert [[record["generated_text"] for record in pipe(text, retrieved=pairs)] for text in texts] == [
        [record["generated_text"] for record in group] for group in groups
    ]
    assert [record["generated_text"] for record in groups[1]] == ["", "", ""]
    written = set()
    for place in (0, 2):
        for pair, record in zip(pairs, groups[place], strict=True):
            words = set(record["generated_text"].split()) - {"</s>"}
            outside = words - set(WORDS)
            assert outside <= set(" ".join(pair).split())
            written |= outside
            (output,) = generate_paraphrases(model, tokenizer, [texts[place]], pairs=[pair], **options)
            assert output == record["generated_text"]
    assert len(written) > 1
    assert len(pipe("the cat", retrieved=pairs, num_return_sequences=2, return_tensors=True)) == 6


def test_streams_are_read_in_parts(pipe):
    texts = ["the cat", "a dog", "x y"]
    assert list(pipe(iter(texts), num_neighbors=2)) == pipe(texts, num_neighbors=2)
    assert pipe([]) == []


def test_new_pairs_take_effect_at_once(pipe):
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard")
    retriever.add([("z z z", "x")])
    (record,) = pipe("z", retriever=retriever, return_retrieved=True)
    assert record["retrieved_target"] == "x"


def test_candidates_are_chosen_by_jaccard_similarity(pipe):
    pair = PAIRS[0]
    beam = generate(pipe, "the cat sat", pair, num_beams=4, num_return_sequences=4)

    def similarity(text: str) -> float:
        words, source = set(text.split()), {"the", "cat", "sat"}
        return len(words & source) / len(words | source)

    options = {"retrieved": [pair], "num_candidates": 4}
    assert pipe("the cat sat", select="jaccard", **options) == [{"generated_text": max(beam, key=similarity)}]
    assert pipe("the cat sat", **options) == [{"generated_text": beam[0]}]
    last = pipe("the cat sat", select=lambda sources, candidates: [len(group) - 1 for group in candidates], **options)
    assert last == [{"generated_text": beam[-1]}]


def test_candidates_of_any_model(tmp_path):
    bart = pipeline("text2text-generation", model=save(tiny_bart(), tmp_path), num_candidates=3, select="jaccard")
    options = {"max_new_tokens": 4, "num_beams": 4}
    all_three = bart(["the cat sat", "a dog"], num_candidates=None, select=None, num_return_sequences=3, **options)
    chosen = bart(["the cat sat", "a dog"], **options)
    places = select_by_jaccard(["the cat sat", "a dog"], [[r["generated_text"] for r in group] for group in all_three])
    assert chosen == [group[place] for group, place in zip(all_three, places, strict=True)]
    with pytest.raises(ValueError, match="`num_neighbors`: a BartForConditionalGeneration edits by no retrieved pair"):
        bart("the cat", num_neighbors=2)


def test_candidates_are_chosen_by_a_matcher(pipe, tmp_path):
    matcher = save(*tiny_matcher(tmp_path))
    options = {"retrieved": PAIRS[:1], "num_candidates": 4}
    beam = generate(pipe, "the cat sat", PAIRS[0], num_beams=4, num_return_sequences=4)
    (place,) = select_candidates(["the cat sat"], [beam], "matcher", matcher=matcher)
    chosen = pipe("the cat sat", select="matcher", matcher=matcher, **options)
    assert chosen == [{"generated_text": beam[place]}]
    loaded = pipeline("text-classification", model=matcher)
    assert pipe("the cat sat", select="matcher", matcher=loaded, **options) == chosen
    outputs = generate_paraphrases(
        pipe.model,
        pipe.tokenizer,
        ["the cat sat"],
        pairs=PAIRS[:1],
        num_candidates=4,
        select="matcher",
        matcher=matcher,
    )
    assert outputs == [beam[place]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retrieved": [("a",)]}, "`retrieved` must be a list of pairs"),
        ({"retrieved": "a b"}, "`retrieved` must be a list of pairs"),
        ({"retrieved": [("a", " ")]}, "all of them with text"),
        ({"select": "jaccard"}, "say how many"),
        ({"num_candidates": 2, "return_tensors": True}, "leave `num_return_sequences`"),
        ({"num_candidates": 2, "select": "luck"}, "`by` must be one of"),
        ({"num_candidates": 2, "select": "matcher"}, "to choose by 'matcher' needs `matcher`"),
        ({"num_candidates": 2, "matcher": "a"}, "with `select='matcher'` alone"),
        ({"select": "matcher", "matcher": "a"}, "say how many"),
        ({"num_neighbors": 0}, "`num_neighbors` must be at least 1, not 0"),
        ({"num_candidates": 0}, "`num_candidates` must be at least 1, not 0"),
        ({"num_neighbors": 2, "retrieved": [("a", "b")]}, "pass one of the two"),
    ],
)
def test_wrong_arguments_are_named(pipe, options, message):
    with pytest.raises(ValueError, match=message):
        pipe("the cat", **options)


def test_a_checkpoint_without_retriever_says_so(tmp_path):
    pipe = pipeline("text2text-generation", model=save(tiny_fset(), tmp_path))
    with pytest.raises(ValueError, match="has no folder retriever"):
        pipe("the cat")
    assert len(pipe("the cat", retrieved=PAIRS)) == 3


ALONE = """
import sys
sys.modules["hf_paraphrase"] = None  # as where it is not installed
from transformers import pipeline
for folder in sys.argv[1:]:
    pipe = pipeline("text2text-generation", model=folder, trust_remote_code=True)
    options = {"num_candidates": 2, "select": "jaccard", "min_new_tokens": 3}
    print(pipe("the cat", retrieved=[("zug", "geneva basel zurich")], **options))
    try:
        pipe("the cat")
    except ValueError as error:
        print(error)
"""


def test_run_without_the_package_by_a_supplied_pair(checkpoint, tmp_path):
    copying = save(tiny_copy_editor(), tmp_path / "copying")
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-P", "-c", ALONE, checkpoint, copying]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("generated_text") == 2
    assert done.stdout.count("needs the package hf_paraphrase") == 2
    copied = done.stdout.splitlines()[2]
    assert any(word in copied for word in ("zug", "geneva", "basel", "zurich"))
