from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...common.errors import InputError
from ...generation.prompts import PROMPT_FILE, PromptEncoder, load_prompt
from ..arguments import AnswerConfig
from ..batching import Batch, Collator, PairCollator, pad_rows
from ..checkpoints import naming_damage
from ..lora import add_lora, check_lora, load_lora
from ..losses import Sums, cross_entropy_sums
from .base import Task, TaskData, encode_rows

# Flash attention reads positions of a single row alone.
IMPLEMENTATIONS = ("eager", "sdpa", "flex_attention")


class AnswerTask(Task):
    """Answer a prompt with a paraphrase, for any causal language model: the loss covers only the answer.

    Rows of similar length share a batch. The run keeps its prompt, by which `Paraphraser` asks the model.
    """

    config_class = AnswerConfig
    auto_class = AutoModelForCausalLM
    columns = ("source", "target")
    can_stream = True
    training: AnswerConfig

    def __init__(self, training: AnswerConfig, trust_remote_code: bool = False):
        super().__init__(training, trust_remote_code)
        if training.lora is not None:
            check_lora(training.lora)
        # What learns to answer needs no examples, which would make every row long.
        self.prompt = load_prompt(training.prompt) if training.prompt else replace(load_prompt(), examples=[])

    def texts(self, rows: Dataset) -> Iterable[str]:
        return (text for column in self.columns for text in rows[column])

    def make_tokenizer(self, rows: Dataset, vocab_size: int) -> PreTrainedTokenizerBase:
        tokenizer = super().make_tokenizer(rows, vocab_size)
        if tokenizer.pad_token is None and tokenizer.eos_token is not None:
            tokenizer.pad_token = tokenizer.eos_token
        # The limits of the recipe are those of text and answer, not of the prompt.
        tokenizer.model_max_length = self.training.max_prompt_length + self.training.max_target_length
        return tokenizer

    def make_model(self, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        model = super().make_model(config, data)
        if self.training.lora is not None:
            add_lora(model, self.training.lora, str(self.training.pretrained))
        return model

    def resume_model(self, checkpoint: Path, config: PreTrainedConfig, data: TaskData) -> PreTrainedModel:
        if self.training.lora is None:
            return super().resume_model(checkpoint, config, data)
        model = self.make_model(config, data)
        with naming_damage(checkpoint):
            load_lora(model, checkpoint)
        return model

    def encode_split(self, rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> Dataset:
        lack = "one side has no words, or is longer than `max_prompt_length` or `max_target_length`"
        encoder = PromptEncoder(tokenizer, self.prompt)
        most = (self.training.max_prompt_length, self.training.max_target_length)
        kept = [name for name in ("group", "corpus") if name in rows.column_names]
        return encode_rows(rows, _encode, "pairs", lack, encoder=encoder, most=most, kept=kept)

    def save_assets(self, data: TaskData, output_dir: Path) -> None:
        self.prompt.save(output_dir / PROMPT_FILE)

    def make_collator(self, tokenizer: PreTrainedTokenizerBase) -> Collator:
        pad = PairCollator(tokenizer.pad_token_id)
        most = self.training.max_prompt_length + self.training.max_target_length

        def collate(features: Sequence[dict[str, Any]]) -> Batch:
            pairs = [(feature["input_ids"], feature["labels"]) for feature in features]
            rows = [(prompt + answer, [-100] * len(prompt) + answer) for prompt, answer in pairs]
            if self.training.packing:
                return pack_rows(rows, most, tokenizer.pad_token_id)
            return pad([{"input_ids": ids, "labels": labels} for ids, labels in rows])

        return collate

    def prepare_model(self, model: PreTrainedModel, data: TaskData) -> None:
        super().prepare_model(model, data)
        if self.training.packing:
            check_packing(model, data.splits["train"][0]["input_ids"])

    def loss_sums(self, model: nn.Module, batch: Batch, data: TaskData) -> Sums:
        # With a cache, transformers would not look for packed examples.
        return cross_entropy_sums(
            model, cast(Batch, {**batch, "use_cache": False}) if self.training.packing else batch
        )


def _encode(
    columns: dict[str, list], encoder: PromptEncoder, most: tuple[int, int], kept: list[str]
) -> dict[str, list]:
    rows = []
    kept_columns = (columns[name] for name in kept)
    for source, target, *others in zip(columns["source"], columns["target"], *kept_columns, strict=True):
        if source.strip() and target.strip():
            prompt, answer = encoder.encode(source), encoder.encode_answer(target)
            if len(prompt) <= most[0] and len(answer) <= most[1]:
                rows.append((prompt, answer, *others))
    return {name: [row[place] for row in rows] for place, name in enumerate(("input_ids", "labels", *kept))}


def pack_rows(
    examples: Sequence[tuple[list[int], list[int]]], most: int, pad_token_id: int
) -> dict[str, torch.Tensor]:
    """Pack examples into rows by best-fit decreasing, and pad the rows on the right.

    Positions begin at 0 with each example, and with each token of padding. Where they do not ascend by 1, transformers
    ends a sequence, as long as it gets no `attention_mask` and no cache.

    Args:
        examples: Token ids and labels, as long as each other; the first label of each is -100.
        most: Maximum tokens per row; a longer example has its own row.
        pad_token_id: Fills `input_ids`.

    Returns:
        `input_ids`, `position_ids` and `labels` of shape `(rows, longest row)`.
    """
    rows: list[list[int]] = []
    room: list[int] = []
    for number in sorted(range(len(examples)), key=lambda number: -len(examples[number][0])):
        length = len(examples[number][0])
        fitting = [row for row, left in enumerate(room) if left >= length]
        if fitting:
            best = min(fitting, key=room.__getitem__)
            rows[best].append(number)
            room[best] -= length
        else:
            rows.append([number])
            room.append(most - length)
    chosen = [[examples[number] for number in row] for row in rows]
    return {
        "input_ids": pad_rows([[token for ids, _ in row for token in ids] for row in chosen], pad_token_id),
        "position_ids": pad_rows([[place for ids, _ in row for place in range(len(ids))] for row in chosen], 0),
        "labels": pad_rows([[label for _, labels in row for label in labels] for row in chosen], -100),
    }


@torch.no_grad()
def check_packing(model: PreTrainedModel, ids: list[int]) -> None:
    """Refuse a model whose examples would read those before them in the row.

    Args:
        model: The model to train.
        ids: The tokens of an example.

    Raises:
        InputError: Its attention does not separate packed examples by their positions.
    """
    implementation = model.config._attn_implementation
    if implementation not in IMPLEMENTATIONS:
        raise InputError(f"`packing` needs attention by {', '.join(IMPLEMENTATIONS)}, not {implementation}")
    training = model.training
    model.eval()
    batch = pack_rows([(ids, ids), (ids[::-1], ids)], 2 * len(ids), 0)
    batch = {name: batch[name].to(model.device) for name in ("input_ids", "position_ids")}
    try:
        packed = model(**batch, use_cache=False).logits[0, len(ids) :]
        alone = model(input_ids=batch["input_ids"][:, len(ids) :], use_cache=False).logits[0]
    except TypeError:  # it knows no positions
        packed, alone = torch.zeros(1), torch.ones(1)
    model.train(training)
    if not torch.allclose(packed, alone, rtol=0.02, atol=0.02 * float(alone.abs().max())):
        raise InputError(f"`packing`: a {type(model).__name__} does not keep packed examples apart; leave it out")
