"""Augmentation: two workers against one, and CTranslate2 against `generate()`."""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from hf_paraphrase.augmentation.run import Augmentation, run_augmentation
from hf_paraphrase.generation.backends import CTranslate2Writer
from hf_paraphrase.generation.engine import generate_several

from .timing import Row, in_turn

# Words of the vocabulary, and of a text.
WORDS, LENGTH = 8000, 12
SIZES = {"d_model": 256, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "max_position_embeddings": 128}
SIZES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_layers": 4, "decoder_layers": 4}
OPTIONS = {"num_beams": 5, "max_new_tokens": 16}
ROWS, TASKS, BATCH_SIZE = 96, 12, 16


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Of words that are numbers; the padding is the last, as Marian's."""
    words = ["</s>", "<unk>", *(f"w{number}" for number in range(WORDS - 3)), "<pad>"]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    marks = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)


def make_models() -> dict[str, BartForConditionalGeneration | MarianMTModel]:
    """Models of four layers of 256 on both sides, with random weights."""
    ids = {"vocab_size": WORDS, "pad_token_id": WORDS - 1, "eos_token_id": 0, "forced_eos_token_id": None}
    bart = BartForConditionalGeneration(BartConfig(decoder_start_token_id=0, **ids, **SIZES)).eval()
    marian = MarianMTModel(MarianConfig(decoder_start_token_id=WORDS - 1, **ids, **SIZES)).eval()
    for model in (bart, marian):
        model.generation_config.bad_words_ids = [[WORDS - 1]]
    return {"BART": bart, "Marian": marian}


def make_texts(rows: int) -> list[str]:
    draw = random.Random(0)
    return [" ".join(f"w{draw.randrange(WORDS - 3)}" for _ in range(draw.randint(4, LENGTH))) for _ in range(rows)]


def benchmark_augment(device: str, repeats: int) -> Iterator[Row]:
    """Rows/s of the command by two processes and by one, and sentences/s of the engine and of `generate()`."""
    tokenizer, texts, threads = make_tokenizer(), make_texts(ROWS), torch.get_num_threads()
    for name, model in make_models().items():
        model.to(device)
        for compute_type in ("float32", "int8"):
            engine = CTranslate2Writer(model, tokenizer, compute_type=compute_type)
            ours, theirs, ratio = in_turn(
                partial(engine.generate, texts, BATCH_SIZE, **OPTIONS),
                partial(generate_several, model, tokenizer, texts, 1, batch_size=BATCH_SIZE, **OPTIONS),
                repeats,
                device,
            )
            speeds = (f"{ROWS / taken:,.1f}" for taken in (ours, theirs))
            yield f"{name}, CTranslate2 {compute_type}", "generate(), sentences/s", *speeds, f"{ratio:.2f}"
        if name == "BART":
            model.save_pretrained(saved := tempfile.mkdtemp())
            tokenizer.save_pretrained(saved)
    try:
        torch.set_num_threads(1)  # of each process
        ours, theirs, ratio = in_turn(
            partial(augment_once, saved, texts, 2), partial(augment_once, saved, texts, 1), repeats, device
        )
    finally:
        torch.set_num_threads(threads)
    yield "augment, 2 workers", "1 worker, rows/s", f"{ROWS / ours:,.1f}", f"{ROWS / theirs:,.1f}", f"{ratio:.2f}"


def augment_once(model: str, texts: list[str], workers: int) -> None:
    """Run the command's work; the processes are forks, which need not import anything."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.csv"
        with source.open("w", newline="") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])
        options = {"decoding": "beam", "keep": [], "batch_size": BATCH_SIZE, "max_new_tokens": 16}
        asked = Augmentation(input=str(source), model=model, column="text", tasks=TASKS, options=options)
        run_augmentation(asked, f"{folder}/out", workers=workers, executor_options={"start_method": "fork"})
