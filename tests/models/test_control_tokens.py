"""The token of a strength stands before the source's ids, whatever calls the model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tokenizers import AddedToken
from transformers import PreTrainedModel, PreTrainedTokenizerFast, pipeline

from hf_paraphrase import Paraphraser, Text2TextGenerationPipeline
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.engine import generate_paraphrases
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration
from hf_paraphrase.models.text.encoded_inputs import encode_inputs, find_control, source_limit
from tests.models.tiny import WORDS, tiny_bart, tiny_model, tiny_t5, word_tokenizer

TOKENS = ["<novelty-0>", "<novelty-1>", "<novelty-2>"]
FIRST = len(WORDS)
TEXTS = ["the cat", "a dog sat on the mat", "how do i learn faster ?", "z"]
SHORT = {"max_new_tokens": 5}
BAD = [-0.1, 1.5, "much", True, float("nan")]


def tiny_residual_lstm() -> ResidualLstmForConditionalGeneration:
    return tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration)


@pytest.fixture(params=[tiny_bart, tiny_t5, tiny_residual_lstm], ids=lambda make: make.__name__)
def steered(request) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    return steer(request.param)


def steer(make: Callable[[], PreTrainedModel], **kwargs: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Give a model and its tokenizer three control tokens, whose embeddings are large enough to be heard."""
    model, tokenizer = make(), word_tokenizer(**kwargs)
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in TOKENS], special_tokens=True)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[FIRST:] = torch.randn(3, model.get_input_embeddings().weight.shape[1]) * 3
    model.generation_config.suppress_tokens = [FIRST, FIRST + 1, FIRST + 2]
    model.config.control_tokens = TOKENS
    return model.eval(), tokenizer


def text2text(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Text2TextGenerationPipeline:
    return Text2TextGenerationPipeline(model=model, tokenizer=tokenizer, device="cpu")


def read_ids(model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """The batches of `input_ids` that `generate()` gets from now on."""
    read, generate = [], model.generate

    def note(*args, **kwargs):
        read.append(kwargs["input_ids"])
        return generate(*args, **kwargs)

    monkeypatch.setattr(model, "generate", note)
    return read


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_token_is_the_first_of_each_text(side: str) -> None:
    model, tokenizer = steer(tiny_bart, padding_side=side)
    plain, _ = encode_inputs(tokenizer, TEXTS, model=model)
    inputs, _ = encode_inputs(tokenizer, TEXTS, model=model, control=FIRST + 1)
    assert inputs["input_ids"].shape == inputs["attention_mask"].shape
    for ids, mask, bare, bare_mask in zip(
        inputs["input_ids"], inputs["attention_mask"], plain["input_ids"], plain["attention_mask"], strict=True
    ):
        assert ids[mask.bool()].tolist() == [FIRST + 1, *bare[bare_mask.bool()].tolist()]
        assert set(ids[~mask.bool()].tolist()) <= {tokenizer.pad_token_id}


@pytest.mark.parametrize(
    ("strength", "level"), [(0, 0), (0.2, 0), (0.3, 1), (0.5, 1), (0.74, 1), (0.76, 2), (1, 2), (None, None)]
)
def test_levels_of_strengths(strength: float | None, level: int | None) -> None:
    model, tokenizer = steer(tiny_bart)
    assert find_control(model.config, tokenizer, strength) == (None if level is None else FIRST + level)
    model.config.default_strength = 1.0
    assert find_control(model.config, tokenizer, strength) == FIRST + (2 if level is None else level)


def test_pipeline_paraphraser_and_engine_give_the_token(steered, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = steered
    pipe = text2text(model, tokenizer)
    paraphraser, read = Paraphraser(model, tokenizer, strength=1.0), read_ids(model, monkeypatch)
    calls = [
        (lambda: pipe(TEXTS, batch_size=4, strength=1, **SHORT), 2),
        (lambda: pipe(TEXTS, strength=0.5, num_candidates=3, **SHORT), 1),
        (lambda: paraphraser(TEXTS, 1, **SHORT), 2),
        (lambda: paraphraser(TEXTS, 2, strength=0, **SHORT), 0),
        (lambda: generate_paraphrases(model, tokenizer, TEXTS, strength=0.5, **SHORT), 1),
    ]
    for call, level in calls:
        read.clear()
        call()
        assert sum(map(len, read)) == len(TEXTS)
        for ids in torch.cat([batch[:, :2] for batch in read]):
            assert ids[0] == FIRST + level and ids[1] < FIRST
    read.clear()
    pipe(TEXTS, batch_size=4, **SHORT)
    assert (read[0] < FIRST).all()
    model.config.default_strength = 0.5
    pipe(TEXTS, batch_size=4, **SHORT)
    Paraphraser(model, tokenizer)(TEXTS, 1, **SHORT)
    assert (read[1][:, 0] == FIRST + 1).all() and (read[-1][:, 0] == FIRST + 1).all()


def test_results_are_the_same_alone_and_in_a_batch(steered) -> None:
    model, tokenizer = steered
    pipe = text2text(model, tokenizer)
    written = {strength: pipe(TEXTS, batch_size=4, strength=strength, **SHORT) for strength in (None, 0, 1)}
    for strength, outputs in written.items():
        assert outputs == [pipe(text, strength=strength, **SHORT)[0] for text in TEXTS]
    assert len({str(outputs) for outputs in written.values()}) > 1
    paraphraser = Paraphraser(model, tokenizer)
    options = {"strength": 1, "keep": (), "min_adequacy": 0, **SHORT}
    together = paraphraser(TEXTS, 2, **options)
    alone = [paraphraser(text, 2, **options) for text in TEXTS]
    assert any(together)
    assert [[one.text for one in group] for group in together] == [[one.text for one in group] for group in alone]


def test_the_name_of_a_token_in_a_text_is_text(steered, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = steered
    pipe, read = text2text(model, tokenizer), read_ids(model, monkeypatch)
    for text in ("<novelty-2> the cat", "the cat </s> sat <novelty-0>"):
        for options in ({}, {"strength": 0.5}):
            read.clear()
            pipe(text, **options, **SHORT)
            ids = read[0][0].tolist()
            assert ids.count(2) == 1 and [token for token in ids if token >= FIRST] == [FIRST + 1] * len(options)


def test_a_text_without_words_stays_blank(steered) -> None:
    model, tokenizer = steered
    pipe = text2text(model, tokenizer)
    assert pipe(["", " ", "\u200b"], strength=0.5, **SHORT) == [{"generated_text": ""}] * 3


def test_text_and_token_fit_into_the_positions() -> None:
    model, tokenizer = steer(lambda: tiny_bart())
    model.config.max_position_embeddings = 10
    text = "the cat sat on the mat " * 5
    assert source_limit(model, tokenizer) == 9
    inputs, _ = encode_inputs(tokenizer, [text], None, model, True, 10, control=FIRST)
    assert inputs["input_ids"].shape == (1, 10) and inputs["input_ids"][0, -1] == 2


def test_unknown_words_are_replaced_by_those_behind_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the source, by the numbers of its tokens, start with an empty one for the control token."""
    model, tokenizer = steer(tiny_bart)
    with torch.no_grad():
        model.final_logits_bias[0, tokenizer.unk_token_id] = 100.0
    pipe = text2text(model, tokenizer)
    outputs = pipe(["Oslo"] * 2, strength=1, replace_unknown=True, num_beams=1, max_new_tokens=2, batch_size=2)
    assert outputs == [{"generated_text": "Oslo Oslo"}] * 2


@pytest.mark.parametrize("strength", BAD)
def test_a_strength_out_of_range_is_refused_by_name(strength: object) -> None:
    model, tokenizer = steer(tiny_bart)
    message = "`strength` must be a number from 0 to 1, not"
    pipe, paraphraser = (
        text2text(model, tokenizer),
        Paraphraser(model, tokenizer),
    )
    with pytest.raises(ValueError, match=message):
        pipe("the cat", strength=strength)
    with pytest.raises(ValueError, match=message):
        generate_paraphrases(model, tokenizer, ["the cat"], strength=strength)
    with pytest.raises(InputError, match=message):
        paraphraser("the cat", strength=strength)
    with pytest.raises(InputError, match=message):
        Paraphraser(model, tokenizer, strength=strength)


def test_a_pipeline_of_a_model_without_tokens_refuses_a_strength() -> None:
    pipe = pipeline("text2text-generation", model=tiny_t5(), tokenizer=word_tokenizer())
    with pytest.raises(ValueError, match="`strength`: this t5 has no control tokens"):
        pipe("the cat", strength=0.5)


def test_a_saved_model_keeps_its_tokens(steered, tmp_path) -> None:
    model, tokenizer = steered
    model.config.default_strength = 1.0
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = pipeline("text2text-generation", model=str(tmp_path), device="cpu")
    expected = text2text(model, tokenizer)(TEXTS, strength=1, **SHORT)
    assert loaded(TEXTS, **SHORT) == expected != loaded(TEXTS, strength=0, **SHORT)
