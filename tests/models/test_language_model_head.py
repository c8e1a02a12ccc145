"""Heads take what their encoder-decoders take, and `labels`; they say so to whoever asks for their signature."""

from __future__ import annotations

import inspect

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, Trainer, TrainingArguments

from hf_paraphrase.registration import ARCHITECTURES

from .tiny import tiny_model

HEADS = {
    row.model_type: (row.config_class, row.model_classes[AutoModelForSeq2SeqLM])
    for row in ARCHITECTURES
    if AutoModelForSeq2SeqLM in row.model_classes
}


@pytest.fixture(params=HEADS)
def model(request):
    return tiny_model(*HEADS[request.param]).eval()


def test_the_signature_is_the_encoder_decoder_s_and_labels(model):
    body = inspect.signature(model.model.forward).parameters
    head = inspect.signature(model.forward).parameters
    assert [name for name in head if name != "labels"] == list(body)
    assert list(head)[:2] == ["input_ids", "attention_mask"]
    assert {parameter.kind for parameter in list(head.values())[2:-1]} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_word_too_many_is_refused(model):
    ids = torch.tensor([[5, 2]])
    with pytest.raises(TypeError, match="unexpected keyword argument 'labelz'"):
        model(input_ids=ids, decoder_input_ids=ids, labelz=ids)


def test_trainer_divides_the_loss_by_accumulated_batches(model, tmp_path):
    trainer = Trainer(model, TrainingArguments(str(tmp_path), use_cpu=True, report_to="none"))
    assert not trainer.model_accepts_loss_kwargs
    trainer._set_signature_columns_if_needed()
    assert {"input_ids", "labels"} <= set(trainer._signature_columns)
    reads_pairs = "retrieved_source_ids" in inspect.signature(model.get_encoder().forward).parameters
    assert ("retrieved_source_ids" in trainer._signature_columns) == reads_pairs
