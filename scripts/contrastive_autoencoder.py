"""Trains an autoencoder of sentences on groups with one meaning, and counts the content words that rewritings keep.

python scripts/contrastive_autoencoder.py --data-dir data/gutenberg --groups general/tatoeba.tsv --minutes 40 \
    --output-dir runs/contrastive

Traynor's models (2018, chapter 4) learn sentence vectors from what follows, and rewritings keep few words. Here the
model of a recipe reads a sentence of a group with words dropped and swapped, writes the sentence or another of its
group, and, by the contrastive loss (InfoNCE), tells the vectors of a group from those of the batch's others. Sentences
of books are groups of their own. --weight 0 leaves the contrastive loss out.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import torch
from datasets import Dataset
from torch import nn
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, set_seed

from hf_paraphrase import load_dataset
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets.running_text import MAX_WORDS, fit_sentences
from hf_paraphrase.evaluation.language_models import evaluate_rewriting
from hf_paraphrase.models.hierarchical_lm.modeling_hierarchical_lm import HierarchicalLmForConditionalGeneration
from hf_paraphrase.models.hierarchical_lm.tokenization_hierarchical_lm import HierarchicalLmTokenizer
from hf_paraphrase.training.recipe import load_recipe

Group = list[list[str]]  # sentences as words

TEST_GROUPS = 500  # the last ones
DROPPED = 0.1  # share of words that the encoder does not see; as many change places with the next


def read_groups(path: Path) -> list[Group]:
    """The sentences of each line, between tabs, as words; lines with fewer than two are left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    groups = [[words[:MAX_WORDS] for words in fit_sentences(line.split("\t"))] for line in lines]
    return [group for group in groups if len(group) > 1]


def disturb(words: Sequence[str], draw: random.Random) -> list[str]:
    """Drop words and swap neighbours, each with probability `DROPPED`; one word stays at least."""
    kept = [word for word in words if draw.random() >= DROPPED] or [draw.choice(words)]
    for place in range(len(kept) - 1):
        if draw.random() < DROPPED:
            kept[place], kept[place + 1] = kept[place + 1], kept[place]
    return kept


def draw_batches(groups: list[Group], size: int, draw: random.Random) -> Iterator[list[tuple[list[str], list[str]]]]:
    """Batches without end, of two sentences of a group each, in a new order every epoch."""
    if len(groups) < size:
        raise InputError(f"{len(groups)} groups are fewer than a batch, which has {size}")
    while True:
        draw.shuffle(groups)
        for start in range(0, len(groups) - size + 1, size):
            batch = groups[start : start + size]
            yield [(draw.choice(group), draw.choice(group)) for group in batch]


def contrastive_loss(first: torch.Tensor, second: torch.Tensor, temperature: float = 0.1) -> torch.Tensor:
    """InfoNCE (van den Oord et al. 2018) by cosine, in both directions, of vectors `(batch, width)`."""
    cosines = nn.functional.normalize(first, dim=1) @ nn.functional.normalize(second, dim=1).T / temperature
    own = torch.arange(len(first), device=first.device)
    return (nn.functional.cross_entropy(cosines, own) + nn.functional.cross_entropy(cosines.T, own)) / 2


def train(
    model: HierarchicalLmForConditionalGeneration,
    tokenizer: PreTrainedTokenizerBase,
    groups: list[Group],
    minutes: float,
    weight: float = 0.1,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    seed: int = 1,
) -> int:
    """Train for some minutes of processor time; returns the number of steps.

    Args:
        weight: Of the contrastive loss, beside that of the characters in nits.
        batch_size: Groups in a batch.
        learning_rate: At first; it falls to zero linearly.
    """
    draw, optimizer = random.Random(seed), torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=0.0)
    model.train()
    encoder, batches = model.get_encoder(), draw_batches(groups, batch_size, draw)
    started, steps, done = time.process_time(), 0, 0.0
    with tqdm(total=minutes, unit="min") as bar:
        while done < 1:
            pairs = next(batches)
            sources = [disturb(first, draw) for first, _ in pairs]
            targets = [draw.choice(pair) for pair in pairs]
            read = tokenizer([" ".join(each) for each in sources], padding=True, return_tensors="pt")
            labels = tokenizer([" ".join(each) for each in targets], padding=True, return_tensors="pt")
            encoded = encoder(**read)
            marked = labels["input_ids"].masked_fill(labels["attention_mask"] == 0, -100)
            loss = written = model(encoder_outputs=encoded, attention_mask=read["attention_mask"], labels=marked).loss
            if weight:
                others = tokenizer([" ".join(second) for _, second in pairs], padding=True, return_tensors="pt")
                vectors = encoder.encode_sentences(**others).flatten(1)
                told = contrastive_loss(encoded.sentence_states.flatten(1), vectors)
                loss = written + weight * told
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            steps += 1
            now = (time.process_time() - started) / 60 / minutes
            bar.update((now - done) * minutes)
            done = now
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * max(0.0, 1 - done)
            if steps % 100 == 0:
                bar.write(
                    f"step {steps}: {written.item():.3f} nits" + (f", InfoNCE {told.item():.3f}" if weight else "")
                )
    return steps


def main() -> None:
    """Train, measure on the books' test split, and print the share of content words kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder with books of Project Gutenberg")
    parser.add_argument("--groups", type=Path, nargs="+", required=True, help="files of groups, tab separated")
    parser.add_argument("--output-dir", type=Path, required=True, help="where the model and the results go")
    parser.add_argument("--recipe", default="gru-lm-gutenberg-small", help="whose model and books are taken")
    parser.add_argument("--minutes", type=float, default=40, help="of processor time")
    parser.add_argument("--weight", type=float, default=0.1, help="of the contrastive loss")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()

    recipe = load_recipe(asked.recipe)
    books = load_dataset(recipe.training.dataset, data_dir=asked.data_dir, **recipe.training.dataset_kwargs)
    own = [[words[:MAX_WORDS]] for book in books["train"] for words in fit_sentences(book["sentences"])]
    groups = list(chain.from_iterable(map(read_groups, asked.groups)))
    set_seed(asked.seed)
    own = random.Random(asked.seed).sample(own, min(len(own), len(groups)))
    tokenizer = HierarchicalLmTokenizer.from_texts(" ".join(words) for group in chain(groups, own) for words in group)
    config = recipe.override({"dropout": 0.0}).make_config()
    config.vocab_size = len(tokenizer)
    model = HierarchicalLmForConditionalGeneration(config)
    if len(groups) <= TEST_GROUPS:
        raise InputError(f"--groups: {len(groups)} groups are no more than the {TEST_GROUPS} to test on")
    groups, test = groups[:-TEST_GROUPS], groups[-TEST_GROUPS:]
    steps = train(model, tokenizer, groups + own, asked.minutes, asked.weight, seed=asked.seed)
    model.save_pretrained(asked.output_dir)
    tokenizer.save_pretrained(asked.output_dir)
    print(f"{steps} steps, {len(groups)} groups and as many sentences of books")
    mixed = Dataset.from_dict({"sentences": [[" ".join(group[0])] for group in test]})
    for name, documents in (("books", books["test"]), ("groups", mixed)):
        for noise in (0.0, "uniform"):
            folder = asked.output_dir / f"{name}-{noise}"
            results = evaluate_rewriting(model, tokenizer, documents, noise=noise, seed=asked.seed, output_dir=folder)
            for entry in results.entries:
                scores = ", ".join(f"{score.format(1)} {score.metric}" for score in entry.scores)
                print(f"{name}, noise {noise}, {entry.system}: {scores}")


if __name__ == "__main__":
    main()
