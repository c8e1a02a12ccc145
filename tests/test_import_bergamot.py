"""A tiny translator in Marian's binary format, imported by the script, against the weights that were written."""

from __future__ import annotations

import runpy
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_paraphrase.common.errors import InputError

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "import_bergamot.py"))
PIECES = ["</s>", "<unk>", "▁a", "▁b", "c"]
OPTIONS = """transformer-decoder-autoreg: rnn
dec-cell: ssru
dim-emb: 4
enc-depth: 1
dec-depth: 2
transformer-heads: 2
transformer-dim-ffn: 6
transformer-ffn-activation: relu
"""


def make_items(cell: str = "ssru") -> dict[str, np.ndarray | str]:
    """Every item of a translator, by the names that Marian gives them; matrices are integers."""
    random = np.random.default_rng(0)
    items: dict[str, np.ndarray | str] = {"special:model.yml": OPTIONS.replace("ssru", cell)}

    def add(name: str, *shape: int) -> None:
        is_matrix = shape[0] > 1
        items[name] = random.integers(-127, 128, shape).astype(np.int8) if is_matrix else random.normal(size=shape)

    add("Wemb", len(PIECES), 4)
    add("decoder_ff_logit_out_b", 1, len(PIECES))
    for layer, attention in (("encoder_l1", "self"), ("decoder_l1", "context"), ("decoder_l2", "context")):
        for letter in "qkvo":
            add(f"{layer}_{attention}_W{letter}", 4, 4)
            add(f"{layer}_{attention}_b{letter}", 1, 4)
        add(f"{layer}_ffn_W1", 4, 6)
        add(f"{layer}_ffn_b1", 1, 6)
        add(f"{layer}_ffn_W2", 6, 4)
        add(f"{layer}_ffn_b2", 1, 4)
        norms = [f"{attention}_Wo", "ffn_ffn"]
        if layer.startswith("decoder"):
            add(f"{layer}_rnn_W", 4, 4)
            add(f"{layer}_rnn_Wf", 4, 4)
            add(f"{layer}_rnn_bf", 1, 4)
            norms.append("rnn_ffn")
        for norm in norms:
            add(f"{layer}_{norm}_ln_scale", 1, 4)
            add(f"{layer}_{norm}_ln_bias", 1, 4)
    return items


def write(path: Path, items: dict[str, np.ndarray | str], multiplier: float = 64.0) -> None:
    """Write items as Marian does, quantized matrices transposed but for the embeddings."""
    headers, names, shapes, contents = [], b"", b"", b""
    for name, item in items.items():
        if isinstance(item, str):
            kind, shape, content = 0x101, (len(item) + 1,), item.encode() + b"\0"
        elif item.dtype == np.int8:
            stored = item if name == "Wemb" else item.T
            kind, shape, content = 0x4101, item.shape, stored.tobytes() + struct.pack("<f", multiplier)
        else:
            kind, shape, content = 0x404, item.shape, item.astype(np.float32).tobytes()
        content += b"\0" * (-len(content) % 256)
        headers.append(struct.pack("<4Q", len(name) + 1, kind, len(shape), len(content)))
        names, contents = names + name.encode() + b"\0", contents + content
        shapes += struct.pack(f"<{len(shape)}i", *shape)
    head = struct.pack("<2Q", 1, len(items)) + b"".join(headers) + names + shapes
    gap = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", gap) + b"\0" * gap + contents)


def write_tokenizer(path: Path, pieces: list[str]) -> None:
    Tokenizer(Unigram([(piece, -1.0) for piece in pieces], unk_id=1)).save(str(path))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    write(tmp_path / "model.bin", make_items())
    write_tokenizer(tmp_path / "tokenizer.json", PIECES)
    return [str(tmp_path / name) for name in ("model.bin", "tokenizer.json", "imported")]


def test_every_weight_arrives(files: list[str]) -> None:
    SCRIPT["main"](files)
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(files[2]), AutoTokenizer.from_pretrained(files[2])
    items = {
        name: torch.from_numpy(item).float() / (64 if item.dtype == np.int8 else 1)
        for name, item in make_items().items()
        if not isinstance(item, str)
    }
    state = model.state_dict()
    assert torch.equal(state.pop("lm_head.weight")[:5], items["Wemb"])
    assert torch.equal(state.pop("model.encoder.embed_tokens.weight")[:5], items.pop("Wemb"))
    assert torch.equal(state.pop("lm_head.bias")[:5], items.pop("decoder_ff_logit_out_b")[0])
    unit = model.model.decoder.layers[1].self_attn
    assert torch.equal(unit.w.weight, items["decoder_l2_rnn_W"].T)
    assert torch.equal(unit.f.bias, items["decoder_l2_rnn_bf"][0])
    layer = model.model.decoder.layers[0]
    assert torch.equal(layer.self_attn_layer_norm.weight, items["decoder_l1_rnn_ffn_ln_scale"][0])
    assert torch.equal(layer.encoder_attn.out_proj.weight, items["decoder_l1_context_Wo"].T)
    # Whatever else there is arrived once: the values differ from item to item.
    expected = {tuple((item if len(item) == 1 else item.T).flatten().tolist()) for item in items.values()}
    assert len(expected) == len(items) == len(state)
    assert {tuple(weight.flatten().tolist()) for weight in state.values()} == expected
    assert tokenizer("c").input_ids == [4, 0] and tokenizer.pad_token_id == model.config.decoder_start_token_id == 5
    written = model.generate(torch.tensor([[2, 4, 0]]), max_new_tokens=8)
    assert 5 not in written[0, 1:-1].tolist()


def test_a_vocabulary_is_exchanged(files: list[str], tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "new.json", ["</s>", "<unk>", "c", "new", "▁a", "<pad>"])
    SCRIPT["main"]([*files, "--new-tokenizer", str(tmp_path / "new.json")])
    model, items = AutoModelForSeq2SeqLM.from_pretrained(files[2]), make_items()
    table, bias = model.get_input_embeddings().weight, model.lm_head.bias
    known, rows = [0, 1, 2, 4], [0, 1, 4, 2]
    assert torch.equal(table[known], torch.from_numpy(items["Wemb"][rows]).float() / 64)
    assert torch.equal(bias[known], torch.from_numpy(items["decoder_ff_logit_out_b"][0, rows]).float())
    assert table[3].any() and not table[5].any()
    assert bias[known].min() - 3 < bias[3] < bias[known].min() and bias[5] == -1e4


def test_other_files_are_refused(files: list[str]) -> None:
    Path(files[0]).write_bytes(b"PK" * 20)
    with pytest.raises(InputError, match="model.bin is not in version 1 of Marian's binary format"):
        SCRIPT["main"](files)
    write(Path(files[0]), make_items("gru"))
    with pytest.raises(InputError, match="the translator has no SSRUs"):
        SCRIPT["main"](files)
