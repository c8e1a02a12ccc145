from __future__ import annotations

import json
import logging
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import load_dataset, make_builder
from hf_paraphrase.datasets.mscoco import rank_by_agreement

TRAIN, VALIDATION = "captions_train2014.json", "captions_val2014.json"


def content(images: range, captions: int = 5) -> dict:
    """A captions file: caption k of image i says so, in 20 words."""
    annotations = [
        {"image_id": image, "id": 10 * image + number, "caption": f" Image {image}\tcaption {number}" + " word" * 16}
        for image in images
        for number in range(captions)
    ]
    return {"info": {}, "images": [{"id": image} for image in images], "annotations": annotations}


def write(folder: Path, train: dict, validation: dict) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in ((TRAIN, train), (VALIDATION, validation)):
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


@pytest.fixture
def corpus(tmp_path):
    return write(tmp_path / "corpus", content(range(100, 120)), content(range(200, 212)))


def image_and_caption(text: str) -> tuple[int, int]:
    words = text.split()
    return int(words[1]), int(words[3])


def load(folder, name=None, **kwargs):
    return load_dataset("mscoco", name, data_dir=folder, **{"validation_size": 4, **kwargs})


def test_two_pairs_an_image_of_four_different_captions(corpus):
    train = load(corpus, split="train")
    assert train.column_names == ["source", "target"] and len(train) == 40
    for first in range(0, 40, 2):
        used = [image_and_caption(train[row][side]) for row in (first, first + 1) for side in ("source", "target")]
        assert {image for image, _ in used} == {100 + first // 2}
        assert len({caption for _, caption in used}) == 4
    omitted = {
        sum(range(5)) - sum(image_and_caption(train[row][side])[1] for row in (i, i + 1) for side in train[0])
        for i in range(0, 40, 2)
    }
    assert len(omitted) > 1, "the caption left out has to vary"


def test_captions_are_cut_and_white_space_is_single(corpus):
    text = load(corpus, split="train")[0]["source"]
    assert len(text.split(" ")) == 15 and text == text.strip() and "\t" not in text
    assert len(load(corpus, split="train", max_words=4)[0]["source"].split(" ")) == 4


def test_test_rows_have_the_four_other_captions(corpus):
    test = load(corpus, split="test")
    assert test.column_names == ["source", "references"] and len(test) == 8
    for row in test:
        image, caption = image_and_caption(row["source"])
        others = [image_and_caption(text) for text in row["references"]]
        assert {other for other, _ in others} == {image}
        assert sorted([caption, *(number for _, number in others)]) == [0, 1, 2, 3, 4]


def test_splits_share_no_image(corpus):
    splits = load(corpus)
    images = {split: {image_and_caption(row["source"])[0] for row in rows} for split, rows in splits.items()}
    assert images["train"] == set(range(100, 120))
    assert len(images["validation"]) == 4 and len(images["test"]) == 8
    assert images["validation"] | images["test"] == set(range(200, 212))
    assert len(load(corpus, split="test", test_size=3)) == 3


def test_an_image_of_both_files_is_not_trained_on(tmp_path, caplog):
    folder = write(tmp_path, content(range(10)), content(range(8, 20)))
    images = {image_and_caption(row["source"])[0] for row in load(folder, split="train")}
    assert images == set(range(8))
    assert "2 images are in both files" in caplog.text


def test_order_of_the_files_changes_nothing(corpus, tmp_path):
    train, validation = content(range(100, 120)), content(range(200, 212))
    for part in (train, validation):
        random.Random(0).shuffle(part["images"])
        random.Random(1).shuffle(part["annotations"])
    shuffled = load(write(tmp_path / "annotations", train, validation))
    for split, rows in load(corpus).items():
        assert rows.to_list() == shuffled[split].to_list()


def test_seed_decides(corpus):
    rows = [load(corpus, seed=seed).values() for seed in (1, 1, 2)]
    first, again, other = ([split.to_list() for split in splits] for splits in rows)
    assert first == again
    assert all(mine != theirs for mine, theirs in zip(first, other, strict=True))


def test_first_rows_are_pinned(corpus):
    # A change here changes what every published figure was measured on.
    splits = load(corpus)
    assert [image_and_caption(splits["train"][0][side]) for side in ("source", "target")] == [(100, 4), (100, 2)]
    assert [image_and_caption(row["source"]) for row in splits["test"]][:3] == PINNED_TEST


PINNED_TEST = [(201, 2), (208, 3), (209, 2)]


def test_both_directions_and_all_pairs(corpus):
    two = {(row["source"], row["target"]) for row in load(corpus, split="train")}
    four = {(row["source"], row["target"]) for row in load(corpus, split="train", both_directions=True)}
    assert four == two | {(target, source) for source, target in two} and len(four) == 80
    every = {(row["source"], row["target"]) for row in load(corpus, "all_pairs", split="train")}
    assert len(every) == 20 * 5 * 4 and four < every
    assert len(load(corpus, "all_pairs", split="validation")) == 8


def test_consensus(corpus):
    """One target for all captions of an image, but another for the target itself."""
    rows = load(corpus, "consensus", split="train")
    every = {(row["source"], row["target"]) for row in load(corpus, "all_pairs", split="train")}
    assert {(row["source"], row["target"]) for row in rows} < every
    assert len(rows) == len({row["source"] for row in rows}) == 20 * 5
    for start in range(0, len(rows), 5):
        targets = Counter(rows["target"][start : start + 5])
        assert sorted(targets.values()) == [1, 4]
        ((target, _),) = targets.most_common(1)
        assert rows["target"][start + rows["source"][start : start + 5].index(target)] != target
    assert len(load(corpus, "consensus", split="validation")) == 4 * 5
    assert load(corpus, "consensus", split="test").to_list() == load(corpus, "all_pairs", split="test").to_list()


def test_captions_by_their_agreement():
    captions = [
        "a fire hydrant",
        "a dog sleeps on a bed .",
        "a white dog is on a bed .",
        "a dog is on a bed .",
        "someone's room",
    ]
    ranked = rank_by_agreement(captions)
    assert ranked[0] == "a dog is on a bed ." and set(ranked[3:]) == {"a fire hydrant", "someone's room"}
    assert rank_by_agreement(["one", "two"]) == ["one", "two"]


def test_images_with_other_numbers_of_captions(tmp_path, caplog):
    train = content(range(5), captions=7)
    by_image = {image: [a for a in train["annotations"] if a["image_id"] == image] for image in range(5)}
    train["annotations"] = by_image[0] + by_image[1][:4] + by_image[2][:3] + by_image[3][:1] + by_image[4][:2]
    rows = load(write(tmp_path, train, content(range(10, 20))), split="train")
    pairs = [image_and_caption(row["source"])[0] for row in rows]
    assert [pairs.count(image) for image in range(5)] == [2, 2, 1, 0, 1]
    assert "left out 1 images with fewer than two" in caplog.text


def test_unusable_captions_are_left_out_and_counted(tmp_path, caplog):
    train = content(range(3))
    train["annotations"] += [
        {"image_id": 0, "id": 900, "caption": None},
        {"image_id": 0, "id": 901, "caption": " \ud83d "},
        {"image_id": 77, "id": 902, "caption": "no such image"},
        {"image_id": [0], "id": 904, "caption": "no image at all"},
        {"image_id": 1, "id": 10, "caption": "an id for the second time"},
        {"image_id": 1, "caption": "no id"},
        {"image_id": 2, "id": 903, "caption": train["annotations"][-1]["caption"]},
    ]
    train["annotations"][0]["caption"] += "\0\0"
    folder = write(tmp_path, train, content(range(10, 20)))
    with pytest.raises(InputError, match="6 of 22 captions are bad.*caption 16, has no text"):
        load(folder)
    with caplog.at_level(logging.WARNING):
        rows = load(folder, split="train", max_bad_fraction=0.3)
    assert len(rows) == 6
    for problem in ("has no text", "is of an image that the file lacks", "has no id or that of another one"):
        assert problem in caplog.text


def test_a_changed_file_is_read_again(corpus):
    assert len(load(corpus, split="train")) == 40
    write(corpus, content(range(100, 130)), content(range(200, 212)))
    assert len(load(corpus, split="train")) == 60


def test_streaming_gives_the_same_rows(corpus):
    streamed = make_builder("mscoco", data_dir=corpus, validation_size=4).as_streaming_dataset(split="test")
    rows = [{key: row[key] for key in ("source", "references")} for row in streamed]
    assert rows == load(corpus, split="test").to_list()


def test_folder_is_only_read(corpus):
    before = sorted(corpus.iterdir())
    load(corpus)
    assert sorted(corpus.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is not valid JSON.*line 1"),
        (b"[" * 100_000, "nests too deeply"),
        (b'{"images": [],\n "annotations": [,]}', "is not valid JSON.*line 2"),
        (b"\xff\xfe{", "is not"),
        (b"[]", "must hold one JSON object"),
        (b'{"images": []}', "has other fields"),
        (b'{"images": [1], "annotations": []}', "has other fields"),
        (b'{"images": [{"id": 1}], "annotations": [5]}', "has other fields"),
        (b'{"images": [{"id": 1}], "annotations": []}', "no image with two captions"),
        (b'{"images": [{"id": 1}, {"id": 1e999}], "annotations": []}', "has other fields .*infinity"),
        (b'{"images": [{"id": NaN}], "annotations": []}', "has other fields .*NaN"),
        (b'{"images": [],\n "annotations": [{"id": ' + b"7" * 5000 + b"}]}", "is not valid JSON.*digits"),
    ],
)
def test_damaged_file_is_named(corpus, text, message):
    (corpus / TRAIN).write_bytes(text)
    with pytest.raises(InputError, match=message) as caught:
        load(corpus)
    assert str(corpus / TRAIN) in str(caught.value)


def test_missing_files_and_folders(corpus, tmp_path):
    with pytest.raises(InputError, match="`data_dir` is missing.*cocodataset.org"):
        load_dataset("mscoco")
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere.*cocodataset.org"):
        load(tmp_path / "nowhere")
    (corpus / VALIDATION).unlink()
    with pytest.raises(FileNotFoundError, match=f"{VALIDATION} is missing .*{TRAIN} there"):
        load(corpus)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"path": "mscocoo"}, "unknown corpus `mscocoo`; did you mean mscoco"),
        ({"name": "papr"}, "unknown configuration `papr`; did you mean paper"),
        ({"sed": 1}, "unknown argument `sed`; did you mean seed"),
        ({"split": "trian"}, "unknown split `trian`; did you mean train"),
        ({"max_words": 0}, "`max_words` must be at least 1"),
        ({"both_directions": True, "name": "all_pairs"}, "already has both directions"),
        ({"both_directions": True, "name": "consensus"}, "`consensus` has pairs of its own"),
    ],
)
def test_bad_arguments_are_named(corpus, kwargs, message):
    with pytest.raises(InputError, match=message):
        load_dataset(**{"path": "mscoco", "data_dir": corpus, **kwargs})


def test_part_of_a_split(corpus):
    assert len(load(corpus, split="train[:3]")) == 3


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    folder = write(tmp_path_factory.mktemp("corpus"), content(range(3)), content(range(10, 13)))
    values = st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3))
    entries = st.lists(st.dictionaries(st.sampled_from(["id", "image_id", "caption"]), values) | values, max_size=4)
    objects = st.fixed_dictionaries({"images": entries, "annotations": entries})
    files = objects.map(lambda file: json.dumps(file).encode())
    (folder / TRAIN).write_bytes(data.draw(st.one_of(st.binary(max_size=40), files)))
    try:
        rows = make_builder("mscoco", data_dir=folder, max_bad_fraction=1.0).as_streaming_dataset(split="train")
    except InputError:
        return
    assert all(row["source"] and row["target"] for row in rows)
