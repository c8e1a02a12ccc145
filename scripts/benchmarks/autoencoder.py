"""The hierarchical autoencoder: what sentences cost in training and in writing."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hf_paraphrase import HierarchicalAutoencoderConfig, HierarchicalAutoencoderForConditionalGeneration

from .recurrent import BareLstm, training_step
from .timing import Row, in_turn

# Half the paper's width, for a machine without a GPU; its depth, its batch and its sentences of about 14 words.
SIZES = {"vocab_size": 10_000, "hidden_size": 512, "num_layers": 4}
ROWS, SENTENCES, WORDS = 32, 4, 14


def random_documents(config: HierarchicalAutoencoderConfig, device: str) -> torch.LongTensor:
    """Documents of one length whose sentences differ in theirs, `(ROWS, SENTENCES * WORDS + 1)`."""
    ids = torch.randint(5, config.vocab_size, (ROWS, SENTENCES * WORDS + 1))
    for row in ids:
        row[torch.randperm(SENTENCES * WORDS - 1)[: SENTENCES - 1]] = config.end_of_sentence_token_id
    ids[:, -2], ids[:, -1] = config.end_of_sentence_token_id, config.eos_token_id
    return ids.to(device)


def make_model(device: str, **options) -> HierarchicalAutoencoderForConditionalGeneration:
    config = HierarchicalAutoencoderConfig(**SIZES, **options)
    return HierarchicalAutoencoderForConditionalGeneration(config).to(device)


def benchmark_autoencoder(device: str, repeats: int) -> list[Row]:
    """Training against a bare LSTM autoencoder of the same sizes and words; writing against the standard one."""
    config = HierarchicalAutoencoderConfig(**SIZES)
    ids = random_documents(config, device)
    bare = training_step(module := BareLstm(config).to(device).train(), lambda: module(input_ids=ids, labels=ids))
    rows = []
    kinds = (("hierarchical", {}, "≥ 0.95", "≥ 1"), ("with attention", {"attention": True}, "≥ 0.9", ""))
    for name, options, goal, _ in kinds:
        model = make_model(device, **options).train()
        ours = training_step(model, lambda model=model: model(input_ids=ids, labels=ids).loss)
        row = compare(f"autoencoder, {name}", "bare nn.LSTM", ours, bare, ids.numel(), repeats, device)
        rows.append(row._replace(goal=goal))
    standard = write(make_model(device, hierarchy="none").eval(), ids)
    for name, options, _, goal in kinds:
        ours = write(make_model(device, **options).eval(), ids)
        row = compare(f"writing, {name}", "standard autoencoder", ours, standard, ids.numel(), repeats, device)
        rows.append(row._replace(goal=goal))
    return rows


def compare(name: str, against: str, ours: Callable, theirs: Callable, tokens: int, repeats: int, device: str) -> Row:
    our_seconds, their_seconds, ratio = in_turn(ours, theirs, repeats, device)
    return Row(name, against, f"{tokens / our_seconds:,.0f}", f"{tokens / their_seconds:,.0f}", f"{ratio:.2f}")


def write(model: HierarchicalAutoencoderForConditionalGeneration, ids: torch.LongTensor) -> Callable[[], object]:
    """Greedy generation of as many words as the source has, with sentences as long as there."""

    def follow(batch_id: int, written: torch.LongTensor) -> list[int]:
        return [int(ids[batch_id, len(written) - 1])]

    def generate() -> torch.LongTensor:
        return model.generate(ids, prefix_allowed_tokens_fn=follow, max_new_tokens=ids.shape[1])

    return generate
