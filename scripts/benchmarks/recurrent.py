"""The residual LSTM: training, beam search, and what importing the package costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from tokenizers import Tokenizer, models
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.models.layers.precision import fast_dtype
from hf_paraphrase.models.layers.products import PrepackedWeights
from hf_paraphrase.models.search.beam_search import beam_search

from .timing import Row, in_turn


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


def decode(model, batch, length: int, search: Callable | None = beam_search, beams: int = 5) -> Callable[[], object]:
    """Beam search by ours, which pipeline and evaluation use, or with None by that of transformers."""
    # Without an end mark every output has the same length, whatever the random weights say.
    model.generation_config.eos_token_id = None
    options = {"num_beams": beams, "max_new_tokens": length, "pad_token_id": 0, "custom_generate": search}
    return lambda: model.generate(batch["input_ids"], **options)


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
    ours, theirs, ratio = in_turn(decode(model, batch, 12), decode(bart, batch, 12, None), repeats, device)
    names = (f"beam 5, {count / 1e6:.1f}M" for count in (model.num_parameters(), bart.num_parameters()))
    rows = len(batch["input_ids"])
    return [(next(names), f"BART, {next(names)}", f"{rows / ours:.1f}", f"{rows / theirs:.1f}", f"{ratio:.2f}")]


# A word-level model for questions: its sizes, and those of the BART to compare with.
STEP_SIZES = {"vocab_size": 10_000, "embedding_size": 256, "hidden_size": 256, "num_layers": 4}
BART_SIZES = {
    "d_model": 256,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "encoder_layers": 4,
    "decoder_layers": 4,
}
SIDE_SIZES = {"ffn_dim": 1024, "attention_heads": 4}
TEXTS, BEAMS, LENGTH = 32, 5, 12


def benchmark_ctranslate2(device: str, repeats: int) -> list[Row]:
    """Beam 5 by our search against CTranslate2's BART of like size, and against our own matrix products alone.

    By processor time. CTranslate2 knows no LSTM; its BART runs in single precision and in int8, ours in single
    precision and in the fastest that this CPU has.
    """
    config = ResidualLstmConfig(**STEP_SIZES, attention="additive")
    model = ResidualLstmForConditionalGeneration(config).eval()
    batch = random_batch(TEXTS, LENGTH, config.vocab_size, "cpu")
    rows = []
    goals = ((torch.float32, "float32", "≥ 1.2"), (fast_dtype("cpu"), "int8", "≥ 1.3"))
    for dtype, compute_type, goal in goals:
        ours, name = decode(model.to(dtype), batch, LENGTH), f"beam 5, {str(dtype).removeprefix('torch.')}"
        theirs = translate(batch["input_ids"], compute_type, config.vocab_size)
        *times, ratio = in_turn(ours, theirs, repeats, "cpu", time.process_time)
        figures = (f"{taken:.3f} s" for taken in times)
        rows.append(Row(name, f"CTranslate2 BART, {compute_type}", *figures, f"{ratio:.2f}", goal))
        with torch.inference_mode():
            *times, ratio = in_turn(ours, products(config, dtype), repeats, "cpu", time.process_time)
        figures = (f"{taken:.3f} s" for taken in times)
        rows.append(Row(name, "its own matrix products", *figures, f"{1 / ratio:.2f} of their time", "≤ 1.25"))
    return rows


def translate(ids: torch.LongTensor, compute_type: str, vocab_size: int) -> Callable[[], object]:
    """Beam search with as many steps as ours, by a BART with random weights that CTranslate2 has converted."""
    if torch.backends.cpu.get_cpu_capability() == "AVX512":
        # By itself it takes AVX2 on some of these machines, which is slower.
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
    import ctranslate2

    words = {f"w{number}": number for number in range(vocab_size)}
    special = {"pad_token": "w0", "bos_token": "w1", "eos_token": "w2", "unk_token": "w3"}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIDE_SIZES.items()}
    # Fields that checkpoints of the Hub have, and the converter reads.
    layout = {"normalize_before": False, "normalize_embedding": True, "add_final_layer_norm": False}
    marks = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = BartConfig(vocab_size=vocab_size, d_model=256, max_position_embeddings=64, **sides, **layout, **marks)
    with TemporaryDirectory() as folder:
        BartForConditionalGeneration(config).save_pretrained(folder)
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="w3"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
        converter = ctranslate2.converters.TransformersConverter(folder)
        path = converter.convert(str(Path(folder) / "converted"))
        threads = torch.get_num_threads()
        translator = ctranslate2.Translator(path, compute_type=compute_type, inter_threads=1, intra_threads=threads)
    texts = [[f"w{number}" for number in row] for row in ids.tolist()]
    lengths = {"min_decoding_length": LENGTH, "max_decoding_length": LENGTH}
    return lambda: translator.translate_batch(texts, beam_size=BEAMS, **lengths)


def products(config: ResidualLstmConfig, dtype: torch.dtype) -> Callable[[], None]:
    """The matrix products of encoding and of all steps, with weights packed as the decoder packs them."""
    size, rows, packed = config.hidden_size, TEXTS * BEAMS, PrepackedWeights()

    def product(inputs: int, outputs: int, rows: int, count: int) -> list[tuple[nn.Linear, torch.Tensor]]:
        return [(nn.Linear(inputs, outputs, dtype=dtype), torch.randn(rows, 1, inputs, dtype=dtype))] * count

    encoder = product(2 * size, 4 * size, TEXTS * LENGTH, config.num_layers) + product(size, size, TEXTS * LENGTH, 1)
    step = [pair for _ in range(config.num_layers) for pair in product(2 * size, 4 * size, rows, 1)]
    step += product(size, size, rows, 1) + product(2 * size, size, rows, 1) + product(size, config.vocab_size, rows, 1)
    energies, score = torch.randn(rows * LENGTH, size), torch.randn(size, 1)
    weights, memory = torch.randn(TEXTS, BEAMS, LENGTH), torch.randn(TEXTS, LENGTH, size)

    def run() -> None:
        for layer, x in encoder:
            packed.linear(layer, x)
        for _ in range(LENGTH):
            for layer, x in step:
                packed.linear(layer, x)
            energies @ score, weights @ memory

    return run


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
