from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from hf_paraphrase.evaluation.results import Results
from tests.models.tiny import save, tiny_bart, tiny_t5

from .runner import run

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare.py"


@pytest.mark.parametrize("by_script", [False, True])
def test_one_command_writes_it_all(by_script, tmp_path, capsys, monkeypatch):
    systems = [
        f"bart={save(tiny_bart(), tmp_path / 'bart')},max_new_tokens=5",
        f"a t5={save(tiny_t5(), tmp_path / 't5')},max_new_tokens=4,num_beams=4",
    ]
    out = tmp_path / "out"
    options = [
        "--dataset",
        "synthetic_questions",
        "--output_dir",
        str(out),
        "--max-samples",
        "4",
        "--sample-seed",
        "1",
    ]
    options += ["--num-candidates", "2", "--num-beams", "2", "--meteor-stages", "exact", "--n-samples=20"]
    options += ["--n-trials", "20"]
    if by_script:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *systems, *options])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(str(SCRIPT), run_name="__main__")
    else:
        assert run("compare", *systems, *options) == 0
    table = (out / "comparison.md").read_text()
    assert capsys.readouterr().out == table
    # As it was given, so that it can be given again.
    assert f"    hf-paraphrase compare {systems[0]} '{systems[1]}' --dataset synthetic_questions --output_dir" in table
    assert "--n-samples=20 --n-trials 20\n" in table
    results = Results.load(out / "comparison.json")
    assert results.data.rows == 4 and results.data.sample_seed == 1
    # Kazemnejad et al. 2020 keep the output most like the source; that is asked for, not done unasked.
    assert [entry.decoding.select for entry in results.of("model")] == ["score", "score"]
    assert results.environment["n_trials"] == 20
    assert [entry.decoding.num_beams for entry in results.of("model")] == [2, 4]
    assert set(results.environment) >= {"seed", "device", "commit", "date"}
    assert (out / "comparison.csv").is_file()
    assert (out / "comparison.png").stat().st_size > 5000


def test_choices_are_compared_by_one_command(tmp_path, capsys):
    out, model = tmp_path / "out", save(tiny_bart(), tmp_path / "bart")
    encoder = save(tiny_bart(), tmp_path / "judge")
    options = ["--dataset", "synthetic_questions", "--max-samples", "3", "--n-samples", "20", "--encoder", encoder]
    options += ["--set", "max_new_tokens=5", "--set", "min_adequacy=0", "--output-dir", str(out)]
    assert run("compare", f"tiny={model}", *options) == 0
    table = (out / "choices.md").read_text()
    assert capsys.readouterr().out == table and "| tiny: Paraphraser |" in table
    assert "--set max_new_tokens=5 --set min_adequacy=0" in table and f"judge ({encoder})" in table
    results = Results.load(out / "choices.json")
    assert results.kind == "choices" and results.data.rows == 3 == len(
        (out / "choices.jsonl").read_text().splitlines()
    )
