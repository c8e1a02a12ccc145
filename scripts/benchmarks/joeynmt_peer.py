"""JoeyNMT's side of `peer`, run by the Python that has it: a line `train` or `decode` in, CPU-seconds out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import torch
from joeynmt.model import build_model
from joeynmt.search import beam_search
from joeynmt.vocabulary import Vocabulary

SPECIAL = {"unk": 0, "pad": 1, "bos": 2, "eos": 3, "sep": None}
SIDE = {"type": "recurrent", "rnn_type": "lstm", "num_layers": 2, "dropout": 0.2, "freeze": False}


def make_model(vocab_size: int, size: int) -> torch.nn.Module:
    """A bidirectional encoder, half as wide in each direction, and a decoder with additive attention."""
    tokens = {f"{name}_token": None if number is None else f"<{name}>" for name, number in SPECIAL.items()}
    numbers = {f"{name}_id": number for name, number in SPECIAL.items()}
    words = [f"w{number}" for number in range(vocab_size - 4)]
    vocabulary = Vocabulary(words, SimpleNamespace(**tokens, **numbers, lang_tags=[]))
    embeddings = {"embedding_dim": size, "scale": False}
    decoder = {"hidden_dropout": 0.2, "input_feeding": True, "init_hidden": "last", "attention": "bahdanau"}
    config = {
        "initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "init_gain": 1.0,
        "encoder": {**SIDE, "embeddings": embeddings, "hidden_size": size // 2, "bidirectional": True},
        "decoder": {**SIDE, "embeddings": embeddings, "emb_scale": False, "hidden_size": size, **decoder},
    }
    model = build_model(config, src_vocab=vocabulary, trg_vocab=vocabulary)
    model.loss_function = ("crossentropy", 0.0)
    return model


def make_works(rows: int, length: int, vocab_size: int, size: int) -> dict[str, Callable[[], object]]:
    model = make_model(vocab_size, size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    source, target = torch.randint(4, vocab_size, (2, rows, length))
    lengths = torch.full((rows,), length)
    encoded = {"src": source, "src_length": lengths, "src_mask": (source > 0).unsqueeze(1)}
    begun = torch.cat((torch.full((rows, 1), SPECIAL["bos"]), target[:, :-1]), dim=1)
    decoded = {"trg_input": begun, "trg": target, "trg_mask": (target > 0).unsqueeze(1), "trg_length": lengths}

    def train() -> None:
        model.train()
        optimizer.zero_grad()
        (model(return_type="loss", **encoded, **decoded)[0] / target.numel()).backward()
        optimizer.step()

    @torch.no_grad()
    def decode() -> None:
        model.eval()
        output, hidden, *_ = model(return_type="encode", **encoded)
        states = {"encoder_output": output, "encoder_hidden": hidden, "src_mask": encoded["src_mask"]}
        limits = {"min_output_length": length, "max_output_length": length}
        beam_search(model=model, beam_size=5, alpha=-1, n_best=1, **states, **limits)

    return {"train": train, "decode": decode}


def main() -> None:
    threads, *sizes = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    works = make_works(*sizes)
    for line in sys.stdin:
        start = time.process_time()
        works[line.strip()]()
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
