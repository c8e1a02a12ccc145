"""FSET: what reading a retrieved pair costs in training."""

from __future__ import annotations

import torch
from transformers import MarianConfig, MarianMTModel

from hf_paraphrase import FsetConfig, FsetForConditionalGeneration

from .recurrent import training_step
from .timing import Row, in_turn

# Table 1 of Kazemnejad et al. 2020 is the configuration's default; of p and q each is read by two encoders.
ROWS, WORDS, READ = 128, 20, 5


def random_words(config: FsetConfig, words: int, device: str) -> tuple[torch.LongTensor, torch.LongTensor]:
    """Words and the mask that a collator would send with them, each `(ROWS, words)`."""
    ids = torch.randint(5, config.vocab_size, (ROWS, words), device=device)
    return ids, torch.ones_like(ids)


def fset_batch(config: FsetConfig, device: str) -> dict[str, torch.Tensor]:
    x, p, q, y = (random_words(config, WORDS, device) for _ in range(4))
    pair = {"retrieved_source_ids": p[0], "retrieved_source_mask": p[1]}
    pair |= {"retrieved_target_ids": q[0], "retrieved_target_mask": q[1]}
    return {"input_ids": x[0], "attention_mask": x[1], "labels": y[0], **pair}


def make_marian(config: FsetConfig) -> MarianMTModel:
    """A plain Transformer as deep and as wide as the Edit Performer."""
    layers, heads, width = config.num_layers, config.num_heads, config.intermediate_size
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.hidden_size,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=width,
            decoder_ffn_dim=width,
            activation_function="relu",
            dropout=config.dropout,
            max_position_embeddings=READ * WORDS,
            pad_token_id=config.pad_token_id,
            eos_token_id=config.eos_token_id,
            decoder_start_token_id=config.decoder_start_token_id,
        )
    )


def benchmark_fset(device: str, repeats: int) -> list[Row]:
    """A training step against that of a plain Transformer that reads as many words: x, and p and q twice."""
    config = FsetConfig()
    model, marian = FsetForConditionalGeneration(config).to(device).train(), make_marian(config).to(device).train()
    batch, (ids, mask) = fset_batch(config, device), random_words(config, READ * WORDS, device)
    plain = {"input_ids": ids, "attention_mask": mask, "labels": batch["labels"]}
    steps = (
        training_step(side, lambda side=side, data=data: side(**data).loss)
        for side, data in ((model, batch), (marian, plain))
    )
    ours, theirs, ratio = in_turn(*steps, repeats, device)
    words = batch["labels"].numel()
    return [
        Row(
            "FSET, training, words/s",
            "Marian of its depth",
            f"{words / ours:,.0f}",
            f"{words / theirs:,.0f}",
            f"{ratio:.2f}",
            "≥ 0.9",
        )
    ]
