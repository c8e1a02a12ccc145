"""The residual LSTM: training, beam search, and what importing the package costs."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable

import torch
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration

from .timing import Row, in_turn, seconds

# Target tokens/s in training and sentences/s in decoding (beam 5) of JoeyNMT 2.3 on two CPU cores, batch 64, about 10
# words a sentence: BiLSTM 2x128 encoder, LSTM 2x256 decoder, additive attention, 10,000 words.
JOEYNMT_TRAIN, JOEYNMT_DECODE = 2050, 149


class BareLstm(nn.Module):
    """`nn.LSTM` encoder, `nn.LSTM` decoder and a softmax: the least that a model of the same shapes must do."""

    def __init__(self, config: ResidualLstmConfig):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        sizes = {"num_layers": config.num_layers, "dropout": config.dropout, "batch_first": True}
        self.encoder = nn.LSTM(config.embedding_size, config.hidden_size, **sizes)
        self.decoder = nn.LSTM(config.embedding_size, config.hidden_size, **sizes)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)

    def forward(self, input_ids, labels):
        _, state = self.encoder(self.embed_tokens(input_ids))
        shifted = torch.cat((torch.ones_like(labels[:, :1]), labels[:, :-1]), dim=1)
        outputs, _ = self.decoder(self.embed_tokens(shifted), state)
        return nn.functional.cross_entropy(self.lm_head(outputs).flatten(0, 1), labels.flatten())


def random_batch(rows: int, length: int, vocab_size: int, device: str) -> dict[str, torch.Tensor]:
    ids = torch.randint(4, vocab_size, (2, rows, length), device=device)
    return {"input_ids": ids[0], "labels": ids[1]}


def training_step(model: nn.Module, loss: Callable[[], torch.Tensor]) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def benchmark_train(device: str, repeats: int) -> list[Row]:
    """A training step of the 4-layer residual model at paper size against the bare LSTM of the same shapes."""
    config = ResidualLstmConfig()
    model, bare = ResidualLstmForConditionalGeneration(config).to(device).train(), BareLstm(config).to(device).train()
    batch = random_batch(64, 12, config.vocab_size, device)
    ours, theirs, ratio = in_turn(
        training_step(model, lambda: model(**batch).loss), training_step(bare, lambda: bare(**batch)), repeats, device
    )
    tokens = batch["labels"].numel()
    return [
        ("training, paper size", "bare nn.LSTM", f"{tokens / ours:,.0f}", f"{tokens / theirs:,.0f}", f"{ratio:.2f}")
    ]


def decode(model, batch, length: int) -> Callable[[], object]:
    # Without an end mark every output has the same length, whatever the random weights say.
    model.generation_config.eos_token_id = None
    return lambda: model.generate(batch["input_ids"], num_beams=5, max_new_tokens=length, pad_token_id=0)


def benchmark_generate(device: str, repeats: int) -> list[Row]:
    """Beam-5 generation against transformers' BART with about as many parameters, same batch, same length."""
    config = ResidualLstmConfig()
    model = ResidualLstmForConditionalGeneration(config).to(device).eval()
    size = {"encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 8, "decoder_attention_heads": 8}
    bart_config = BartConfig(
        vocab_size=config.vocab_size,
        d_model=512,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
        **size,
    )
    bart = BartForConditionalGeneration(bart_config).to(device).eval()
    batch = random_batch(32, 12, config.vocab_size, device)
    ours, theirs, ratio = in_turn(decode(model, batch, 12), decode(bart, batch, 12), repeats, device)
    names = (f"beam 5, {count / 1e6:.1f}M" for count in (model.num_parameters(), bart.num_parameters()))
    rows = len(batch["input_ids"])
    return [(next(names), f"BART, {next(names)}", f"{rows / ours:.1f}", f"{rows / theirs:.1f}", f"{ratio:.2f}")]


def benchmark_peer(device: str, repeats: int) -> list[Row]:
    """Training and decoding at JoeyNMT's sizes; its figures were taken on another run of a like machine."""
    config = ResidualLstmConfig(
        vocab_size=10_000,
        embedding_size=256,
        hidden_size=256,
        num_layers=2,
        bidirectional_encoder=True,
        attention="additive",
        residual_interval=0,
        dropout=0.2,
    )
    model = ResidualLstmForConditionalGeneration(config).to(device).train()
    batch = random_batch(64, 11, config.vocab_size, device)
    step = training_step(model, lambda: model(**batch).loss)
    step()
    rate = batch["labels"].numel() / statistics.median(seconds(step, device) for _ in range(repeats))
    rows = [
        ("training, 2 layers, 256", "JoeyNMT 2.3", f"{rate:,.0f}", f"{JOEYNMT_TRAIN:,}", f"{rate / JOEYNMT_TRAIN:.2f}")
    ]
    model.eval()
    run = decode(model, batch, 11)
    run()
    rate = len(batch["input_ids"]) / statistics.median(seconds(run, device) for _ in range(repeats))
    rows.append(
        ("beam 5, batch 64, 256", "JoeyNMT 2.3", f"{rate:.0f}", f"{JOEYNMT_DECODE}", f"{rate / JOEYNMT_DECODE:.2f}")
    )
    return rows


def benchmark_import(device: str, repeats: int) -> list[Row]:
    """What `import hf_paraphrase` adds to the import that every user of transformers pays, in fresh processes.

    And what the shortest command takes, which needs none of it.
    """

    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    def fresh(statement: str) -> Callable[[], object]:
        return run("-c", statement)

    baseline = "from transformers import AutoModelForSeq2SeqLM, pipeline"
    ours, theirs, ratio = in_turn(fresh(f"import hf_paraphrase; {baseline}"), fresh(baseline), repeats, "cpu")
    rows = [
        Row("imports, ours first, s", "transformers", f"{ours:.2f}", f"{theirs:.2f}", f"{1 / ratio:.2f} of its time")
    ]
    ours, theirs, _ = in_turn(run("-m", "hf_paraphrase", "--version"), run("-c", "pass"), repeats, "cpu")
    times = (f"{ours:.2f}", f"{theirs:.2f}", f"{ours:.2f} s")
    return [*rows, Row("hf-paraphrase --version, s", "python alone", *times, goal="≤ 0.5 s")]
