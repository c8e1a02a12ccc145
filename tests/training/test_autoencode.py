from __future__ import annotations

import json
import random

import pytest
import torch
from datasets import Dataset, DatasetDict
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_paraphrase import HierarchicalAutoencoderConfig, HierarchicalAutoencoderForConditionalGeneration
from hf_paraphrase.analysis.document_vectors import embed_documents, interpolate_documents, nearest_documents
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation.documents import (
    COPIED,
    SHUFFLED,
    evaluate_autoencoder,
    format_document_results,
    plot_reconstruction,
    read_document_statistics,
    reconstruction_by_length,
    score_documents,
)
from hf_paraphrase.evaluation.results import Group, Results, Score
from hf_paraphrase.evaluation.scoring import Scoring
from hf_paraphrase.metrics.bleu.scoring import bleu
from hf_paraphrase.tokenization import train_document_tokenizer
from hf_paraphrase.training.arguments import TrainingConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import Recipe
from hf_paraphrase.training.tasks.rewrite import AutoencodeTask

WORDS = ["room", "staff", "beach", "food", "city", "pool", "night", "price"]


def make_documents(train: int = 96, test: int = 8) -> DatasetDict:
    draw = random.Random(0)

    def split(size: int) -> Dataset:
        documents = [[" ".join(draw.choices(WORDS, k=2)) for _ in range(draw.randint(1, 3))] for _ in range(size)]
        return Dataset.from_dict({"sentences": documents})

    return DatasetDict(train=split(train), validation=split(test))


def make_training(**fields) -> TrainingConfig:
    return TrainingConfig(task="autoencode", dataset="short", disable_tqdm=True, train_batch_size=16, **fields)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An autoencoder of documents of one to three sentences of two words, trained for a moment."""
    folder = tmp_path_factory.mktemp("run")
    model = {"model_type": "hierarchical_autoencoder", "vocab_size": 20, "hidden_size": 24, "num_layers": 1}
    training = make_training(num_train_epochs=15, learning_rate=0.03)
    summary = train(Recipe("tiny", {**model, "dropout": 0.0}, {}, training), folder, dataset=make_documents())
    return folder, summary


def test_documents_are_source_and_target():
    task, rows = AutoencodeTask(make_training(max_source_length=6)), make_documents()
    tokenizer = task.make_tokenizer(rows["train"], 20)
    encoded = task.encode(rows, tokenizer).splits["train"]
    batch = task.make_collator(tokenizer)(task.features(encoded, [0, 1, 2], 0))
    mask = batch["attention_mask"].bool()
    assert torch.equal(batch["input_ids"][mask], batch["labels"][mask]) and (batch["labels"][~mask] == -100).all()
    assert encoded.column_names == ["input_ids"]
    lengths, _ = task.lengths(encoded)
    assert lengths.tolist() == task.counts(encoded).tolist() == [len(ids) for ids in encoded["input_ids"]]
    assert max(lengths) == 6 and all(ids[-1] == 2 for ids in encoded["input_ids"])


def test_documents_without_words_are_left_out(caplog):
    task, rows = AutoencodeTask(make_training()), make_documents()
    tokenizer = task.make_tokenizer(rows["train"], 20)
    empty = Dataset.from_dict({"sentences": [[], ["room"]]})
    assert len(task.encode(DatasetDict(train=empty), tokenizer).splits["train"]) == 1
    assert "left out 1 of 2 documents" in caplog.text
    with pytest.raises(InputError, match="none of the 1 documents can be used: they have no words"):
        task.encode(DatasetDict(train=empty.select([0])), tokenizer)


def test_training_learns_to_reconstruct(run):
    _, summary = run
    losses = [entry["eval_loss"] for entry in summary["evaluations"]]
    assert losses[-1] < 0.8 * losses[0]


def test_evaluation_writes_scores_baselines_and_outputs(run, tmp_path):
    folder, _ = run
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    rows = make_documents()["validation"]
    results = evaluate_autoencoder(model, tokenizer, rows, n_samples=10, output_dir=tmp_path, split="validation")
    assert results.find(COPIED).find("bleu_4").score == pytest.approx(100)
    assert results.find(COPIED).find("coherence").score == 0
    assert results.find(SHUFFLED).find("coherence").score > 0
    assert results.entries[0].find("rouge1_recall").score > 20
    assert results.data.rows == len(rows) and results.entries[0].outputs == "reconstructions-validation.jsonl"
    assert Results.load(tmp_path / "results-validation.json") == results
    assert len((tmp_path / "reconstructions-validation.jsonl").read_text().splitlines()) == len(rows)
    read = read_document_statistics(tmp_path / "reconstructions-validation.jsonl", tokenizer.unk_token, seed=12345)
    for score in results.entries[0].scores:
        assert (read[score.metric].score, read[score.metric].signature) == (
            pytest.approx(score.score),
            score.signature,
        )
    assert SHUFFLED in format_document_results(results)
    plot_reconstruction({"tiny": results}, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_a_perfect_autoencoder_scores_100(monkeypatch, tmp_path):
    """It writes the ids that it reads; nothing else could come nearer, whatever the tokenizer does to a text."""
    texts = ["The Week-long stay , 2-3 nights - or more .", "It's “great” ( really ) ! The e-mail was n't answered ."]
    tokenizer = train_document_tokenizer([texts], vocab_size=20)  # many of the words are unknown
    config = HierarchicalAutoencoderConfig(vocab_size=20, hidden_size=8, num_layers=1)
    model = HierarchicalAutoencoderForConditionalGeneration(config)
    monkeypatch.setattr(model, "generate", lambda input_ids, **kwargs: input_ids)
    rows = Dataset.from_dict({"sentences": [texts, texts[::-1], [texts[0]]]})
    results = evaluate_autoencoder(model, tokenizer, rows, n_samples=10, output_dir=tmp_path)
    for entry in (results.entries[0], results.find(COPIED)):
        scores = {score.metric: score.score for score in entry.scores}
        assert scores.pop("coherence") == 0
        assert list(scores.values()) == pytest.approx([100] * 4)
    assert {group.scores[0].score for group in results.entries[0].groups} == {1.0}
    assert 0 < results.data.counts["unknown"] < results.data.counts["words"]
    row = json.loads((tmp_path / "reconstructions-test.jsonl").read_text().splitlines()[0])
    assert "<unk>" in row["output"] and "</s>" not in row["output"]


def test_an_unknown_word_is_one_word_and_no_noun():
    outputs, documents = [["the <unk> hotel"] * 2], [["the <unk> room"] * 2]
    found = score_documents(outputs, documents, "<unk>", Scoring(n_samples=10, seed=1))
    scores = {score.metric: score.score for score in found["scores"]}
    # Of three words the output has two of the document; `<`, `unk` and `>` would make it four of five.
    assert scores["rouge1_recall"] == pytest.approx(100 * 2 / 3)
    assert bleu(["the unk hotel the unk hotel"], ["the unk room the unk room"]).statistics["bleu_4"].score == (
        pytest.approx(scores["bleu_4"])
    )
    assert found["counts"] == {"sentences": 2, "unaligned": 2}


def test_the_evaluation_says_how_many_sentences_are_aligned_at_random(run):
    folder, _ = run
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    rows = make_documents()["validation"]
    results = evaluate_autoencoder(model, tokenizer, rows, n_samples=10)
    sentences = sum(map(len, rows["sentences"]))
    assert results.find(COPIED).counts == {"sentences": sentences, "unaligned": 0}
    counts = results.entries[0].counts
    assert 0 <= counts["unaligned"] <= counts["sentences"]
    assert f"{COPIED}: 0 of {sentences};" in format_document_results(results)


def test_reconstructions_are_counted_by_length():
    originals = ["a " * 9, "b " * 12, "c " * 19]
    assert reconstruction_by_length([originals[0], originals[1], "c"], originals) == (
        Group("words", 0, 1, (Score("exact", 1.0),)),
        Group("words", 10, 2, (Score("exact", 0.5),)),
    )


def test_the_ends_of_an_interpolation_are_the_reconstructions(run):
    folder, _ = run
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    texts = ["room staff\nbeach food", "city pool"]
    written = interpolate_documents(model, tokenizer, *texts, steps=3)
    assert len(written) == 3
    for text, end in zip(texts, written[::2], strict=True):
        ids = model.generate(**tokenizer(text, return_tensors="pt"), max_length_factor=None, max_new_tokens=10)
        assert end == tokenizer.decode(ids[0], skip_special_tokens=True).strip()


def test_between_documents_without_hierarchy(run):
    tokenizer = AutoTokenizer.from_pretrained(run[0])
    config = HierarchicalAutoencoderConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_layers=2, hierarchy="none", max_length_factor=None
    )
    model = HierarchicalAutoencoderForConditionalGeneration(config).eval()
    assert len(interpolate_documents(model, tokenizer, "room staff.", "beach.\nfood city.", steps=4)) == 4


def test_vectors_do_not_depend_on_the_batch(run):
    folder, _ = run
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    vectors = embed_documents(model, tokenizer, ["room staff", "city pool\nfood", "room staff"], batch_size=2)
    assert vectors.shape == (3, 24)
    torch.testing.assert_close(vectors[0], vectors[2])
    assert not torch.allclose(vectors[0], vectors[1])


def test_nearest_documents_are_others():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.3]])
    assert [[row for row, _ in neighbours] for neighbours in nearest_documents(vectors, 2)] == [[2, 1], [2, 0], [0, 1]]
    assert nearest_documents(vectors, 5)[1][1] == (0, pytest.approx(0.0))


def test_documents_have_no_sub_words():
    task = AutoencodeTask(TrainingConfig(task="autoencode", dataset="d", tokenizer_model="bpe"))
    with pytest.raises(InputError, match="`tokenizer_model: bpe`: documents are read in whole words"):
        task.make_tokenizer(Dataset.from_dict({"sentences": [["a b", "c"]]}), 300)
