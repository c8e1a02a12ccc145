"""Measure speed as ratios, both sides of each taken in turn in one run.

    python scripts/benchmark.py                 # everything
    python scripts/benchmark.py train generate  # some parts
    python scripts/benchmark.py datasets --repeats 1
    python scripts/benchmark.py --device cuda --threads 8

Each row prints ours, the yardstick and the median of their ratios. Sizes are those of the papers, not of a demo, so
the whole takes some minutes on a CPU.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, TER
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration

from hf_paraphrase import ResidualLstmConfig, ResidualLstmForConditionalGeneration
from hf_paraphrase.metrics.bleu.scoring import bleu_statistics
from hf_paraphrase.metrics.embedding_greedy.scoring import embedding_greedy_statistics
from hf_paraphrase.metrics.rouge.scoring import rouge_statistics
from hf_paraphrase.metrics.significance import bootstrap
from hf_paraphrase.metrics.ter.scoring import ter_statistics
from hf_paraphrase.word_vectors import WordVectors

# Target tokens/s in training and sentences/s in decoding (beam 5) of JoeyNMT 2.3 on two CPU cores, batch 64, about 10
# words a sentence: BiLSTM 2x128 encoder, LSTM 2x256 decoder, additive attention, 10,000 words.
JOEYNMT_TRAIN, JOEYNMT_DECODE = 2050, 149

# Lines of each of the large files that the datasets part reads.
CORPUS_LINES = 5_000_000

Row = tuple[str, str, str, str, str]


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


def seconds(work: Callable[[], object], device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def in_turn(ours: Callable[[], object], theirs: Callable[[], object], repeats: int, device: str):
    """Median seconds of both, and the median over the pairs of theirs / ours: how many times as fast we are."""
    ours(), theirs()
    pairs = [(seconds(ours, device), seconds(theirs, device)) for _ in range(repeats)]
    ratio = statistics.median(their_time / our_time for our_time, their_time in pairs)
    return *(statistics.median(times) for times in zip(*pairs, strict=True)), ratio


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
    """`import hf_paraphrase` against the import that every user of transformers pays, each in a fresh process."""

    def fresh(statement: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", statement], check=True)

    baseline = "from transformers import AutoModelForSeq2SeqLM, pipeline"
    ours, theirs, ratio = in_turn(fresh("import hf_paraphrase"), fresh(baseline), repeats, "cpu")
    return [
        ("import hf_paraphrase, s", "transformers", f"{ours:.2f}", f"{theirs:.2f}", f"{1 / ratio:.2f} of its time")
    ]


def make_captions(rows: int, n_references: int = 4) -> tuple[list[str], list[list[str]]]:
    """Predictions and references of caption length that share words as captions of one picture do."""
    draw = random.Random(0)
    vocabulary = [f"w{number}" for number in range(5000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]

    def describe(topic: list[str]) -> str:
        kept = [word for word in topic if draw.random() < 0.6]
        if draw.random() < 0.5:
            middle = draw.randrange(len(kept) + 1)
            kept = kept[middle:] + kept[:middle]
        for word in draw.choices(vocabulary, weights, k=draw.randint(2, 6)):
            kept.insert(draw.randrange(len(kept) + 1), word)
        return " ".join(kept)

    topics = [draw.choices(vocabulary, weights, k=11) for _ in range(rows)]
    return [describe(topic) for topic in topics], [[describe(topic) for _ in range(n_references)] for topic in topics]


def match_greedily(words: list[str], others: list[str], vectors: dict[str, np.ndarray]) -> float:
    """Greedy matching as its script does it, one pair of sentences at a time."""
    columns = np.stack([vectors[word] for word in others], axis=1)
    return float(np.mean([np.max(vectors[word] @ columns) for word in words]))


def benchmark_metrics(device: str, repeats: int) -> list[Row]:
    """Metrics of 20,000 predictions with four references each, and 1,000 bootstrap samples of each metric.

    What these samples would cost without statistics is a thousand times what the library takes for the corpus.
    """
    predictions, references = make_captions(20_000)
    streams = list(zip(*references, strict=True))
    names = sorted({word for text in (*predictions, *itertools.chain(*references)) for word in text.split()})
    table = np.random.default_rng(0).normal(size=(len(names), 100))
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    word_vectors, by_word = (
        WordVectors({name: i for i, name in enumerate(names)}, table),
        dict(zip(names, table, strict=True)),
    )
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])

    def score_greedily() -> list[float]:
        return [
            max(match_greedily(*pair, by_word) + match_greedily(*pair[::-1], by_word) for pair in pairs) / 2
            for pairs in (
                [(text.split(), other.split()) for other in others]
                for text, others in zip(predictions, references, strict=True)
            )
        ]

    metrics = {
        "BLEU": ("sacrebleu", bleu_statistics, {}, lambda: BLEU(force=True).corpus_score(predictions, streams)),
        "TER": ("sacrebleu", ter_statistics, {}, lambda: TER().corpus_score(predictions, streams)),
        "ROUGE, ours with W": (
            "rouge-score",
            rouge_statistics,
            {},
            lambda: list(map(scorer.score_multi, references, predictions)),
        ),
        "embedding greedy": (
            "a loop over the pairs",
            embedding_greedy_statistics,
            {"word_vectors": word_vectors, "tokenize": "none"},
            score_greedily,
        ),
    }
    rows = []
    for name, (against, compute, options, theirs) in metrics.items():
        compute = partial(compute, predictions, references, **options)
        ours, library, ratio = in_turn(compute, theirs, repeats, "cpu")
        rows.append((f"{name}, s", against, f"{ours:.2f}", f"{library:.2f}", f"{ratio:.2f}"))
        resample = partial(bootstrap, next(iter(compute().values())), n_samples=1000)
        resampled = statistics.median(seconds(resample, "cpu") for _ in range(repeats))
        again = 1000 * library
        figures = (f"{resampled:.2f}", f"{again:,.0f}", f"{again / resampled:,.0f}")
        rows.append(("  1,000 samples of it, s", "as many runs of it", *figures))


def write_large_corpora(folder: Path, lines: int) -> dict[str, str]:
    """Write a PPDB and a WikiAnswers file of so many lines; the separator of each, as far as csv can split by it."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(30_000)]
    features = "PPDB2.0Score=3.81 PPDB1.0Score=12.05 -logp(LHS|e1)=0.43 Abstract=0 CharCountDiff=2 GoogleNgramSim=0.12"
    with (folder / "ppdb-2.0-l-all").open("w") as file:
        for _ in range(lines):
            source, target = (" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(2))
            file.write(f"[NN] ||| {source} ||| {target} ||| {features} ||| 0-0 1-1 ||| Equivalence\n")
    with (folder / "word_alignments.txt").open("w") as file:
        # Clusters of four questions: twelve pairs.
        for _ in range(lines // 12):
            questions = [" ".join(draw.choices(words, k=draw.randint(5, 13))) for _ in range(4)]
            file.writelines(f"{one}\t{other}\t0-0 1-1 2-2\n" for one, other in permutations(questions, 2))
    return {"ppdb-2.0-l-all": "|", "word_alignments.txt": "\t"}


def fresh_read(statement: str, cache: Path) -> tuple[float, float]:
    """Seconds for a statement in a fresh process, and the MB that its memory peaked above that of the imports."""
    code = (
        "import datasets, hf_paraphrase.datasets, resource, time\n"
        "datasets.disable_progress_bars()\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        f"before, start = peak(), time.perf_counter()\n{statement}\n"
        "print(time.perf_counter() - start, peak() - before)"
    )
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache), "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    shutil.rmtree(cache)
    elapsed, memory = map(float, done.stdout.split())
    return elapsed, memory


def benchmark_datasets(device: str, repeats: int) -> list[Row]:
    """Sampling PPDB and WikiAnswers against only reading the same file, by datasets' own text and csv builders."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, separator in write_large_corpora(folder, CORPUS_LINES).items():
            corpus = "ppdb" if file.startswith("ppdb") else "wikianswers"
            # csv takes a single character, which makes more columns of a PPDB line than there are.
            options = f"sep={separator!r}, quoting=3, header=None, names=[str(place) for place in range(16)]"
            statements = {
                corpus: f"hf_paraphrase.load_dataset({corpus!r}, data_dir={name!r})",
                "text": f"datasets.load_dataset('text', data_files={str(folder / file)!r})",
                "csv": f"datasets.load_dataset('csv', data_files={str(folder / file)!r}, {options})",
            }
            runs = [
                {kind: fresh_read(statement, folder / "cache") for kind, statement in statements.items()}
                for _ in range(repeats)
            ]
            medians = {
                kind: tuple(map(statistics.median, zip(*(run[kind] for run in runs), strict=True)))
                for kind in statements
            }
            elapsed, memory = medians.pop(corpus)
            for kind, (their_time, their_memory) in medians.items():
                ratio = statistics.median(run[kind][0] / run[corpus][0] for run in runs)
                speeds = (f"{CORPUS_LINES / taken:,.0f}" for taken in (elapsed, their_time))
                rows.append((f"{corpus}, lines/s", f"datasets, {kind}", *speeds, f"{ratio:.2f}"))
                peaks = (f"{memory:,.0f}", f"{their_memory:,.0f}")
                rows.append((f"{corpus}, peak MB", f"datasets, {kind}", *peaks, f"{memory / their_memory:.2f}"))
    return rows


PARTS = {
    "datasets": benchmark_datasets,
    "train": benchmark_train,
    "generate": benchmark_generate,
    "peer": benchmark_peer,
    "import": benchmark_import,
    "metrics": benchmark_metrics,
}


def main(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"What to measure: {', '.join(PARTS)}; all by default.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(help="CPU threads.")] = torch.get_num_threads(),
    repeats: Annotated[int, typer.Option(help="Pairs of runs; the median counts.")] = 5,
) -> None:
    """Print tokens/s, sentences/s and ratios as a table."""
    for part in set(parts or ()) - PARTS.keys():
        raise typer.BadParameter(f"no part {part}; there are {', '.join(PARTS)}")
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    print(f"torch {torch.__version__}, {device}, {threads} threads, medians of {repeats}")
    print(f"{'ours':<28}{'against':<30}{'ours':>10}{'theirs':>10}  ratio")
    for part in parts or PARTS:
        for name, against, ours, theirs, ratio in PARTS[part](device, repeats):
            print(f"{name:<28}{against:<30}{ours:>10}{theirs:>10}  {ratio}", flush=True)


if __name__ == "__main__":
    typer.run(main)
