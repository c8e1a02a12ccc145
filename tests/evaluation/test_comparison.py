from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import Dataset

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.evaluation import comparison
from hf_paraphrase.evaluation.comparison import (
    COPIED,
    System,
    compare_paraphrasers,
    format_comparison_as_csv,
    format_comparison_as_markdown,
    parse_system,
)
from hf_paraphrase.generation.engine import generate_several
from hf_paraphrase.generation.loading import load_paraphraser
from hf_paraphrase.metrics.distinct_n.scoring import distinct_n
from hf_paraphrase.metrics.score_files import ScoredTexts, read_scored_texts
from hf_paraphrase.metrics.score_table import score_systems
from hf_paraphrase.metrics.self_bleu.scoring import self_bleu
from hf_paraphrase.papers import find_compared_rows
from tests.models.test_pipeline_pairs import tiny_fset
from tests.models.tiny import save, tiny_bart, tiny_t5

PAIRS = [
    ("how do i learn to cook ?", "how do i cook faster ?"),
    ("the cat sat on the mat", "on the mat sat a cat"),
    ("a dog sat", "the dog sat"),
    ("can you make bread ?", "do you make bread ?"),
    ("make bread", "bread to make"),
]
ROWS = {"source": [source for source, _ in PAIRS], "target": [target for _, target in PAIRS]}
OPTIONS = {"num_beams": 3, "num_candidates": 3, "select": "jaccard", "max_new_tokens": 7}
METRIC_OPTIONS = {"meteor": {"stages": ("exact",)}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {"bart": save(tiny_bart(), folder / "bart"), "t5": save(tiny_t5(), folder / "t5")}


def compare(folders, output_dir, names=("bart", "t5"), dataset=None, **kwargs):
    return compare_paraphrasers(
        [System(name, folders[name]) for name in names],
        dataset or Dataset.from_dict(ROWS),
        output_dir,
        **{"options": OPTIONS, "metric_options": METRIC_OPTIONS, "n_samples": 50, "n_trials": 50} | kwargs,
        data={"path": "quora"},
    )


@pytest.fixture(scope="module")
def compared(folders, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    return compare(folders, folder), folder


def texts_of(folder: Path) -> ScoredTexts:
    (path,) = folder.glob("predictions-*.jsonl")
    return read_scored_texts([path])


def test_scores_and_p_values_are_those_of_the_score_table(compared):
    results, folder = compared
    bart, t5, copied = results.entries[:3]
    assert [bart.system, t5.system, copied.system] == ["bart", "t5", COPIED]
    references = [[target] for target in ROWS["target"]]
    others = {"t5": texts_of(folder / "t5"), COPIED: ScoredTexts([ROWS["source"]], references, ROWS["source"])}
    for entry in (t5, copied):
        rows = score_systems(
            others[entry.system],
            texts_of(folder / "bart"),
            metrics=("rouge", "bleu", "meteor", "pinc"),
            options={"bleu": {"lowercase": True}, "pinc": {"lowercase": True}, **METRIC_OPTIONS},
            n_samples=50,
            n_trials=50,
        )
        for row in rows:
            found = entry.find(row.metric)
            assert (found.score, found.low, found.high, found.p_value) == (row.score, row.low, row.high, row.p_value)
            against = bart.find(row.metric)
            assert against.p_value is None and against.score == row.against
            assert against.signature == found.signature == row.signature
    assert copied.find("pinc").score == 0


def test_diversity_is_of_the_outputs(compared, folders):
    results, folder = compared
    for entry in results.of("model"):
        predictions = texts_of(folder / entry.system).runs[0]
        candidates = generate_several(*load_paraphraser(folders[entry.system]), ROWS["source"], **OPTIONS)
        assert [texts[0] for texts in candidates] == predictions
        assert {len(texts) for texts in candidates} == {3}
        alike = self_bleu(candidates, lowercase=True)
        expected = {name: alike[name] for name in ("self_bleu_2", "self_bleu_4")}
        words = distinct_n(predictions, lowercase=True)
        expected |= {name: words[name] for name in ("distinct_1", "distinct_2")}
        assert {score.metric: score.score for score in entry.diversity} == expected
        assert entry.find("self_bleu_2").signature == alike["signature"]
        assert entry.find("distinct_1").signature == words["signature"]
        assert entry.model.num_parameters > 1000 and entry.speed.per_second > 0
        assert entry.decoding.num_candidates == 3
        assert entry.environment["date"] and (folder / entry.outputs).is_file()


def test_what_is_evaluated_is_not_evaluated_again(compared, folders, monkeypatch):
    results, folder = compared
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "evaluate_paraphraser", lambda *args, **kwargs: pytest.fail("evaluated again"))
        again = compare(folders, folder, against="t5")
        assert again.entries[0].speed == results.entries[0].speed
        assert again.entries[1].find("bleu_4").p_value is None
        assert again.entries[0].find("bleu_4").p_value > 0
        with pytest.raises(InputError, match="bart holds an evaluation with other settings"):
            compare(folders, folder, options=OPTIONS | {"num_beams": 4})
        written = (folder / "bart" / "results-test.json").read_text()
        (folder / "bart" / "results-test.json").write_text('{"generation": []}')
        with pytest.raises(InputError, match=r"bart/results-test\.json is not an evaluation rec.*; evaluate"):
            compare(folders, folder)
        (folder / "bart" / "results-test.json").write_text(written)
    (folder / "bart" / "results-test.json").unlink()
    asked = []
    monkeypatch.setattr(comparison, "evaluate_paraphraser", lambda path, *args, **kwargs: asked.append(path) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compare(folders, folder)
    assert asked == [folders["bart"]]


@pytest.mark.parametrize("change", ["model", "rows"])
def test_another_model_or_other_rows_are_not_taken_for_the_same(change, tmp_path):
    """The same path, and as many rows."""
    folders = {"bart": save(tiny_bart(), tmp_path / "bart")}
    compare(folders, tmp_path / "out", ("bart",))
    dataset = Dataset.from_dict(ROWS)
    if change == "model":
        save(tiny_t5(), tmp_path / "bart")
    else:
        dataset = Dataset.from_dict(ROWS | {"target": ROWS["source"]})
    with pytest.raises(InputError, match="bart holds an evaluation with other settings"):
        compare(folders, tmp_path / "out", ("bart",), dataset)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"names": ("bart", "bart")}, "names of their own: bart, bart"),
        ({"against": "gpt"}, "no system is called gpt; there are: bart, t5"),
    ],
)
def test_systems_have_to_be_told_apart(folders, tmp_path, kwargs, message):
    with pytest.raises(InputError, match=message):
        compare(folders, tmp_path, **kwargs)


def test_a_system_may_have_options_of_its_own():
    assert parse_system("bart=runs/bart") == System("bart", "runs/bart", {})
    system = parse_system("wide bart=runs/a=b,num_beams=10,select=score,length_penalty=0.5")
    assert system == System("wide bart", "runs/a=b", {"num_beams": 10, "select": "score", "length_penalty": 0.5})


def test_samples_beside_a_search(folders, tmp_path):
    """The beam width for all is none of a system that draws its outputs."""
    drawn = System("drawn", folders["bart"], {"decoding": "sample", "temperature": 0.5, "select": "mbr"})
    options = {"options": OPTIONS, "metric_options": METRIC_OPTIONS, "n_samples": 20, "n_trials": 20}
    results = compare_paraphrasers(
        [System("searched", folders["bart"]), drawn], Dataset.from_dict(ROWS), tmp_path, **options
    )
    searched, sampled = results.of("model")
    assert (searched.decoding.method, searched.decoding.num_beams) == ("beam", 3)
    assert (sampled.decoding.method, sampled.decoding.num_beams) == ("sample", 1)
    assert sampled.decoding.num_candidates == 3


@pytest.mark.parametrize("text", ["runs/bart", "=runs/bart", "bart=", "bart=runs/bart,num_beams", "a/b=runs/bart"])
def test_a_system_that_cannot_be_read(text):
    with pytest.raises(InputError, match="NAME=PATH"):
        parse_system(text)


def test_the_table_marks_what_differs_and_has_the_papers_rows(compared):
    results, _ = compared
    # Two systems are tested by six scores each: the smallest p-value counts twelve times, the next eleven times.
    changes = {("t5", "bleu_4"): {"score": 20.04, "low": 19.0, "high": 21.5, "p_value": 0.0041}}
    changes["t5", "bleu_2"] = {"p_value": 0.0046}
    changes["t5", "rougeL"] = {"p_value": 0.0001}  # is computed and not shown
    changed = [results.entries[0]]
    for entry in results.entries[1:]:
        unlike = {} if entry.role == "paper" else {"p_value": 0.9}
        scores = [replace(one, **unlike | changes.get((entry.system, one.metric), {})) for one in entry.scores]
        changed.append(replace(entry, scores=tuple(scores)))
    results = replace(results, entries=tuple(changed), environment=results.environment | {"n_trials": 10_000})
    text = format_comparison_as_markdown(results, "python x.py")
    lines = [line.split("|")[1:-1] for line in text.splitlines()]
    rows = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines if cells}
    assert "after Holm's correction for the 12 tests of this table" in text and "nothing could be marked" not in text
    assert "The paper's METEOR is another METEOR" in text
    assert rows["system"][:6] == ["ROUGE-2", "ROUGE-1", "BLEU-4", "BLEU-2", "METEOR", "PINC"]
    assert rows["t5"][2] == "20.0 ± 1.2*" and not rows["t5"][3].endswith("*")
    assert not any(cell.endswith("*") for cell in rows["bart"])
    assert rows["Kazemnejad et al. 2020, FSET"][:5] == ["39.55", "66.17", "33.46", "51.03", "38.57"]
    assert rows["Kazemnejad et al. 2020, DNPG, as reported"][2:6] == ["25.03", "-", "-", "-"]
    assert rows[COPIED][6] == rows[COPIED][9] == rows[COPIED][10] == rows[COPIED][11] == "-"
    assert rows["system"][9] == "chosen by" and rows["bart"][9] == rows["t5"][9] == "jaccard of 3"

    table = list(csv.DictReader(io.StringIO(format_comparison_as_csv(results))))
    named = replace(results.entries[0], system='=a, "b"\r\nc')
    (row,) = csv.DictReader(io.StringIO(format_comparison_as_csv(replace(results, entries=(named,))), newline=""))
    assert row["system"] == '\'=a, "b"\r\nc'
    assert [row["source"] for row in table] == ["measured"] * 3 + ["published"] * 9
    assert (table[1]["bleu_4"], table[1]["bleu_4_p"], table[0]["bleu_4_p"]) == ("20.04", "0.0041", "")
    assert float(table[1]["bleu_4_holm"]) == pytest.approx(12 * 0.0041) and table[0]["bleu_4_holm"] == ""
    assert float(table[1]["bleu_2_holm"]) == pytest.approx(11 * 0.0046)
    assert [row["chosen_by"] for row in table[:3]] == ["jaccard of 3", "jaccard of 3", "-"]
    results = replace(results, environment=results.environment | {"n_trials": 200})
    assert "show no p below 0.060 after the correction: nothing" in format_comparison_as_markdown(results, "")
    assert (table[-1]["bleu_4"], table[-1]["pinc"]) == ("33.46", "")


def test_metrics_are_chosen_and_models_that_edit_get_no_own_pair(folders, tmp_path):
    model = tiny_fset()
    pairs = [*PAIRS, ("a cat", "the cat"), ("bread", "make bread now")]
    retriever = ParaphraseRetriever.from_pairs(pairs, encoder="jaccard")
    retriever.save_pretrained(Path(save(model, tmp_path / "fset")) / "retriever")
    results = compare(
        folders | {"fset": str(tmp_path / "fset")}, tmp_path / "out", names=("bart", "fset"), metrics=("ter", "bleu")
    )
    assert [score.metric for score in results.entries[0].scores] == ["ter", "bleu_4", "bleu_2"]
    assert results.entries[0].decoding.allow_own_pair is None
    assert results.entries[1].decoding.allow_own_pair is False
    assert results.entries[1].counts["rows_with_own_pair"] == 5
    text = format_comparison_as_markdown(results, "")
    assert text.startswith("| system | BLEU-4 | BLEU-2 | ter | self-BLEU-2 |") and "another METEOR" not in text
    assert "source or reference were left out: fset." in text
    with pytest.raises(InputError, match="unknown metric 'blue'"):
        compare(folders, tmp_path / "other", metrics=("blue",))


def test_published_rows_are_those_of_the_corpus():
    assert len(find_compared_rows("quora")) == 9 and len(find_compared_rows("twitter_url")) == 8
    assert find_compared_rows("mscoco") == find_compared_rows(None) == []
    assert find_compared_rows("twitter_url")[-1].scores["rouge2"] == 32.04
