from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from datasets import Dataset
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ...generation.prompts import PROMPT_FILE, PromptEncoder, load_prompt
from ..arguments import AnswerConfig
from ..batching import Batch, Collator, PairCollator
from ..checkpoints import naming_damage
from ..lora import add_lora, check_lora, load_lora
from ..losses import Sums, cross_entropy_sums
from ..packing import check_packing, pack_rows
from .base import Task, TaskData, encode_rows

logger = logging.getLogger(__name__)


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
    encoded: dict[str, list] = {name: [] for name in ("input_ids", "labels", *kept)}
    for place, (source, target) in enumerate(zip(columns["source"], columns["target"], strict=True)):
        if not (source.strip() and target.strip()):
            continue
        prompt, answer = encoder.encode(source), encoder.encode_answer(target)
        if len(prompt) <= most[0] and len(answer) <= most[1]:
            for name, value in (
                ("input_ids", prompt),
                ("labels", answer),
                *((one, columns[one][place]) for one in kept),
            ):
                encoded[name].append(value)
    return encoded
