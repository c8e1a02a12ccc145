from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.engine import (
    compute_perplexity,
    generate_outputs,
    generate_paraphrases,
    generate_several,
)
from hf_paraphrase.generation.loading import load_paraphraser
from hf_paraphrase.models.search.generation_request import GenerationRequest
from hf_paraphrase.models.search.pipeline_text2text import Text2TextGenerationPipeline
from hf_paraphrase.models.text.surface import restore_surface
from tests.models.test_pipeline_pairs import tiny_copy_editor, tiny_fset
from tests.models.tiny import tiny_bart, tiny_t5, word_tokenizer

SOURCES = [
    "how do i cook",
    "",
    "what is best way to make bread ?",
    "  ",
    "bread",
    "can you cook the bread fast ?",
]
TARGETS = ["how to cook", "x", "way to make bread", "y", "what is bread ?", " "]


def test_batches_give_what_single_texts_give_in_order() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    expected = []
    for source in SOURCES:
        ids = model.generate(**tokenizer(source, return_tensors="pt"), num_beams=3, max_new_tokens=12)[0]
        expected.append(tokenizer.decode(ids, skip_special_tokens=True).strip() if source.strip() else "")
    assert len(set(expected)) > 2
    for batch_size in (1, 3, 10):
        options = {"batch_size": batch_size, "num_beams": 3, "max_new_tokens": 12}
        assert generate_paraphrases(model, tokenizer, SOURCES, **options) == expected


@pytest.mark.parametrize("decoding", ["beam", "diverse_beam", "dips"])
def test_several_outputs_are_candidates(decoding: str) -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    options = {"decoding": decoding, "max_new_tokens": 8}
    several = generate_several(model, tokenizer, SOURCES, 3, batch_size=2, **options)
    assert [len(group) for group in several] == [3] * len(SOURCES) and several[1] == ["", "", ""]
    chosen = generate_paraphrases(model, tokenizer, SOURCES, num_candidates=3, select="jaccard", **options)
    assert all(text in group for text, group in zip(chosen, several, strict=True))
    first = generate_paraphrases(model, tokenizer, SOURCES, num_candidates=3, **options)
    assert first == [group[0] for group in several]


# One that is not a pair's word, and one that the copying model may take out of it.
PAIRS = [("zug the cat", "basel zug sat"), ("how do i learn ?", "how learn faster geneva ?")]
DECODINGS = [
    {"num_beams": 1},
    {"num_beams": 3},
    {"num_return_sequences": 5},
    {"num_beam_groups": 2, "diversity_penalty": 2.0, "num_return_sequences": 3},
    {"decoding": "diverse_beam", "num_return_sequences": 3, "exclude_source": True},
    {"decoding": "dips", "num_return_sequences": 3},
    {"decoding": "dips", "num_beams": 2, "fidelity": 0.0},
    {"num_candidates": 4, "select": "jaccard"},
    {
        "num_candidates": 4,
        "num_beams": 2,
        "select": lambda sources, candidates: [len(group) - 1 for group in candidates],
    },
    {"num_candidates": 3, "decoding": "dips", "select": "jaccard"},
]


@pytest.mark.parametrize("options", DECODINGS)
@pytest.mark.parametrize("make", [tiny_bart, tiny_t5, tiny_fset, tiny_copy_editor])
def test_the_pipeline_and_batches_write_the_same(make, options: dict) -> None:
    """Equal requests give equal texts and scores, whoever asks, and whatever else is in the batch."""
    model, tokenizer, sources = make(), word_tokenizer(), SOURCES[:3]
    options = {"max_new_tokens": 4, "min_new_tokens": 2, "output_scores": True, **options}
    pipe = Text2TextGenerationPipeline(model=model, tokenizer=tokenizer, device="cpu")
    request = GenerationRequest.from_kwargs(**options, defaults=pipe.default_parameters)
    for pair in PAIRS if make in (tiny_fset, tiny_copy_editor) else [None]:
        retrieved = {} if pair is None else {"retrieved": [pair]}
        pairs = None if pair is None else [pair] * len(sources)
        expected = [
            [(record["generated_text"], record["score"]) for record in pipe(source, **retrieved, **options)]
            for source in sources
        ]
        together = pipe((source for source in sources), batch_size=3, **retrieved, **options)
        written = [[(record["generated_text"], record["score"]) for record in group] for group in together]
        assert_same(written, expected)
        for batch_size in (1, 3):
            outputs = generate_outputs(model, tokenizer, sources, request, batch_size=batch_size, pairs=pairs)
            if request.num_candidates is not None:
                places = request.choose(sources, [[output.text for output in group] for group in outputs])
                outputs = [[group[place]] for group, place in zip(outputs, places, strict=True)]
            assert_same(outputs, expected)


def assert_same(written: list[list[tuple]], expected: list[list[tuple]]) -> None:
    assert [[one[0] for one in group] for group in written] == [[one[0] for one in group] for group in expected]
    for group, others in zip(written, expected, strict=True):
        for (_, score, *_), (_, other) in zip(group, others, strict=True):
            assert score == (None if other is None else pytest.approx(other, abs=1e-4))


def test_words_of_the_pair_are_copied_in_batches_too() -> None:
    pairs = [PAIRS[row % 2] for row in range(len(SOURCES))]
    written = generate_several(tiny_copy_editor(), word_tokenizer(), SOURCES, 2, pairs=pairs, min_new_tokens=2)
    words = {word for group in written for text in group for word in text.split()}
    assert words & {"zug", "basel", "geneva"}


def test_scores_are_those_of_the_likeliest_first() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    request = GenerationRequest.from_kwargs(num_candidates=4, output_scores=True, max_new_tokens=5)
    outputs = generate_outputs(model, tokenizer, SOURCES, request)
    assert [len(group) for group in outputs] == [4] * len(SOURCES)
    assert all(output.text == "" and output.score is None for output in outputs[1])
    for source, group in zip(SOURCES, outputs, strict=True):
        if source.strip():
            scores = [output.score for output in group]
            assert scores == sorted(scores, reverse=True) and len(set(scores)) > 1
    texts = [[output.text for output in group] for group in outputs]
    assert texts == generate_several(model, tokenizer, SOURCES, 4, max_new_tokens=5)
    request = GenerationRequest.from_kwargs(num_candidates=2, do_sample=True, max_new_tokens=5)
    assert {output.score for group in generate_outputs(model, tokenizer, SOURCES, request) for output in group} == {
        None
    }


def test_only_empty_sources() -> None:
    assert generate_paraphrases(tiny_bart(), word_tokenizer(), ["", "\n"]) == ["", ""]


def test_training_mode_is_left_as_it_was() -> None:
    model = tiny_bart().train()
    generate_paraphrases(model, word_tokenizer(), ["cook"], max_new_tokens=2)
    assert model.training


def test_perplexity_weighs_every_token_alike() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    losses = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        if source.strip() and target.strip():
            labels = tokenizer(target, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                log_probs = model(**tokenizer(source, return_tensors="pt"), labels=labels).logits.log_softmax(-1)
            losses += (-log_probs[0].gather(-1, labels[0][:, None])[:, 0]).tolist()
    for batch_size in (1, 2, 64):
        result = compute_perplexity(model, tokenizer, SOURCES, TARGETS, batch_size=batch_size)
        assert result["tokens"] == len(losses) == 14
        assert result["perplexity"] == pytest.approx(math.exp(sum(losses) / len(losses)), rel=1e-4)


def test_perplexity_of_nothing() -> None:
    with pytest.raises(InputError, match="no perplexity to compute"):
        compute_perplexity(tiny_bart(), word_tokenizer(), ["", "a"], ["a", " "])


def test_load_paraphraser_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere is neither a checkpoint folder nor a Hub repository"):
        load_paraphraser(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no loadable model: .*config.json"):
        load_paraphraser(tmp_path)


def test_load_paraphraser(tmp_path: Path) -> None:
    tiny_bart().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="holds a model but no tokenizer"):
        load_paraphraser(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    model, tokenizer = load_paraphraser(tmp_path, device="cpu")
    loaded, fresh = (generate_paraphrases(one, tokenizer, SOURCES, max_new_tokens=12) for one in (model, tiny_bart()))
    assert loaded == fresh


def test_case_and_spacing_are_restored_on_request_alone() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    sources = ["How do I Cook ?", "  ", "the Cat and the Dog"]
    options = {"num_beams": 2, "max_new_tokens": 6}
    plain = generate_several(model, tokenizer, sources, 2, **options)
    restored = generate_several(model, tokenizer, sources, 2, restore_surface=True, **options)
    pairs = zip(plain, sources, strict=True)
    assert restored == [[restore_surface(text, source) for text in group] for group, source in pairs] != plain
