"""Which arguments `from_pretrained` and a call of a paraphraser take, beside those of their own making."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset

from hf_paraphrase import Paraphraser, ParaphraseRetriever, augment
from hf_paraphrase.checkpoints.pretrained import choose_device
from hf_paraphrase.common.checks import whole_number
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.loading import load_pair_model
from hf_paraphrase.models.layers import precision
from hf_paraphrase.retrieval.encoders import AutoModelEncoder
from tests.models.tiny import save, tiny_matcher

from .paraphrasers import NO_FLOORS, PAIRS, PARAPHRASERS, make_paraphraser

TEXTS = ["how do i learn faster ?", "the cat sat"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return save(make_paraphraser("residual_lstm").model, tmp_path / "model")


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.bfloat16, torch.bfloat16),
        (torch.float16, torch.float16),
        ("torch.bfloat16", torch.bfloat16),
        ("auto", torch.float32),
        (None, torch.float32),
    ],
)
def test_a_precision_is_named_as_transformers_names_it(folder: str, dtype, expected: torch.dtype) -> None:
    assert Paraphraser.from_pretrained(folder, device="cpu", dtype=dtype).model.dtype == expected


@pytest.mark.parametrize("dtype", [torch.int16, "no such", "int16"])
def test_no_other_precision_is_taken(folder: str, dtype) -> None:
    with pytest.raises(InputError, match="`dtype` must be one of float32, bfloat16, float16, fast, int8, auto, not"):
        Paraphraser.from_pretrained(folder, device="cpu", dtype=dtype)


def test_the_fast_precision_of_a_cpu_without_bfloat16_is_told(folder: str, cpu_without_bfloat16, caplog) -> None:
    paraphraser = Paraphraser.from_pretrained(folder, device="cpu", dtype="fast")
    assert paraphraser.model.dtype == torch.float32
    assert "no fast arithmetic for bfloat16; the model runs in float32" in caplog.text
    caplog.clear()
    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
        patch.setattr(precision, "runs_lstm", lambda dtype: True)
        Paraphraser.from_pretrained(folder, device="cpu", dtype="fast")
    assert "float32" not in caplog.text


@pytest.mark.parametrize("device", [-1, np.int64(-1), "cpu", torch.device("cpu")])
def test_the_cpu_is_minus_one_as_for_pipelines(folder: str, tmp_path: Path, device) -> None:
    assert Paraphraser.from_pretrained(folder, device=device).model.device.type == "cpu"
    matcher = save(tiny_matcher(2), tmp_path / "matcher")
    assert load_pair_model(matcher, device=device)[0].device.type == "cpu"
    assert AutoModelEncoder(folder, device=device).model.device.type == "cpu"


@pytest.mark.parametrize(
    ("name", "close"), [("devise", "`device`"), ("local_file_only", "`local_files_only`"), ("strenght", "`strength`")]
)
def test_a_misspelt_argument_gets_the_closest_names_before_anything_is_loaded(name: str, close: str) -> None:
    with pytest.raises(InputError, match=f"unknown argument `{name}`; did you mean {close}"):
        Paraphraser.from_pretrained("no/such", **{name: 1})


@pytest.mark.parametrize("device", [-2, 4000, "no such", "cuda:4000", 1.5, True])
def test_a_device_that_is_not_there_is_named(device) -> None:
    with pytest.raises(InputError, match=r"`device`"):
        choose_device(device)


@pytest.mark.parametrize("name", ["residual_lstm", "bart", "hierarchical_lm"])
def test_a_model_stays_on_the_disk(name: str, tmp_path: Path) -> None:
    kept = make_paraphraser(name)
    path = save(kept.model, tmp_path / "model", kept.tokenizer)
    offloaded = Paraphraser.from_pretrained(path, device_map={"": "disk"}, offload_folder=tmp_path / "disk")
    assert all(parameter.is_meta for parameter in offloaded.model.parameters())
    assert offloaded(TEXTS, keep=(), **NO_FLOORS) == kept(TEXTS, keep=())
    with pytest.raises(InputError, match="`device` and `device_map`"):
        Paraphraser.from_pretrained(path, device="cpu", device_map={"": "cpu"})


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A cache of the Hub with the repository you/fset, which has a revision v1 with a retriever, and no other."""
    repository, commit = tmp_path / "cache" / "models--you--fset", "1" * 40
    snapshot = repository / "snapshots" / commit
    save(make_paraphraser("fset").model, snapshot)
    ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(snapshot / "retriever")
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(commit)
    return tmp_path / "cache"


def test_a_revision_is_read_from_a_cache_without_a_network(hub: Path) -> None:
    options = {"cache_dir": hub, "local_files_only": True, "token": "not asked for", "device": "cpu"}
    loaded = Paraphraser.from_pretrained("you/fset", revision="v1", **options)
    assert loaded(TEXTS, keep=(), **NO_FLOORS) == make_paraphraser("fset")(TEXTS, keep=())
    assert len(loaded.retriever) == len(PAIRS)
    with pytest.raises(FileNotFoundError, match="you/fset at revision 'v2'"):
        Paraphraser.from_pretrained("you/fset", revision="v2", **options)
    shutil.rmtree(next(hub.rglob("retriever")))
    with pytest.raises((FileNotFoundError, InputError), match="retriever|you/fset"):
        Paraphraser.from_pretrained("you/fset", revision="v1", **options)


NUMBERS = {
    "n": np.int64(2),
    "num_candidates": np.int32(6),
    "batch_size": np.uint8(4),
    "seed": np.int64(1),
    "max_source_length": np.int16(20),
    "min_novelty": np.float32(0.0),
    "diversity": np.float64(0.25),
}


@pytest.mark.parametrize("name", PARAPHRASERS)
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    plain = {key: value.item() for key, value in NUMBERS.items()}
    paraphraser = make_paraphraser(name)
    weights = np.array([1.0, 2.0, 0.5], np.float32)
    found = paraphraser(TEXTS, keep=(), weights=weights, **NUMBERS)
    assert found == paraphraser(TEXTS, keep=(), weights=weights.tolist(), **plain)


def test_numbers_of_numpy_reach_augment_and_the_retriever() -> None:
    paraphraser = make_paraphraser("residual_lstm")
    rows, plain = Dataset.from_dict({"text": TEXTS}), {key: value.item() for key, value in NUMBERS.items()}
    found = augment(rows, paraphraser, column="text", keep=(), num_beams=np.int64(6), **NUMBERS)
    assert found.to_list() == augment(rows, paraphraser, column="text", keep=(), num_beams=6, **plain).to_list()
    retriever = ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard")
    assert retriever.retrieve(TEXTS, np.int64(2)) == retriever.retrieve(TEXTS, 2)
    with pytest.raises(InputError, match="`k` must be a whole number of at least 1, not True"):
        retriever.retrieve(TEXTS, True)


@pytest.mark.parametrize("value", [0, 1.0, True, "1", None, np.float64(1), np.bool_(True)])
def test_what_is_no_count_is_refused(value) -> None:
    with pytest.raises(InputError, match="`n` must be a whole number of at least 1, not"):
        whole_number("n", value, 1)
