from __future__ import annotations

from collections import Counter

import pytest
import torch
from transformers import pipeline

from hf_paraphrase import HierarchicalLmConfig, HierarchicalLmForConditionalGeneration, HierarchicalLmTokenizer
from hf_paraphrase.models.search.embedding_paraphraser import Draws, Sampler
from hf_paraphrase.models.text.surface import restore_surface

TEXTS = ["a cab", "bad bed.", "a"]


@pytest.fixture(scope="module")
def tokenizer() -> HierarchicalLmTokenizer:
    return HierarchicalLmTokenizer.from_texts(["abcde. bed"], vocab_size=12)


@pytest.fixture(scope="module")
def model(tokenizer) -> HierarchicalLmForConditionalGeneration:
    torch.manual_seed(0)
    config = HierarchicalLmConfig(
        vocab_size=len(tokenizer),
        embedding_size=4,
        max_characters=4,
        max_words=3,
        word_encoder_sizes=(10, 8),
        value_size=6,
        key_size=4,
        word_decoder_hidden_size=5,
        word_decoder_sizes=(7, 5),
    )
    model = HierarchicalLmForConditionalGeneration(config).eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    with torch.no_grad():
        # It should write letters.
        model.lm_head.bias[5:] += 2.0
    return model


def written(groups: list[list]) -> list[list[str]]:
    return [[candidate.text for candidate in group] for group in groups]


def test_candidates_are_different_and_ranked(model, tokenizer):
    for source, group in zip(TEXTS, model.paraphrase(TEXTS, tokenizer, 12, seed=0), strict=True):
        texts = [candidate.text for candidate in group]
        assert 1 < len(texts) == len(set(texts)) <= 12
        assert all(text.strip() for text in texts)
        vectors = model.sentence_embeddings([source, *texts], tokenizer)
        expected = (vectors[1:] - vectors[0]).norm(dim=-1)
        torch.testing.assert_close(torch.tensor([c.distance for c in group]), expected, rtol=1e-4, atol=1e-5)
        assert expected.tolist() == sorted(expected.tolist())
        assert all(0 <= value <= 1 for c in group for value in (c.temperature, c.noise))
        assert len({c.temperature for c in group}) == len(group)


def test_a_text_s_candidates_do_not_depend_on_the_batch(model, tokenizer):
    together = model.paraphrase(TEXTS, tokenizer, 5, seed=3)
    for batch_size in (1, 5, 10):
        assert written(model.paraphrase(TEXTS, tokenizer, 5, seed=3, batch_size=batch_size)) == written(together)
    assert written([model.paraphrase(TEXTS[0], tokenizer, 5, seed=3)]) == written(together[:1])
    assert written(model.paraphrase(TEXTS, tokenizer, 5, seed=4)) != written(together)


def test_without_a_seed_torch_s_generator_decides(model, tokenizer):
    torch.manual_seed(7)
    first = model.paraphrase(TEXTS, tokenizer, 4)
    state = torch.get_rng_state()
    assert model.paraphrase(TEXTS, tokenizer, 4) != first
    torch.manual_seed(7)
    assert model.paraphrase(TEXTS, tokenizer, 4) == first
    assert torch.equal(torch.get_rng_state(), state)


def test_without_temperature_and_noise_it_is_greedy(model, tokenizer):
    (candidate,) = model.paraphrase("a cab", tokenizer, 6, temperature=0.0, noise=0.0)
    ids = model.generate(**tokenizer("a cab", return_tensors="pt"), max_new_tokens=256)
    assert candidate.text == tokenizer.decode(ids[0], skip_special_tokens=True)
    assert (candidate.temperature, candidate.noise) == (0, 0)


def test_copies_are_marked(model, tokenizer, monkeypatch):
    ids = tokenizer(["bad bed.", "a"], padding=True, return_tensors="pt").input_ids
    monkeypatch.setattr(model, "generate", lambda **options: ids)
    copy, other = model.paraphrase(" bad  bed. ", tokenizer, 2)
    assert copy.is_copy and copy.text == "bad bed." and copy.distance == pytest.approx(0, abs=1e-5)
    assert not other.is_copy


def test_blank_texts_have_no_candidates(model, tokenizer):
    assert model.paraphrase(["", " \n"], tokenizer, 3) == [[], []]
    assert model.paraphrase([], tokenizer) == []
    assert model.sentence_embeddings([], tokenizer).shape[0] == 0


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_every_row_is_sampled_at_its_temperature(temperature):
    count, scores = 6000, torch.tensor([2.0, 1.0, 0.0, -1.0]).log_softmax(-1)
    sampler = Sampler([Draws(0, place, count, temperature, 0.0, torch.device("cpu")) for place in (0, 1)])
    drawn = sampler(torch.zeros(2 * count, 1).long(), scores.expand(2 * count, -1)).argmax(-1).split(count)
    for part in drawn:
        frequencies = torch.bincount(part, minlength=4) / count
        torch.testing.assert_close(frequencies, (scores / temperature).softmax(-1), rtol=0, atol=0.03)
    assert not torch.equal(*drawn)


def test_word_embeddings_are_the_word_encoder_s(model, tokenizer):
    words = ["bad", "a", "bad", "...", "abcdefgh"]
    vectors = model.word_embeddings(words, tokenizer, batch_size=2)
    assert vectors.shape == (5, 8) and torch.equal(vectors[0], vectors[2])
    ids = tokenizer("a", return_tensors="pt", add_special_tokens=False).input_ids
    torch.testing.assert_close(vectors[1:2], model.embed_words(ids, torch.ones_like(ids)))
    with pytest.raises(ValueError, match="'a bad' is not a single word"):
        model.word_embeddings(["a bad"], tokenizer)


def test_sentence_embeddings_do_not_depend_on_the_batch(model, tokenizer):
    together = model.sentence_embeddings(TEXTS, tokenizer)
    alone = torch.cat([model.sentence_embeddings([text], tokenizer) for text in TEXTS])
    torch.testing.assert_close(together, alone)
    first = model.sentence_embeddings(TEXTS, tokenizer, layer=0)
    assert first.shape == together.shape and not torch.allclose(first, together)


def test_the_pipeline_selects_by_the_model_s_own_vectors(model, tokenizer):
    pipe = pipeline("text2text-generation", model=model, tokenizer=tokenizer)
    ranked = model.paraphrase(TEXTS, tokenizer, 6, seed=1, noise=0.5)
    expected = [next(c.text for c in group if not c.is_copy) for group in ranked]
    got = pipe([*TEXTS, " "], num_candidates=6, select="embedding", seed=1, noise=0.5, batch_size=2)
    assert [record["generated_text"] for record in got] == [*expected, ""]
    assert Counter(map(type, got)) == {dict: 4}
    with pytest.raises(ValueError, match="`num_beams`: a HierarchicalLm"):
        pipe(TEXTS, num_candidates=6, select="embedding", num_beams=3)
    restored = pipe(TEXTS, num_candidates=6, select="embedding", seed=1, noise=0.5, restore_surface=True)
    expected = [restore_surface(record["generated_text"], text) for record, text in zip(got, TEXTS, strict=False)]
    assert [record["generated_text"] for record in restored] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_candidates": 0}, "`num_candidates` must be at least 1"),
        ({"temperature": "normal"}, '`temperature` must be "uniform" or a number'),
        ({"noise": -1.0}, "`noise` must be"),
        ({"noise": float("nan")}, "`noise` must be"),
    ],
)
def test_impossible_arguments_are_refused(model, tokenizer, options, message):
    with pytest.raises(ValueError, match=message):
        model.paraphrase("a", tokenizer, **options)
