"""What a reader accepted, counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hf_paraphrase import Paraphraser
from hf_paraphrase.common.errors import InputError
from scripts.readings import count_good, read_verdicts

READINGS = Path(__file__).parents[2] / "model_cards/paraphraser-en-small/readings.tsv"


def test_first_paraphrases_are_looked_up() -> None:
    verdicts = read_verdicts(READINGS)
    some = dict.fromkeys(list(dict.fromkeys(text for text, _ in verdicts))[:4])
    verdicts = {pair: good for pair, good in verdicts.items() if pair[0] in some}
    paraphraser = Paraphraser()
    count = count_good(paraphraser, verdicts, None)
    assert (count.texts, count.good + count.bad, count.unread) == (4, 4, [])
    assert 0 < count.novel <= count.good
    text, first = next(iter(some)), paraphraser(next(iter(some)), n=1)[0].text
    count = count_good(paraphraser, {(text, "else"): True}, None)
    assert (count.good, count.bad, count.unread) == (0, 0, [(text, first)])


def test_a_line_without_a_verdict_is_named(tmp_path: Path) -> None:
    file = tmp_path / "readings.tsv"
    file.write_text("text\tparaphrase\tgood\na\tb\t1\nc\td\n")
    with pytest.raises(InputError, match="line 3: the columns are"):
        read_verdicts(file)
