"""Adequacy and fluency, against what the same models say of one text at a time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, pipeline

from hf_paraphrase import CoupledLstmConfig, CoupledLstmForSequenceClassification
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.judges import Judged, OwnFluency, load_adequacy, load_causal_fluency
from hf_paraphrase.generation.writers import Ask, ModelWriter, write
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.tiny import WORDS, save, tiny_gpt2, tiny_matcher, word_tokenizer

from .paraphrasers import (
    PAIRS,
    PARAPHRASERS,
    character_tokenizer,
    make_paraphraser,
    random_sentences,
    tiny_hierarchical_lm,
)

PAIR = PAIRS[0]
JUDGED = [
    Judged("the cat sat on the mat", "a dog sat"),
    Judged("the cat sat on the mat", "on a mat the cat sat"),
    Judged("how do i learn faster ?", "learn"),
    Judged("can you make bread", "can you make bread or zebra"),
]


def probability_by_hand(paraphraser, source: str, target: str, pair: tuple[str, str] | None) -> float:
    """Token by token, each from all before it, without a batch."""
    model, tokenizer = paraphraser.model, paraphraser.tokenizer
    inputs = {"input_ids": tokenizer(source, return_tensors="pt")["input_ids"]}
    for name, text in zip(("retrieved_source_ids", "retrieved_target_ids"), pair or (), strict=False):
        inputs[name] = tokenizer(text, return_tensors="pt")["input_ids"]
    start = model.config.decoder_start_token_id
    written, total = [model.generation_config.bos_token_id if start is None else start], 0.0
    ids = tokenizer(text_target=target)["input_ids"]
    for token in ids:
        with torch.no_grad():
            logits = model(**inputs, decoder_input_ids=torch.tensor([written])).logits[0, -1]
        total += float(logits.double().log_softmax(0)[token])
        written.append(token)
    return math.exp(total / len(ids))


@pytest.mark.parametrize("name", PARAPHRASERS)
def test_round_trip_and_own_fluency_token_by_token(name: str) -> None:
    """A pair that leads from the text to its candidate leads, the other way round, back."""
    paraphraser = make_paraphraser(name)
    pair = PAIR if paraphraser.retriever else None
    judged = [one._replace(pair=pair) for one in JUDGED]
    back = pair and pair[::-1]
    judge = load_adequacy("round_trip", paraphraser.writer)
    expected = [probability_by_hand(paraphraser, one.candidate, one.source, back) for one in judged]
    assert judge(judged, 3) == pytest.approx(expected, rel=1e-3)
    reader = OwnFluency(paraphraser.writer)
    expected = [probability_by_hand(paraphraser, one.source, one.candidate, pair) for one in judged]
    assert reader(judged, 2) == pytest.approx(expected, rel=1e-3)
    assert len(set(expected)) > 1 and judge([], 2) == reader([], 2) == []


@pytest.mark.parametrize("begins", [True, False])
def test_fluency_by_a_causal_model_token_by_token(begins: bool, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, tokenizer = tiny_gpt2(), word_tokenizer(end="")
    torch.nn.init.normal_(model.transformer.wte.weight)
    if not begins:
        tokenizer.bos_token = None
    reader = load_causal_fluency(save(model, tmp_path, tokenizer), torch.device("cpu"))
    expected = []
    for one in JUDGED:
        ids = [1] * begins + tokenizer(one.candidate)["input_ids"]
        with torch.no_grad():
            steps = [
                float(model.eval()(torch.tensor([ids[:k]])).logits[0, -1].log_softmax(0)[ids[k]])
                for k in range(1, len(ids))
            ]
        expected.append(math.exp(sum(steps) / len(steps)) if steps else 0.0)
    for batch_size in (1, 3):
        assert reader(JUDGED, batch_size) == pytest.approx(expected, rel=1e-4)
    assert (expected[2] == 0.0) is not begins and reader([JUDGED[2]], 1) == pytest.approx(expected[2:3])
    assert reader([], 2) == []


def matcher_by_hand(model, first: str, second: str) -> torch.Tensor:
    with torch.no_grad():
        return model(**word_tokenizer()(first, second, return_tensors="pt")).logits[0]


@pytest.mark.parametrize("labels", [["other", "paraphrase"], ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], ["score"]])
def test_matchers(labels: list[str], tmp_path: Path) -> None:
    model = tiny_matcher(len(labels), dict(enumerate(labels)))
    path = save(model, tmp_path)
    expected = []
    for one in JUDGED:
        there, back = (matcher_by_hand(model, *texts) for texts in (one[:2], one[:2][::-1]))
        if len(labels) == 1:
            expected.append(float(there.sigmoid()))
        elif len(labels) == 2:
            expected.append(float(there.softmax(0)[1]))
        else:  # it follows from each of the two
            expected.append(min(float(each.softmax(0)[2]) for each in (there, back)))
    for matcher in (path, pipeline("text-classification", model=path, batch_size=3)):
        judge = load_adequacy("matcher", make_paraphraser("bart").writer, matcher=matcher)
        assert judge(JUDGED, 2) == pytest.approx(expected, rel=1e-4)
    assert judge([], 2) == []


def test_a_pair_classifier_of_ours(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = train_word_tokenizer(WORDS, vocab_size=30, sentence_pairs=True)
    config = CoupledLstmConfig(
        vocab_size=len(tokenizer), embedding_size=4, hidden_size=4, num_blocks=1, initializer_range=1.0
    )
    model = CoupledLstmForSequenceClassification(config).eval()
    judge = load_adequacy("matcher", make_paraphraser("bart").writer, matcher=save(model, tmp_path, tokenizer))
    with torch.no_grad():
        expected = [
            float(model(**tokenizer(*one[:2], return_tensors="pt")).logits[0].softmax(0)[-1]) for one in JUDGED
        ]
    assert judge(JUDGED, 2) == pytest.approx(expected, rel=1e-4)


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return max(0.0, float(first @ second / np.linalg.norm(first) / np.linalg.norm(second)))


def test_embeddings_of_a_function_and_of_any_model(tmp_path: Path) -> None:
    vectors = {text: [text.count("cat") - 0.5, text.count("learn"), 0.1] for one in JUDGED for text in one[:2]}
    judge = load_adequacy(
        "embedding", make_paraphraser("bart").writer, encoder=lambda texts: np.array([vectors[text] for text in texts])
    )
    expected = [cosine(np.array(vectors[one.source]), np.array(vectors[one.candidate])) for one in JUDGED]
    assert judge(JUDGED, 2) == pytest.approx(expected, abs=1e-6)
    assert 0.0 in expected  # where the cosine is less
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model = BertModel(BertConfig(vocab_size=len(WORDS), initializer_range=1.0, **sizes)).eval()
    judge = load_adequacy("embedding", make_paraphraser("hierarchical_lm").writer, encoder=save(model, tmp_path))
    expected = []
    for one in JUDGED:
        with torch.no_grad():
            means = [
                model(**word_tokenizer()(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
                for text in one[:2]
            ]
        expected.append(cosine(*means))
    assert judge(JUDGED, 2) == pytest.approx(expected, abs=1e-4)


def test_embeddings_of_a_model_here(tmp_path: Path) -> None:
    """Of one that is named, and by itself of the one that paraphrases."""
    model, tokenizer = tiny_hierarchical_lm(), character_tokenizer()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    named = load_adequacy("embedding", make_paraphraser("bart").writer, encoder=str(tmp_path))
    own = load_adequacy("embedding", ModelWriter(model, tokenizer))
    expected = [cosine(*model.sentence_embeddings(one[:2], tokenizer).numpy()) for one in JUDGED]
    assert named(JUDGED, 2) == pytest.approx(expected, abs=1e-5)
    assert own(JUDGED, 2) == pytest.approx(expected, abs=1e-5)
    assert len(set(expected)) > 1


def test_a_function_of_the_caller() -> None:
    def shares_words(sources: list[str], candidates: list[str]) -> list[float]:
        return [float(source.split()[0] in text.split()) for source, text in zip(sources, candidates, strict=True)]

    paraphraser = make_paraphraser("bart")
    groups = paraphraser(["the cat", "x dog"], adequacy=shares_words, min_adequacy=0.5, n=9, num_candidates=20)
    assert [all("x" in one.text.split() for one in group) for group in groups][1] and groups[1]
    for wrong in (lambda *_: [0.5], lambda s, c: [1.5] * len(s), lambda s, c: [math.nan] * len(s)):
        with pytest.raises(InputError, match="`adequacy`: the function must return a number from 0 to 1 for each of"):
            paraphraser("the cat", adequacy=wrong)


@pytest.mark.parametrize("decoding", ["beam", "diverse_beam"])
def test_the_search_s_own_score_is_the_fluency(decoding: str) -> None:
    """What the search says of whole outputs is what the model says when it reads them once more."""
    writer = make_paraphraser("bart").writer
    texts = random_sentences(6)
    options = {"suppress_tokens": [0, 1, 3], "max_new_tokens": 60, "length_penalty": 0.0}
    groups = write(writer, texts, Ask(decoding=decoding, num_candidates=4, generate_kwargs=options))
    judged = [Judged(text, one.text, one.pair) for text, group in zip(texts, groups, strict=True) for one in group]
    known = [one.fluency for group in groups for one in group]
    assert any(value is not None for value in known)
    read = OwnFluency(writer)(judged, 8)
    for value, other in zip(known, read, strict=True):
        assert value is None or value == pytest.approx(other, rel=1e-3)


def test_one_text_is_tokenised_three_times_and_encoded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """To be written from; its candidates, to be judged; and it again, as what they are judged by."""
    paraphraser = make_paraphraser("bart")
    model, calls = paraphraser.model, []
    for owner, method in ((type(paraphraser.tokenizer), "__call__"), (type(model.get_encoder()), "forward")):
        usual = getattr(owner, method)
        monkeypatch.setattr(
            owner, method, lambda *args, _usual=usual, _name=method, **kw: calls.append(_name) or _usual(*args, **kw)
        )
    options = {"suppress_tokens": [0, 1, 3], "max_new_tokens": 60, "length_penalty": 0.0}
    assert paraphraser("the cat sat on the mat", 1, keep=(), replace_unknown=False, **options)
    assert (calls.count("__call__"), calls.count("forward")) == (3, 2)
