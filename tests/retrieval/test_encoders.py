from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.retrieval import encoders
from hf_paraphrase.retrieval.encoders import (
    AutoModelEncoder,
    SentenceEncoder,
    SentenceTransformerEncoder,
    load_encoder,
)
from tests.models.tiny import WORDS, save, tiny_t5, word_tokenizer

TEXTS = ["how do i learn faster ?", "the cat", "", "sat on the mat x y z", "  ", "unknown words", "cat"]


def tiny_bert() -> BertModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(
        vocab_size=len(WORDS), max_position_embeddings=8, pad_token_id=0, initializer_range=1.0, **sizes
    )
    return BertModel(config).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """An encoder with a tokenizer that adds no special tokens, and cuts texts to eight."""
    tokenizer = word_tokenizer(end="", model_max_length=8)
    return save(tiny_bert(), tmp_path_factory.mktemp("bert"), tokenizer)


@pytest.fixture(scope="module")
def sentence_transformer(folder, tmp_path_factory) -> str:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra `retrieval`")
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(folder)
    pooling = modules.Pooling(transformer.get_embedding_dimension(), pooling_mode="max")
    path = tmp_path_factory.mktemp("sentence-transformer")
    sentence_transformers.SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(path))
    return str(path)


def test_the_vector_is_the_mean_over_the_tokens_of_length_one(folder):
    encoder = AutoModelEncoder(folder, device="cpu", batch_size=2)
    vectors = encoder(TEXTS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        ids = encoder.tokenizer(text, return_tensors="pt").input_ids[:, :8].long()
        if ids.shape[1] == 0:
            assert not vector.any()
            continue
        with torch.no_grad():
            mean = encoder.model(ids).last_hidden_state[0].mean(dim=0)
        np.testing.assert_allclose(vector, mean / mean.norm(), atol=1e-5)


def test_texts_longer_than_the_model_are_cut(folder):
    vectors = load_encoder(folder)(["the cat sat on a mat " * 50, "the cat sat on a mat the cat"])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_of_an_encoder_decoder_the_encoder_is_used(tmp_path):
    t5 = tiny_t5()
    tokenizer = word_tokenizer()
    encoder = load_encoder(save(t5, tmp_path, tokenizer), device="cpu")
    vectors = encoder(["the cat sat", "a"])
    with torch.no_grad():
        mean = t5.encoder(tokenizer("the cat sat", return_tensors="pt").input_ids).last_hidden_state[0].mean(dim=0)
    np.testing.assert_allclose(vectors[0], mean / mean.norm(), atol=1e-5)


def test_no_texts(folder):
    assert load_encoder(folder)([]).shape == (0, 16)


def test_an_encoder_without_padding_token_is_named(folder, tmp_path):
    tokenizer = word_tokenizer()
    tokenizer.pad_token = None
    save(tiny_bert(), tmp_path, tokenizer)
    with pytest.raises(InputError, match="has no padding token"):
        load_encoder(str(tmp_path))


def test_a_model_of_sentence_transformers_is_known_by_its_modules(sentence_transformer):
    encoder = load_encoder(sentence_transformer, device="cpu", batch_size=2)
    assert isinstance(encoder, SentenceTransformerEncoder)
    vectors = encoder(["the cat", "how do i learn"])
    assert vectors.shape == (2, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    with torch.no_grad():
        bert = tiny_bert()(torch.tensor([[4, 6]])).last_hidden_state[0].max(dim=0).values
    np.testing.assert_allclose(vectors[0], bert / bert.norm(), atol=1e-5)


def test_a_retriever_encloses_its_encoder(sentence_transformer, folder, tmp_path):
    pairs = [("the cat sat", "a dog"), ("how do i learn", "x"), ("x y z", "z y x")]
    for name in (sentence_transformer, folder):
        retriever = ParaphraseRetriever.from_pairs(pairs, name, device="cpu")
        retriever.save_pretrained(tmp_path / "retriever")
        again = ParaphraseRetriever.from_pretrained(tmp_path / "retriever", device="cpu")
        assert json.loads((tmp_path / "retriever" / "retriever_config.json").read_text())["encoder"] == "./encoder"
        assert again.retrieve(["cat sat"], 3) == retriever.retrieve(["cat sat"], 3)
    with pytest.raises(InputError, match="is from ./encoder, whose vectors differ from those of .*sentence-tr"):
        ParaphraseRetriever.from_pretrained(tmp_path / "retriever", encoder=sentence_transformer)


def test_a_folder_is_refused_where_its_code_would_run(sentence_transformer, tmp_path, monkeypatch):
    """Below release 6, sentence-transformers runs the code of every local folder."""
    ParaphraseRetriever.from_pairs([("a", "b")], sentence_transformer, device="cpu").save_pretrained(tmp_path)
    monkeypatch.setattr(encoders, "version", lambda name: "5.9.1")
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", None)
    for load in (load_encoder, lambda path: ParaphraseRetriever.from_pretrained(tmp_path)):
        with pytest.raises(InputError, match="sentence-transformers below 6 runs the code of every folder"):
            load(sentence_transformer)


def test_sentence_transformers_missing(monkeypatch):
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(
        InputError,
        match=r"all-MiniLM-L6-v2 needs sentence-transformers; install it with: pip install 'hf-paraphrase\[",
    ):
        ParaphraseRetriever.from_pairs([("a", "b")])


def test_no_network_and_no_such_folder(tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the extra `retrieval`")
    for name in (encoders.DEFAULT_ENCODER, "someone/something", str(tmp_path)):
        with pytest.raises(InputError, match=f"the encoder {name} cannot be loaded(.|\n)*or 'jaccard'"):
            load_encoder(name)


def test_remote_code_runs_only_where_it_is_trusted(folder, tmp_path):
    bert = tiny_bert()
    save(bert, tmp_path, word_tokenizer())
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "custom.Config", "AutoModel": "custom.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "custom.py").write_text(
        "from transformers import BertConfig, BertModel\n"
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "class Config(BertConfig):\n    model_type = 'custom'\n"
        "class Model(BertModel):\n    config_class = Config\n"
    )
    with pytest.raises(InputError, match="trust_remote_code"):
        load_encoder(str(tmp_path))
    assert not (tmp_path / "ran").exists()
    vectors = load_encoder(str(tmp_path), trust_remote_code=True)(["the cat"])
    assert (tmp_path / "ran").exists()
    assert vectors.shape == (1, 16)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda texts: np.ones(len(texts)), r"an array of shape \(2,\) of 2 texts"),
        (lambda texts: np.ones((1, 3)), r"an array of shape \(1, 3\) of 2 texts"),
        (lambda texts: np.full((2, 3), np.nan), "not finite"),
    ],
)
def test_functions_that_make_no_vectors(result, message):
    with pytest.raises(InputError, match=message):
        load_encoder(result)(["a", "b"])


def test_functions_may_return_lists_and_tensors():
    expected = np.array([[0.6, 0.8], [0.0, 0.0]], np.float32)
    rows = [[3, 4], [0, 0]]
    for result in (rows, np.array(rows), torch.tensor(rows)):
        encoder = load_encoder(lambda texts, result=result: result)
        assert isinstance(encoder, SentenceEncoder)
        np.testing.assert_allclose(encoder(["a", "b"]), expected)
        assert load_encoder(encoder) is encoder
