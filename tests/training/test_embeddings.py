from __future__ import annotations

import struct

import pytest
import torch

from hf_paraphrase import PairLstmConfig, PairLstmForSequenceClassification
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.training.tasks.match import start_from_word_vectors

WORDS = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "cat": 4, "dog": 5}


@pytest.fixture
def model():
    return PairLstmForSequenceClassification(PairLstmConfig(vocab_size=6, embedding_size=2, hidden_size=3))


def write(path, text: str):
    path.write_text(text)
    return path


def test_words_get_their_vectors(model, tmp_path, caplog):
    table = model.get_input_embeddings().weight
    file = write(tmp_path / "vectors.txt", "the 1 2\ndog 3 4.5\n")
    assert start_from_word_vectors(model, WORDS, file) == pytest.approx(1 / 6)
    assert "vectors for 1 of 6 words (16.7%)" in caplog.text
    assert table[5].tolist() == [3.0, 4.5]
    assert not table[0].any() and table.requires_grad


def test_vectors_in_word2vec_s_binary_format(model, tmp_path):
    (tmp_path / "vectors.bin").write_bytes(
        b"2 2\nthe " + struct.pack("<2f", 1, 2) + b"dog " + struct.pack("<2f", 3, 4.5)
    )
    assert start_from_word_vectors(model, WORDS, tmp_path / "vectors.bin") == pytest.approx(1 / 6)
    assert model.get_input_embeddings().weight[5].tolist() == [3.0, 4.5]


@pytest.mark.parametrize("scale", [0.01, 1.0, 4.0])
def test_words_without_a_vector_are_as_wide_as_the_file_s(tmp_path, scale):
    torch.manual_seed(0)
    model = PairLstmForSequenceClassification(PairLstmConfig(vocab_size=404, embedding_size=50, hidden_size=3))
    words = {**WORDS, **{f"w{number}": number for number in range(6, 404)}}
    vectors = scale * torch.randn(100, 50)
    lines = (f"w{number + 6} {' '.join(map(str, row))}\n" for number, row in enumerate(vectors.tolist()))
    start_from_word_vectors(model, words, write(tmp_path / "vectors.txt", "".join(lines)))
    table = model.get_input_embeddings().weight
    torch.testing.assert_close(table[6:106], vectors)
    for drawn in (table[1:6], table[106:]):
        assert drawn.std().item() == pytest.approx(scale, rel=0.15)
    assert not table[0].any()


@pytest.mark.parametrize(
    ("text", "message"),
    [("the 1 2\n", "none of the 6 words"), ("cat 1 2 3\n", "have 3 numbers; set `embedding_size` to that, not to 2")],
)
def test_vectors_that_do_not_fit_are_refused(model, tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        start_from_word_vectors(model, WORDS, write(tmp_path / "vectors.txt", text))
