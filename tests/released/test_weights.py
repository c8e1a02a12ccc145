"""The weights that are released: small, whole, with their card, and good for a sentence of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import pipeline

from hf_paraphrase import Paraphraser
from hf_paraphrase.released import RELEASED, RELEASED_FOLDER
from hf_paraphrase.released.packing import LARGEST

ROOT = Path(__file__).parents[2]
TEXT = "The meeting was moved to Thursday because the room was taken."


def test_the_files_are_small_and_have_their_card() -> None:
    assert sum(path.stat().st_size for path in RELEASED_FOLDER.glob("*.safetensors")) <= LARGEST
    assert (RELEASED_FOLDER / "README.md").read_bytes() == (ROOT / "model_cards" / RELEASED / "README.md").read_bytes()


def test_a_sentence_of_ones_own() -> None:
    (answer,) = Paraphraser.from_pretrained(device="cpu")(TEXT, n=1)
    assert answer.text != TEXT and "Thursday" in answer.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Zoë paid £20 for the ticket to Malmö.", ("Zoë", "£20", "Malmö")),
        ("L. Linkevičius expressed the hope that Lithuania and Spain will work together.", ("Linkevičius",)),
    ],
)
def test_signs_and_names_that_are_hard_to_copy_are_kept(text: str, kept: tuple[str, ...]) -> None:
    (written,) = pipeline("text2text-generation", device="cpu")(text, num_beams=4)
    assert all(word in written["generated_text"] for word in kept)


@pytest.mark.parametrize(
    "text", ["He hid the letter under a loose floorboard in the attic.", "I love this song ❤️ today!"]
)
def test_the_pipeline_gives_no_copy_unless_asked_for_beams(text: str) -> None:
    write = pipeline("text2text-generation", device="cpu")
    (beam,), (chosen,) = write(text, num_return_sequences=1), write(text)
    assert beam["generated_text"] == text != chosen["generated_text"]
    assert "❤️" in chosen["generated_text"] or "❤️" not in text
