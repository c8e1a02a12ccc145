from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import datasets

from ..errors import InputError
from .builder import CorpusConfig, ParaphraseBuilder, seeded

__all__ = ["MscocoBuilder", "MscocoConfig"]

logger = logging.getLogger(__name__)

TRAIN_FILE, VALIDATION_FILE = "captions_train2014.json", "captions_val2014.json"
Captions = dict[int, list[str]]


@dataclass
class MscocoConfig(CorpusConfig):
    """How captions become pairs.

    Args:
        seed: Decides which caption is left out, which are paired and which images are tested on.
        max_words: Longer captions are cut to their first so many words.
        both_directions: Use every training pair a second time with its sides exchanged.
        all_pairs: Train on every ordered pair of an image's captions, many more than the paper used.
        validation_size: Images of Val 2014 to validate on.
        test_size: Most of the other images of Val 2014 to test on.
    """

    seed: int = 42
    max_words: int = 15
    both_directions: bool = False
    all_pairs: bool = False
    validation_size: int = 1000
    test_size: int = 20_000

    def check(self) -> None:
        for name, least in (("max_words", 1), ("validation_size", 0), ("test_size", 0)):
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}, not {getattr(self, name)}")
        if self.both_directions and self.all_pairs:
            raise InputError("`all_pairs` already has both directions of every pair; leave `both_directions` out")


class MscocoBuilder(ParaphraseBuilder):
    """Captions of the same image as paraphrases: MSCOCO 2014, sampled as in Prakash et al. 2016, section 4.1.

    Source: `annotations_trainval2014.zip` of cocodataset.org (Lin et al. 2014, Microsoft COCO: Common Objects in
    Context). Licence: CC BY 4.0.

    Layout: `data_dir`, or its subfolder `annotations`, holds `captions_train2014.json` and `captions_val2014.json`.

    Of an image's five captions one is left out at random; the other four make two pairs of `source` and `target`, cut
    to 15 words. The paper counts 331,163 training instances for 82,783 images, about four an image: its two pairs in
    both directions (`both_directions=True`). Training pairs are from Train 2014. The images of Val 2014, in a random
    order, give first `validation` (1,000 images), then `test` (up to 20,000 images; one caption is the `source`, the
    four others are the `references`).

    Configurations: `paper` as above, `all_pairs` with every ordered pair of different captions in `train`.
    """

    BUILDER_CONFIG_CLASS = MscocoConfig
    BUILDER_CONFIGS = [
        MscocoConfig(name="paper", description="Two pairs an image, as in the paper."),
        MscocoConfig(name="all_pairs", description="All ordered pairs of an image's captions.", all_pairs=True),
    ]
    DEFAULT_CONFIG_NAME = "paper"
    files = tuple(f"{folder}{name}" for folder in ("", "annotations/") for name in (TRAIN_FILE, VALIDATION_FILE))
    origin = "they are in annotations_trainval2014.zip of cocodataset.org (CC BY 4.0)"

    def layout(self) -> str:
        return f"expected there, or in its subfolder annotations: {TRAIN_FILE} and {VALIDATION_FILE}; {self.origin}"

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        paths = [self.find(name, f"annotations/{name}") for name in (TRAIN_FILE, VALIDATION_FILE)]
        train, held_out = (read_captions(path, self.config.max_words) for path in paths)
        shared = train.keys() & held_out.keys()
        if shared:
            logger.warning("%d images are in both files; they are left out of training", len(shared))
            train = {image: captions for image, captions in train.items() if image not in shared}
        order = sorted(held_out, key=lambda image: hashlib.sha256(f"{self.config.seed} {image}".encode()).digest())
        validation, rest = order[: self.config.validation_size], order[self.config.validation_size :]
        images = {
            "train": train,
            "validation": {image: held_out[image] for image in validation},
            "test": {image: held_out[image] for image in rest[: self.config.test_size]},
        }
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"images": images[split], "split": split})
            for split in images
        ]

    def _generate_examples(self, images: Captions, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
        make_rows = self._test_row if split == "test" else self._pairs
        for image, captions in images.items():
            for number, row in enumerate(make_rows(image, captions, split)):
                yield f"{image}-{number}", row

    def _pairs(self, image: int, captions: list[str], split: str) -> Iterator[dict[str, Any]]:
        if self.config.all_pairs and split == "train":
            pairs = list(permutations(captions, 2))
        else:
            drawn = seeded(self.config.seed, image).sample(captions, min(4, len(captions)))
            pairs = list(zip(drawn[::2], drawn[1::2], strict=False))
            if self.config.both_directions and split == "train":
                pairs += [pair[::-1] for pair in pairs]
        for source, target in pairs:
            yield {"source": source, "target": target, "references": None}

    def _test_row(self, image: int, captions: list[str], split: str) -> Iterator[dict[str, Any]]:
        source = seeded(self.config.seed, image).randrange(len(captions))
        references = captions[:source] + captions[source + 1 :]
        yield {"source": captions[source], "target": None, "references": references}


def read_captions(path: Path, max_words: int) -> Captions:
    """Read the captions of every image that has at least two, images by id and captions by annotation id.

    Args:
        path: A captions file of the COCO 2014 release.
        max_words: Captions are cut to their first so many words, white space made single spaces.

    Raises:
        InputError: The file is no such file, or holds nothing to pair.
    """
    images, annotations = _read_lists(path)
    captions: dict[int, dict[int, str]] = {image: {} for image in images}
    unusable = 0
    for annotation in annotations:
        image, number, caption = (annotation.get(key) for key in ("image_id", "id", "caption"))
        words = caption.split()[:max_words] if isinstance(caption, str) else []
        if image not in captions or not isinstance(number, int) or number in captions[image] or not words:
            unusable += 1
        else:
            captions[image][number] = " ".join(words)
    distinct = {image: list(dict.fromkeys(text for _, text in sorted(of.items()))) for image, of in captions.items()}
    usable = {image: texts for image, texts in sorted(distinct.items()) if len(texts) > 1}
    repeated = sum(len(of) for of in captions.values()) - sum(len(texts) for texts in distinct.values())
    for count, what in (
        (unusable, "captions are empty, have no image or an id twice"),
        (repeated, "captions stand twice at the same image"),
        (len(captions) - len(usable), "images have fewer than two different captions"),
    ):
        if count:
            logger.warning("%s: left out, %d %s", path, count, what)
    if not usable:
        raise InputError(f"{path} holds no image with two captions; is it the captions file of COCO 2014?")
    return usable


def _read_lists(path: Path) -> tuple[list[int], list[dict[str, Any]]]:
    expected = 'expected is a captions file of COCO 2014: {"images": [{"id": …}], "annotations": [{"image_id": …, …}]}'
    try:
        content = json.loads(path.read_bytes())
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 at byte {error.start}; {expected}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}, is not JSON ({error.msg}); {expected}") from error
    try:
        return [image["id"] for image in content["images"]], [dict(entry) for entry in content["annotations"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} has other fields ({error!r}); {expected}") from error
