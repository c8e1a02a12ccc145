from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from ..common.errors import InputError
from ..common.fields import option
from ..common.files import read_json_object
from .builder import CorpusConfig, ParaphraseBuilder, seeded_order
from .corpus_reader import is_text
from .sampling import cut

logger = logging.getLogger(__name__)

TRAIN_FILE, VALIDATION_FILE = "captions_train2014.json", "captions_val2014.json"
Captions = dict[int, list[str]]


@dataclass
class MscocoConfig(CorpusConfig):
    """How captions become pairs."""

    seed: int = option("Decides which captions are left out and paired, and which images are tested on.", 42)
    max_words: int = option("Most words of a caption; longer ones are cut.", 15, least=1)
    both_directions: bool = option("Use every training pair a second time with its sides exchanged.", False)
    all_pairs: bool = option("Train on every ordered pair of an image's captions, unlike the paper.", False)
    consensus: bool = option(
        "Train and validate on a pair for each caption: its target is the other one with which all agree most.", False
    )
    validation_size: int = option("Images of Val 2014 to validate on.", 1000, least=0)
    test_size: int = option("Most of the other images of Val 2014 to test on.", 20_000, least=0)

    def check(self) -> None:
        super().check()
        if self.both_directions and self.all_pairs:
            raise InputError("`all_pairs` already has both directions of every pair; leave `both_directions` out")
        if self.consensus and (self.all_pairs or self.both_directions):
            raise InputError("`consensus` has pairs of its own; leave `all_pairs` and `both_directions` out")


class MscocoBuilder(ParaphraseBuilder):
    """Captions of the same image as paraphrases: MSCOCO 2014, sampled as in Prakash et al. 2016, section 4.1."""

    corpus_name = "mscoco"
    BUILDER_CONFIGS = [
        MscocoConfig(name="paper", description="Two pairs an image, as in the paper."),
        MscocoConfig(name="all_pairs", description="All ordered pairs of an image's captions.", all_pairs=True),
        MscocoConfig(name="consensus", description="Each caption with the others' consensus.", consensus=True),
    ]
    files = tuple(f"{folder}{name}" for folder in ("", "annotations/") for name in (TRAIN_FILE, VALIDATION_FILE))
    expected = f"expected there, or in its subfolder annotations: {TRAIN_FILE} and {VALIDATION_FILE}"
    origin = "they are in annotations_trainval2014.zip of cocodataset.org (CC BY 4.0)"
    licence_id = "cc-by-4.0"

    def parts(self) -> dict[str, dict[str, Any]]:
        paths = [self.find(name, f"annotations/{name}") for name in (TRAIN_FILE, VALIDATION_FILE)]
        train, held_out = map(self._read, paths)
        shared = train.keys() & held_out.keys()
        if shared:
            logger.warning("%d images are in both files; they are left out of training", len(shared))
            train = {image: captions for image, captions in train.items() if image not in shared}
        order = seeded_order(held_out, self.config.seed)
        validation, rest = order[: self.config.validation_size], order[self.config.validation_size :]
        images = {
            "train": train,
            "validation": {image: held_out[image] for image in validation},
            "test": {image: held_out[image] for image in rest[: self.config.test_size]},
        }
        return {split: {"images": found, "split": split} for split, found in images.items()}

    def _read(self, path: Path) -> Captions:
        """Read the different captions, cut, of every image that has at least two, in the order of the images' ids."""
        images, annotations = _read_lists(path)
        captions: dict[int, list[str]] = {image: [] for image in images}
        numbers = set()
        with self.reader(unit="captions") as reader:
            for place, annotation in enumerate(annotations, 1):
                reader.lines_read += 1
                image, number = annotation.get("image_id"), annotation.get("id")
                caption = reader.without_nul(annotation.get("caption"))
                text = cut(caption, self.config.max_words) if is_text(caption) else ""
                if not text:
                    reader.reject(path, place, "has no text")
                elif not isinstance(image, int) or image not in captions:
                    reader.reject(path, place, "is of an image that the file lacks")
                elif not isinstance(number, int) or number in numbers:
                    reader.reject(path, place, "has no id or that of another one")
                else:
                    numbers.add(number)
                    captions[image].append(text)
        different = {image: list(dict.fromkeys(texts)) for image, texts in sorted(captions.items())}
        usable = {image: texts for image, texts in different.items() if len(texts) > 1}
        if len(usable) < len(different):
            logger.warning("%s: left out %d images with fewer than two captions", path, len(different) - len(usable))
        if not usable:
            raise InputError(f"{path} holds no image with two captions; is it the captions file of COCO 2014?")
        return usable

    def generate_rows(self, images: Captions, split: str) -> Iterator[dict[str, Any]]:
        for image, captions in images.items():
            if split == "test":
                source, *references = seeded_order(captions, self.config.seed, image)
                yield {"source": source, "references": references}
            else:
                pairs = self._pairs(image, captions, split)
                yield from ({"source": source, "target": target} for source, target in pairs)

    def _pairs(self, image: int, captions: list[str], split: str) -> list[tuple[str, str]]:
        if self.config.all_pairs and split == "train":
            return list(permutations(captions, 2))
        if self.config.consensus:
            best, second, *_ = rank_by_agreement(captions)
            return [(caption, second if caption == best else best) for caption in captions]
        drawn = seeded_order(captions, self.config.seed, image)[:4]
        pairs = list(zip(drawn[::2], drawn[1::2], strict=False))
        both = self.config.both_directions and split == "train"
        return pairs + [(target, source) for source, target in pairs] if both else pairs


def rank_by_agreement(captions: list[str]) -> list[str]:
    """The captions of an image by BLEU against the others, highest first; ties keep their order."""
    from sacrebleu.metrics import BLEU

    bleu = BLEU(lowercase=True, effective_order=True)
    scores = {one: bleu.sentence_score(one, [other for other in captions if other != one]).score for one in captions}
    return sorted(captions, key=scores.__getitem__, reverse=True)


def _read_lists(path: Path) -> tuple[list[int], list[dict[str, Any]]]:
    expected = 'expected is a captions file of COCO 2014: {"images": [{"id": …}], "annotations": [{"image_id": …, …}]}'
    try:
        content = read_json_object(path)
        images = [int(image["id"]) for image in content["images"]]
        return images, [dict(entry) for entry in content["annotations"]]
    except InputError as error:
        raise InputError(f"{error}; {expected}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path} has other fields ({error!r}); {expected}") from error
