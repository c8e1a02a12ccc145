"""The hierarchical language model: what characters cost in training, and candidates in paraphrasing."""

from __future__ import annotations

import random

import torch

from hf_paraphrase import HierarchicalLmConfig, HierarchicalLmForConditionalGeneration, HierarchicalLmTokenizer

from .padded_language_model import PaddedLanguageModel
from .recurrent import training_step
from .timing import Row, in_turn

ROWS, WORDS, CANDIDATES = 64, 30, 40
# How often a running word of the Gutenberg books has 1, 2, … characters, in percent: 4.0 on average.
LENGTHS = (16, 16, 20, 17, 10, 8, 6, 4, 2, 1)


def random_texts(seed: int) -> list[str]:
    """Sentences of 30 words, which are about as long as those of books."""
    draw = random.Random(seed)
    letters = "eeeettaaooiinnsshhrrddlluucmfwypvbgk"

    def word() -> str:
        (length,) = draw.choices(range(1, len(LENGTHS) + 1), LENGTHS)
        return "".join(draw.choices(letters, k=length))

    return [" ".join(word() for _ in range(WORDS)) for _ in range(ROWS)]


def pad_words(tokenizer: HierarchicalLmTokenizer, texts: list[str], device: str) -> list[torch.Tensor]:
    """What `PaddedLanguageModel` reads: words, words behind START, and words with their STOP and END."""
    rows = [[[tokenizer.vocab[c] for c in word] for word in tokenizer.split_words(text)] for text in texts]

    def pad(words: list[list[list[int]]], width: int) -> torch.Tensor:
        return torch.tensor([[[*w, *[0] * (width - len(w))] for w in row] for row in words], device=device)

    start, stop, end = tokenizer.bos_token_id, tokenizer.stop_token_id, tokenizer.eos_token_id
    width = tokenizer.max_characters
    return [
        pad(rows, width),
        pad([[[start], *row] for row in rows], width),
        pad([[*([*w, stop] for w in row), [end]] for row in rows], width + 1),
    ]


def make_model(device: str, **options) -> HierarchicalLmForConditionalGeneration:
    return HierarchicalLmForConditionalGeneration(HierarchicalLmConfig(**options)).to(device)


def benchmark_language_model(device: str, repeats: int) -> list[Row]:
    """Training against the padded twin and the GRU variant; 40 candidates at once against one by one."""
    tokenizer = HierarchicalLmTokenizer()
    sources, targets = random_texts(0), random_texts(1)
    inputs = tokenizer(sources, padding=True, return_tensors="pt").to(device)
    labels = tokenizer(targets, padding=True, return_tensors="pt").to(device)
    labels = labels["input_ids"].masked_fill(~labels["attention_mask"].bool(), -100)
    characters = int((labels != -100).sum())
    sarah, gru = (make_model(device, sentence_encoder=kind).train() for kind in ("sarah", "gru"))
    steps = {
        name: training_step(model, lambda model=model: model(**inputs, labels=labels).loss)
        for name, model in (("sarah", sarah), ("gru", gru))
    }
    padded = PaddedLanguageModel(sarah.config).to(device).train()
    source, _, _ = pad_words(tokenizer, sources, device)
    _, target, following = pad_words(tokenizer, targets, device)
    steps["padded"] = training_step(padded, lambda: padded(source, target, following))

    def speed(seconds: float) -> str:
        return f"{characters / seconds:,.0f}"

    rows = []
    for other, against in (("padded", "padded to 20 and 30"), ("gru", "GRU variant")):
        ours, theirs, ratio = in_turn(steps["sarah"], steps[other], repeats, device)
        rows.append(("characters/s, SARAh", against, speed(ours), speed(theirs), f"{ratio:.2f}"))
    return [*rows, compare_candidates(sarah.eval(), tokenizer, repeats, device)]


def compare_candidates(
    model: HierarchicalLmForConditionalGeneration, tokenizer: HierarchicalLmTokenizer, repeats: int, device: str
) -> Row:
    text = random_texts(2)[0]
    options = {"seed": 0, "max_new_tokens": 64}

    def one_by_one() -> None:
        for seed in range(CANDIDATES):
            model.paraphrase(text, tokenizer, 1, **options | {"seed": seed})

    ours, theirs, ratio = in_turn(
        lambda: model.paraphrase(text, tokenizer, CANDIDATES, **options), one_by_one, repeats, device
    )
    return (
        "candidates/s, 40 at once",
        "40 calls",
        f"{CANDIDATES / ours:.0f}",
        f"{CANDIDATES / theirs:.0f}",
        f"{ratio:.2f}",
    )
