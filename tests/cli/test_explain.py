from __future__ import annotations

from pathlib import Path

import pytest

from hf_paraphrase import (
    CoupledLstmConfig,
    CoupledLstmForSequenceClassification,
    DnpgConfig,
    DnpgForConditionalGeneration,
    HierarchicalAutoencoderConfig,
    HierarchicalAutoencoderForConditionalGeneration,
    ParaphraseRetriever,
)
from hf_paraphrase.datasets.sentences import split_by_rules
from hf_paraphrase.tokenization import train_document_tokenizer, train_word_tokenizer
from tests.datasets.corpora import msrp, write
from tests.models.test_pipeline_pairs import PAIRS, tiny_fset
from tests.models.tiny import SPECIAL_IDS, save, tiny_matcher, tiny_model

from .runner import run

REVIEWS = ["The room was clean. The staff was kind.", "The pool was cold.", "The staff was cold. The room was kind."]


@pytest.fixture(scope="module")
def matcher(tmp_path_factory) -> str:
    config = CoupledLstmConfig(vocab_size=10, embedding_size=4, hidden_size=3, num_blocks=2, initializer_range=1.0)
    tokenizer = train_word_tokenizer(["a b c d e f"], vocab_size=10, sentence_pairs=True)
    return save(CoupledLstmForSequenceClassification(config), tmp_path_factory.mktemp("matcher"), tokenizer)


@pytest.fixture(scope="module")
def editor(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("editor")
    save(tiny_fset(), folder)
    ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(folder / "retriever")
    return folder


def save_autoencoder(folder: Path, **options) -> str:
    tokenizer = train_document_tokenizer(map(split_by_rules, REVIEWS), vocab_size=30)
    config = HierarchicalAutoencoderConfig(vocab_size=len(tokenizer), hidden_size=8, num_layers=1, **options)
    return save(HierarchicalAutoencoderForConditionalGeneration(config), folder, tokenizer)


def test_edit(editor, tmp_path, capsys):
    page = tmp_path / "edit.html"
    for neighbor, found in ((1, "the cat sat"), (2, "the dog sat")):
        assert run("explain", "edit", editor, "the cat sat on", "--neighbor", neighbor, "--output", page) == 0
        assert f"<dt>retrieved p</dt><dd>{found}</dd>" in page.read_text()
        assert f"<dd>{capsys.readouterr().out.strip()}</dd>" in page.read_text()
    pair = ["--retrieved", "a dog", "the dog <b>"]
    assert run("explain", "edit", editor, "the cat sat on", *pair, "--output", page) == 0
    assert "<dd>a dog</dd>" in page.read_text() and "<dd>the dog &lt;b&gt;</dd>" in page.read_text()


def test_levels_in_colours(tmp_path, capsys):
    levels = tiny_model(DnpgConfig, DnpgForConditionalGeneration)
    levels.generation_config.suppress_tokens = [*SPECIAL_IDS.values(), 3]  # words alone
    model, page = save(levels, tmp_path / "levels"), tmp_path / "l.html"
    assert run("explain", "edit", model, "the cat sat on", "--output", page) == 0
    assert capsys.readouterr().out.strip()
    assert '<span class="sentence" title="sentence">&lt;/s&gt;</span>' in page.read_text()
    assert run("explain", "edit", model, "the cat", "--retrieved", "a", "b", "--output", page) == 2
    assert "error: --retrieved: " in capsys.readouterr().err


def test_what_edits_by_no_pair_is_refused(checkpoint, tmp_path, capsys):
    assert run("explain", "edit", checkpoint, "the cat", "--output", tmp_path / "edit.html") == 2
    assert capsys.readouterr().err == (
        f"error: {checkpoint} is a bart, which cannot edit by a retrieved pair; fset, edit_lstm can\n"
    )
    alone = save(tiny_fset(), tmp_path / "alone")
    assert run("explain", "edit", alone, "the cat", "--output", tmp_path / "edit.html") == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


def test_match(matcher, tmp_path, capsys):
    picture, table = tmp_path / "unit.png", tmp_path / "pairs.md"
    texts = ["--text", "a b", "--text-pair", "c"]
    assert run("explain", "match", "heatmap", matcher, *texts, "--unit", 1, "--output", picture) == 0
    assert "unit 1" in capsys.readouterr().out and picture.read_bytes().startswith(b"\x89PNG")
    corpus = ["--dataset", "msrp", "--data-dir", write(tmp_path / "data", msrp()), "--max-samples", 5]
    assert run("explain", "match", "pairs", matcher, *corpus, "--output", table) == 0
    assert table.read_text().startswith("| unit |") and len(table.read_text().splitlines()) == 5
    assert run("explain", "match", "pairs", matcher, "--dataset", "synthetic_questions") == 2
    assert "has no sentence pairs" in capsys.readouterr().err


def test_what_matches_nothing_is_refused(editor, tmp_path, capsys):
    corpus = ["--dataset", "synthetic_questions"]
    picture = ["--text", "a", "--text-pair", "b", "--output", tmp_path / "unit.png"]
    for command in (
        ["explain", "match", "pairs", editor, *corpus],
        ["explain", "match", "heatmap", editor, *picture],
    ):
        assert run(*command) == 2
        assert capsys.readouterr().err == (
            f"error: {editor} is a fset, which cannot label or score pairs of sentences; coupled_lstm, pair_lstm can\n"
        )
    other = save(tiny_matcher(2), tmp_path / "bert")
    assert run("explain", "match", "pairs", other, *corpus) == 2
    assert "only a coupled_lstm has a grid of word pairs to show" in capsys.readouterr().err


def test_documents(tmp_path, capsys):
    model = save_autoencoder(tmp_path / "model")
    file = tmp_path / "reviews.txt"
    file.write_text("\n\n".join(REVIEWS) + "\n")
    assert run("explain", "documents", model, file, "--steps", 3, "--nearest", 1, "--shown", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[:3]] == ["0.00", "0.50", "1.00"]
    assert [lines[4].strip(), lines[7].strip()] == REVIEWS[:2]
    assert all(lines[place][6:] in REVIEWS for place in (5, 8)) and len(lines) == 9


def test_documents_refuses_what_it_cannot_show(checkpoint, tmp_path, capsys):
    file = tmp_path / "reviews.txt"
    file.write_text("\n".join(REVIEWS))
    assert run("explain", "documents", checkpoint, file) == 2
    assert "is a bart; only a hierarchical_autoencoder has vectors of documents" in capsys.readouterr().err
    attention = save_autoencoder(tmp_path / "attention", attention=True)
    assert run("explain", "documents", attention, file) == 2
    assert "use a model without attention" in capsys.readouterr().err
    file.write_text("One document.\n")
    assert run("explain", "documents", checkpoint, file) == 2
    assert "reviews.txt has only one document" in capsys.readouterr().err
    file.write_text("\n")
    assert run("explain", "documents", checkpoint, file) == 2
    assert "reviews.txt has no line with text" in capsys.readouterr().err
