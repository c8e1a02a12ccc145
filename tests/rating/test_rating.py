from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.rating import (
    AnswerKey,
    SourceOutputs,
    format_rating_results,
    make_rating_forms,
    read_answers,
    summarise_answers,
)
from tests.cli.runner import run

SOURCES = [f"how do i <cook> number {number} & </script> ?" for number in range(8)]
SYSTEMS = {
    name: [SourceOutputs(source, tuple(f"{word} {k} {source}" for k in range(4))) for source in SOURCES]
    for name, word in (("FSET", "first"), ("RaE", "second"), ("DiPS", "third"))
}


class Page(HTMLParser):
    """The embedded form, the labels and what the page would load."""

    def __init__(self, path: Path):
        super().__init__()
        self.inside, self.json, self.addresses, self.ids, self.labels = False, "", [], set(), set()
        self.feed(path.read_text(encoding="utf-8"))
        self.form = json.loads(self.json)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.inside = tag == "script" and values.get("type") == "application/json"
        self.addresses += [values[name] for name in ("src", "href", "action") if name in values]
        self.ids.add(values.get("id"))
        self.labels.add(values.get("for"))

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.json += data


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    return make_rating_forms(SYSTEMS, tmp_path, num_sources=5, seed=3)


def hand_in(path: Path, form: dict, rater: str, answer) -> Path:
    """Write the CSV that the page writes, `answer` giving what a rater says to a question."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, form["fields"])
        writer.writeheader()
        for question in form["questions"]:
            row = {"form": form["form"], "rater": rater, "item": question["item"]}
            writer.writerow(row | answer(question))
    return path


def test_forms_ask_every_question_once_and_name_nobody(paths: dict[str, Path]) -> None:
    key = AnswerKey.load(paths["key"])
    ratings, preference = Page(paths["ratings"]).form, Page(paths["preference"]).form
    assert len(ratings["questions"]) == len(preference["questions"]) == 15
    for question in ratings["questions"]:
        entry = key.ratings[question["item"]]
        assert question["source"] == SOURCES[entry["row"]]
        assert question["outputs"] == list(SYSTEMS[entry["system"]][entry["row"]].outputs[:3])
    assert len({(entry["row"], entry["system"]) for entry in key.ratings.values()}) == 15
    for question in preference["questions"]:
        entry = key.preference[question["item"]]
        for side in ("first", "second"):
            assert question[side] == list(SYSTEMS[entry[side]][entry["row"]].outputs[:3])
    pairs = {(entry["row"], frozenset((entry["first"], entry["second"]))) for entry in key.preference.values()}
    assert len(pairs) == 15
    for name in ("ratings", "preference"):
        assert not any(system in paths[name].read_text() for system in SYSTEMS)
    # Neither the sides nor the order of questions tell who wrote what.
    assert len({entry["first"] for entry in key.preference.values()}) == 3
    assert len({tuple(entry["system"] for entry in list(key.ratings.values())[at : at + 3]) for at in (0, 3, 6)}) > 1


@pytest.mark.parametrize("name", ["ratings", "preference"])
def test_pages_need_nothing_else(name: str, paths: dict[str, Path]) -> None:
    page = Page(paths[name])
    assert page.addresses == []
    assert not re.search(r"https?://|@import|\burl\(", paths[name].read_text())
    assert page.labels - {None} <= page.ids
    assert page.form["experiment"] == name


def test_the_seed_decides(tmp_path: Path, paths: dict[str, Path]) -> None:
    again = make_rating_forms(SYSTEMS, tmp_path / "again", num_sources=5, seed=3)
    other = make_rating_forms(SYSTEMS, tmp_path / "other", num_sources=5, seed=4)
    for name, path in paths.items():
        assert again[name].read_bytes() == path.read_bytes() != other[name].read_bytes()


def test_equal_outputs_are_not_shown_but_count_as_ties(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Rows 0 and 1 are the same for both, in another order, case and spacing; of row 2 only one output is."""
    ours = [SourceOutputs(f"s{row}", (f"How {row} ?", "like  This")) for row in range(5)]
    theirs = [SourceOutputs(f"s{row}", ("like this", f"how {row if row < 2 else 'else'} ?")) for row in range(5)]
    for name, rows in (("ours", ours), ("theirs", theirs)):
        lines = (json.dumps({"source": row.source, "predictions": row.outputs}) for row in rows)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    systems = [f"--system={name}={tmp_path / name}.jsonl" for name in ("ours", "theirs")]
    run("rating", "make", *systems, "--num-sources", "5", "--output-dir", str(tmp_path))
    assert "\n2 pairs of equal outputs are not asked about: they count as ties\n" in capsys.readouterr().out
    form = Page(tmp_path / "preference.html").form
    assert {question["source"] for question in form["questions"]} == {"s2", "s3", "s4"}
    key = AnswerKey.load(tmp_path / "key.json")
    assert sorted(entry["row"] for entry in key.equal) == [0, 1]

    def prefer(question: dict) -> dict:
        entry = key.preference[question["item"]]
        return {"choice": "tie" if question["source"] == "s2" else "first" if entry["first"] == "ours" else "second"}

    files = [hand_in(tmp_path / f"{rater}.csv", form, rater, prefer) for rater in ("ann", "bob")]
    results = summarise_answers(read_answers(files, key), key)
    (row,) = results["preference"]
    assert (row["wins"], row["ties"], row["losses"], row["equal"], row["judgements"]) == (4, 6, 0, 2, 10)
    assert row["cohen_kappa"] == 1 and row["tie_share"] == 0.6
    assert "2 rows with the same outputs, not shown, count as ties" in format_rating_results(results)
    same = {"ours": ours, "again": ours}
    assert set(make_rating_forms(same, tmp_path / "same", num_sources=5)) == {"ratings", "key"}


def test_one_system_is_only_rated(tmp_path: Path) -> None:
    assert set(make_rating_forms({"FSET": SYSTEMS["FSET"]}, tmp_path, num_sources=2)) == {"ratings", "key"}


def test_round_trip(tmp_path: Path, paths: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    key = AnswerKey.load(paths["key"])
    forms = {name: Page(paths[name]).form for name in ("ratings", "preference")}
    grammar = {"FSET": (5, 5), "RaE": (4, 2), "DiPS": (1, 1)}

    def rate(number: int):
        def answer(question: dict) -> dict:
            entry = key.ratings[question["item"]]
            return {"grammar": grammar[entry["system"]][number], "coherency": 1 + entry["row"] % 5}

        return answer

    def prefer(question: dict) -> dict:
        """FSET always, and else neither."""
        entry = key.preference[question["item"]]
        return {"choice": next((side for side in ("first", "second") if entry[side] == "FSET"), "tie")}

    files = [
        hand_in(tmp_path / "a.csv", forms["ratings"], "Ann, the first", rate(0)),
        hand_in(tmp_path / "b.csv", forms["ratings"], "Bob", rate(1)),
        hand_in(tmp_path / "c.csv", forms["preference"], "Ann, the first", prefer),
        hand_in(tmp_path / "d.csv", forms["preference"], "Bob", prefer),
    ]
    results = summarise_answers(read_answers(files, key), key)
    table = {row["system"]: row for row in results["ratings"]}
    assert [row["grammar"] for row in table.values()] == [5, 3, 1]
    assert [row["ratings"] for row in table.values()] == [10] * 3
    assert table["RaE"]["grammar_kappa"] == 0 and table["FSET"]["grammar_kappa"] is None
    assert all(row["coherency_kappa"] == 1 for row in table.values())
    outcomes = {(row["first"], row["second"]): (row["wins"], row["ties"]) for row in results["preference"]}
    assert outcomes == {("FSET", "RaE"): (10, 0), ("FSET", "DiPS"): (10, 0), ("RaE", "DiPS"): (0, 10)}
    text = format_rating_results(results)
    assert text.splitlines()[1].split() == ["FSET", "5.00", "-", f"{table['FSET']['coherency']:.2f}", "1.000", "10"]
    assert "FSET 100.0%, tie 0.0%, DiPS 0.0%; kappa" in text
    arguments = [str(paths["key"]), *map(str, files), "--output", str(tmp_path / "results.json")]
    assert run("rating", "read", *arguments) == 0
    assert capsys.readouterr().out == f"{text}\n"
    assert json.loads((tmp_path / "results.json").read_text()) == results


@pytest.mark.parametrize(
    ("systems", "num_sources", "message"),
    [
        ({}, 1, "no system given"),
        (SYSTEMS, 9, "num_sources is 9, but the files have 8 rows"),
        ({**SYSTEMS, "short": SYSTEMS["RaE"][:2]}, 1, "short wrote for 2 sources and FSET for 8"),
        ({**SYSTEMS, "other": SYSTEMS["RaE"][::-1]}, 1, "row 1: FSET read 'how do i <cook> number 0"),
    ],
)
def test_systems_that_cannot_be_compared(systems: dict, num_sources: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        make_rating_forms(systems, tmp_path, num_sources=num_sources)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{form},ann,1,5", "line 2: 4 cells for 5 columns"),
        ("{form},ann,1,5,", "line 2: coherency must be one of 1, 2, 3, 4, 5, got ''"),
        ("{form},ann,1,5,6", "line 2: coherency must be one of 1, 2, 3, 4, 5, got '6'"),
        ("{form},ann,99,5,5", "line 2: item must be the number of a question, got '99'"),
        ("{form}, ,1,5,5", "line 2: rater must not be empty"),
        ("{form},ann,1,5,5,5", "line 2: 6 cells for 5 columns"),
        ("ratings-0,ann,1,5,5", "line 2: this answers the form 'ratings-0', which this key is not for"),
        ("{form},ann,1,5,5\n{form},ann,1,4,5", "line 3: ann has answered question 1 before: .*line 2"),
    ],
)
def test_bad_answers_are_named(row: str, message: str, paths: dict[str, Path], tmp_path: Path) -> None:
    key = AnswerKey.load(paths["key"])
    path = tmp_path / "answers.csv"
    path.write_text("form,rater,item,grammar,coherency\n" + row.format(form=key.forms["ratings"]) + "\n")
    with pytest.raises(InputError, match=f"answers.csv, {message}"):
        read_answers([path], key)


def test_files_that_are_none_of_ours(paths: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="wrong.csv: the columns are a, b, not the columns of"):
        read_answers([tmp_path / "wrong.csv"], AnswerKey.load(paths["key"]))
    with pytest.raises(InputError, match="wrong.csv is not a key.json"):
        AnswerKey.load(tmp_path / "wrong.csv")
