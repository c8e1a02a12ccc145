from __future__ import annotations

import pytest

from hf_paraphrase.generation.paraphrase_choice import Choice, find_fault
from hf_paraphrase.generation.writers import Candidate

LEAVE = "Could you send me the report before you leave?"


@pytest.mark.parametrize(
    ("source", "candidate", "fault"),
    [
        (LEAVE, 'Can I have the report before you leave? "At the point of view', "leaves '\"' unpaired"),
        (LEAVE, "Can I have the report before you leave? At the point of view", "adds a sentence"),
        (LEAVE, "Can I have the report before you leave (today?", "leaves '(' unpaired"),
        (LEAVE, "Can I have the report] before you leave?", "leaves '[' unpaired"),
        (LEAVE, "Can I have the `report before you leave?", "leaves '`' unpaired"),
        (LEAVE, "Before you leave, can I have the report?", None),
        ("I was tired, so I left.", "I was tired. I left.", None),
        ("I was tired. I left.", "I was tired, so I left, and left early.", None),
        ("He said “yes” (or »no«).", 'Yes," he said (or "no").', "leaves '\"' unpaired"),
        ("He said “yes” (or »no«).", '"Yes," he said [or „no“].', None),
        ('A 5" pipe :)', 'This pipe has 5" :)', None),
        ('A 5" pipe :)', "This pipe has 5 inches :(", None),
        ("Mr. Smith lives in the U.S. now.", "Now Mr. Smith lives in the U.S., as it is.", None),
        ("", "", None),
    ],
)
def test_faults(source: str, candidate: str, fault: str | None) -> None:
    assert find_fault(source, candidate) == fault


def test_faults_are_rejected_whatever_is_kept() -> None:
    stammered = 'Can I have the report before you leave? "At the point of view'
    (one,) = Choice(keep=()).sift(LEAVE, [Candidate(stammered)])
    assert one.reason == "leaves '\"' unpaired"
