"""Make a model to start a training with of a "tiny" translator of Mozilla's Bergamot project (MPL-2.0):

    python scripts/import_bergamot.py model.pten.intgemm.alphas.bin tokenizer.json runs/bergamot

`--new-tokenizer OTHER.json` exchanges the vocabulary: the tokens that the translator knows keep their vectors, others
start at random, and new special tokens are never written.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import yaml
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from hf_paraphrase import SsruTransformerConfig, SsruTransformerForConditionalGeneration
from hf_paraphrase.common.errors import InputError

VERSION, INT8, FLOAT, TEXT = 1, 0x4101, 0x404, 0x101
NEVER = -1e4


def read_weights(path: Path) -> dict[str, torch.Tensor | str]:
    """Read Marian's binary format, with matrices that intgemm has quantized made float.

    Raises:
        InputError: It is another format.
    """
    data = path.read_bytes()
    if len(data) < 16 or struct.unpack_from("<Q", data)[0] != VERSION:
        raise InputError(f"{path} is not in version {VERSION} of Marian's binary format")
    count, place = struct.unpack_from("<Q", data, 8)[0], 16
    headers = [struct.unpack_from("<4Q", data, place + 32 * number) for number in range(count)]
    place += 32 * count
    names, shapes, weights = [], [], {}
    for length, *_ in headers:
        names.append(data[place : place + length].rstrip(b"\0").decode())
        place += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", data, place))
        place += 4 * dimensions
    place += 8 + struct.unpack_from("<Q", data, place)[0]
    for (_, kind, _, length), name, shape in zip(headers, names, shapes, strict=True):
        weights[name] = decode(name, data[place : place + length], kind, shape)
        place += length
    return weights


def decode(name: str, data: bytes, kind: int, shape: tuple[int, ...]) -> torch.Tensor | str:
    """Decode one item; behind quantized matrices, which are transposed but for embeddings, stands their multiplier."""
    if name.startswith("special:"):
        return data.rstrip(b"\0").decode()
    size = int(np.prod(shape))
    if kind == FLOAT:
        return torch.from_numpy(np.frombuffer(data, np.float32, size).copy()).view(shape)
    if kind != INT8:
        raise InputError(f"{name} has the type {kind:#x}; only float and intgemm8 can be read")
    scaled = torch.from_numpy(np.frombuffer(data, np.int8, size).copy()) / struct.unpack_from("<f", data, size)[0]
    return scaled.view(shape) if name == "Wemb" else scaled.view(shape[::-1]).T


def find_names(config: SsruTransformerConfig) -> Iterator[tuple[str, str]]:
    """Our name and Marian's of every weight of the layers."""
    for stack, depth in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(depth):
            ours, theirs = f"model.{stack}.layers.{number}.", f"{stack}_l{number + 1}_"
            attention, part = ("self_attn", "self") if stack == "encoder" else ("encoder_attn", "context")
            names = ("q_proj", "k_proj", "v_proj", "out_proj")
            linears = {f"{attention}.{name}": f"{part}_%s{name[0]}" for name in names}
            linears |= {"fc1": "ffn_%s1", "fc2": "ffn_%s2"}
            norms = {f"{attention}_layer_norm": f"{part}_Wo", "final_layer_norm": "ffn_ffn"}
            if stack == "decoder":
                yield f"{ours}self_attn.w.weight", f"{theirs}rnn_W"
                linears["self_attn.f"], norms["self_attn_layer_norm"] = "rnn_%sf", "rnn_ffn"
            for name, item in linears.items():
                yield f"{ours}{name}.weight", theirs + item % "W"
                yield f"{ours}{name}.bias", theirs + item % "b"
            for name, item in norms.items():
                yield f"{ours}{name}.weight", f"{theirs}{item}_ln_scale"
                yield f"{ours}{name}.bias", f"{theirs}{item}_ln_bias"


def load_tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer that ends texts in `</s>` and has a `<pad>`."""
    tokenizer = Tokenizer.from_file(str(path))
    end = ("</s>", tokenizer.token_to_id("</s>"))
    tokenizer.post_processor = TemplateProcessing(single="$A </s>", pair="$A $B </s>", special_tokens=[end])
    special = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def convert(
    weights: dict[str, torch.Tensor | str], pieces: dict[str, int], tokenizer: PreTrainedTokenizerFast
) -> SsruTransformerForConditionalGeneration:
    """Make a model of a translator's weights.

    Args:
        weights: Of `read_weights`.
        pieces: The translator's own vocabulary.
        tokenizer: That of the model to be. A text is written after `<pad>`, whose vector is zero, as Marian has it.
    """
    options = yaml.safe_load(weights["special:model.yml"])
    if (options["transformer-decoder-autoreg"], options["dec-cell"]) != ("rnn", "ssru"):
        raise InputError("the translator has no SSRUs: import one of Bergamot's `tiny` ones")
    pad, inner = tokenizer.pad_token_id, options["transformer-dim-ffn"]
    config = SsruTransformerConfig(
        vocab_size=len(tokenizer),
        d_model=options["dim-emb"],
        encoder_layers=options["enc-depth"],
        decoder_layers=options["dec-depth"],
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        encoder_attention_heads=options["transformer-heads"],
        decoder_attention_heads=options["transformer-heads"],
        activation_function=options["transformer-ffn-activation"],
        pad_token_id=pad,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=pad,
    )
    state = {ours: weights[theirs] for ours, theirs in find_names(config)}
    state = {name: weight.flatten() if weight.shape[0] == 1 else weight.T for name, weight in state.items()}
    known = {token: number for token, number in tokenizer.get_vocab().items() if token in pieces}
    rows, places = list(known.values()), [pieces[token] for token in known]
    table, bias = torch.randn(len(tokenizer), config.d_model) * 0.05, weights["decoder_ff_logit_out_b"].flatten()
    scores = torch.full((len(tokenizer),), bias[places].min().item() - 2)
    scores[[number for number in tokenizer.all_special_ids if number not in rows]] = NEVER
    table[pad], table[rows], scores[rows] = 0.0, weights["Wemb"][places], bias[places]
    state |= {"model.encoder.embed_tokens.weight": table, "lm_head.weight": table, "lm_head.bias": scores}
    model = SsruTransformerForConditionalGeneration(config)
    model.load_state_dict(state)
    return model


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weights", "tokenizer", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--new-tokenizer", type=Path)
    options = parser.parse_args(arguments)
    pieces = Tokenizer.from_file(str(options.tokenizer)).get_vocab()
    tokenizer = load_tokenizer(options.new_tokenizer or options.tokenizer)
    torch.manual_seed(0)
    convert(read_weights(options.weights), pieces, tokenizer).save_pretrained(options.output)
    tokenizer.save_pretrained(options.output)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
