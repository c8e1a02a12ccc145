"""Training with control tokens: each pair's novelty as a token before its source, or, now and then, none."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from transformers import AutoTokenizer, pipeline

from hf_paraphrase.common.errors import InputError, TrainingInterrupted
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.tasks.decompose import LEVEL_LABELS, DecomposeConfig, DecomposeTask
from hf_paraphrase.training.tasks.edit import EditConfig, EditTask
from hf_paraphrase.training.tasks.paraphrase import ParaphraseTask

from ..tiny_runs import assert_equal, last_weights, make_pairs, make_recipe, send_after

TWO_LEVELS = {"control_tokens": "novelty", "control_edges": [0.5]}
# PINC 0, 1, and (1/3 + 1/2 + 1) / 3 = 0.61: of "w1 w2 w9" w9 is new, of its bigrams one, and its trigram.
PAIRS = [("w1 w2 w3", "W1 w2 w3"), ("w1 w2 w3", "w4 w5"), ("w1 w2 w3", "w1 w2 w9")]


def rows_of(pairs: list[tuple[str, str]]) -> DatasetDict:
    columns = dict(zip(("source", "target"), map(list, zip(*pairs, strict=True)), strict=True))
    return DatasetDict(train=Dataset.from_dict(columns), validation=Dataset.from_dict(columns))


def encode(task: ParaphraseTask, pairs: list[tuple[str, str]]) -> tuple[Any, Any]:
    rows = rows_of(pairs)
    tokenizer = task.make_tokenizer(rows["train"], 40)
    return task.encode(rows, tokenizer), tokenizer


def test_levels_are_those_of_pinc() -> None:
    fields = {"control_tokens": "novelty", "control_edges": [0.5, 0.6, 0.62]}
    task = ParaphraseTask(make_recipe(**fields).training)
    data, tokenizer = encode(task, PAIRS)
    assert tokenizer.convert_ids_to_tokens(data.splits["train"]["control"][:]) == [
        "<novelty-0>",
        "<novelty-3>",
        "<novelty-2>",
    ]
    plain, _ = encode(ParaphraseTask(make_recipe().training), PAIRS)
    for split in ("train", "validation"):
        assert task.lengths(data.splits[split])[0].tolist() == [5, 5, 5]
        assert data.splits[split]["labels"][:] == plain.splits[split]["labels"][:]
    examples = task.features(data.splits["validation"], range(3), None)
    expected = zip(data.splits["validation"]["control"], plain.splits["validation"]["input_ids"], strict=True)
    assert [example["input_ids"] for example in examples] == [[control, *ids] for control, ids in expected]


def test_the_token_counts_among_the_tokens_of_a_source() -> None:
    data, _ = encode(ParaphraseTask(make_recipe(**TWO_LEVELS, max_source_length=3).training), PAIRS)
    assert [len(ids) for ids in data.splits["train"]["input_ids"]] == [2, 2, 2]


def test_a_share_of_each_epoch_is_plain_and_drawn_anew() -> None:
    task = ParaphraseTask(make_recipe(**TWO_LEVELS, plain_share=0.25).training)
    data, tokenizer = encode(task, PAIRS[:1] * 1000)
    control = tokenizer.convert_tokens_to_ids("<novelty-0>")

    def plain_rows(epoch: int | None, rows: range = range(1000)) -> list[int]:
        examples = task.features(data.splits["train"], rows, epoch)
        return [row for row, example in zip(rows, examples, strict=True) if example["input_ids"][0] != control]

    first, second = plain_rows(0), plain_rows(1)
    assert 200 < len(first) < 300 and 200 < len(second) < 300 and first != second
    assert plain_rows(None) == []
    # However an epoch is cut into batches, and whatever was drawn before.
    assert plain_rows(0, range(500)) + plain_rows(0, range(500, 1000)) == first
    other = ParaphraseTask(make_recipe(**TWO_LEVELS, plain_share=0.25, seed=7).training)
    assert other.features(data.splits["train"], range(1000), 0) != task.features(data.splits["train"], range(1000), 0)


def test_the_tokenizer_reads_the_names_as_text(tmp_path) -> None:
    _, tokenizer = encode(ParaphraseTask(make_recipe(**TWO_LEVELS).training), PAIRS)
    tokenizer.save_pretrained(tmp_path)
    for read in (tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        assert len(read) == len(tokenizer)
        control = read.convert_tokens_to_ids("<novelty-1>")
        assert control == len(read) - 1 and control not in read("w1 <novelty-1> w2")["input_ids"]
        assert read.decode([control, read.convert_tokens_to_ids("w1")], skip_special_tokens=True) == "w1"


def test_a_control_token_has_no_label_of_a_level() -> None:
    fields = {"dataset": "tiny", **TWO_LEVELS, "plain_share": 0.5}
    task = DecomposeTask(DecomposeConfig(**fields))
    data, _ = encode(task, PAIRS * 20)
    examples = task.features(data.splits["train"], range(60), 0)
    assert {len(example["input_ids"]) for example in examples} == {4, 5}
    for example, row in zip(examples, data.splits["train"], strict=True):
        before = [-100] * (len(example["input_ids"]) - 4)
        assert example[LEVEL_LABELS[0]] == before + row[LEVEL_LABELS[0]]


def test_a_retrieved_pair_has_no_control_token() -> None:
    fields = {"dataset": "tiny", **TWO_LEVELS, "retriever_encoder": "jaccard", "self_pair_share": 0.5}
    task = EditTask(EditConfig(task="edit", **fields, plain_share=0.0))
    data, _ = encode(task, [*PAIRS, ("w7 w8", "w8 w7")] * 4)
    split = data.splits["train"]
    for example, row in zip(task.features(split, range(len(split)), 0), split, strict=True):
        assert example["input_ids"] == [row["control"], *row["input_ids"]]
        assert example["retrieved_source_ids"] in split["input_ids"][:]
    for examples in task._pairs_compared(split, split).values():
        assert all(example["retrieved_source_ids"] in split["input_ids"][:] for example in examples)


def test_a_model_learns_to_obey(tmp_path) -> None:
    """One source with a near and a far target: without a token, nobody can tell which of them is meant."""
    rows = rows_of([("w1 w2", "w1 w2"), ("w1 w2", "w3 w4")] * 8)
    fields = {"num_train_epochs": 25, "dropout": 0.0, "train_batch_size": 16, "learning_rate": 0.05}
    fields["eval_strategy"], fields["eval_steps"] = "steps", 25
    plain = train(make_recipe(**fields), tmp_path / "plain", dataset=rows)
    told = train(make_recipe(**fields, **TWO_LEVELS), tmp_path / "told", dataset=rows)
    # ln 2 over the three tokens of a target is what cannot be told.
    assert plain["last"]["eval_loss"] > 0.2 > 0.1 > told["last"]["eval_loss"]
    pipe = pipeline("text2text-generation", model=str(tmp_path / "told"), device="cpu")
    assert pipe.model.config.control_tokens == ["<novelty-0>", "<novelty-1>"]
    assert (pipe.model.config.control_edges, pipe.model.config.default_strength) == ([0.5], 0.5)
    assert pipe("w1 w2", strength=0) == [{"generated_text": "w1 w2"}]
    assert pipe("w1 w2", strength=1) == [{"generated_text": "w3 w4"}]


def test_a_resumed_run_draws_the_same(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, recipe = make_pairs(), make_recipe(**TWO_LEVELS, plain_share=0.5, save_steps=2)
    train(recipe, tmp_path / "whole", dataset=rows)
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        send_after(patch, 8)
        train(recipe, tmp_path / "parts", dataset=rows)
    train(recipe, tmp_path / "parts", dataset=rows, resume=True)
    assert_equal(last_weights(tmp_path / "whole"), last_weights(tmp_path / "parts"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"control_edges": [0.5, 0.2]}, "`control_edges` must be numbers between 0 and 1 in ascending order"),
        ({"control_edges": [0.5, 0.5]}, "`control_edges` must be"),
        ({"control_edges": [0.5, 1.0]}, "`control_edges` must be"),
        ({"control_edges": []}, "`control_edges` must be"),
        ({"plain_share": 1.0}, "`plain_share` must be at least 0 and below 1, not 1.0"),
        ({"control_tokens": "length"}, "`control_tokens` must be"),
    ],
)
def test_fields_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_recipe(**fields)
