"""CONTRIBUTING.md names every file to touch: templates that touch no other move in, and the shared tests accept them.

The templates stand in `tree`, each file where it goes, and the lines for files that exist in `LINES`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT, HERE = Path(__file__).resolve().parents[2], Path(__file__).resolve().parent
TREE = HERE / "tree"
COPIED = ("hf_paraphrase", "hub_configs", "model_cards", "scripts", "tests", "CONTRIBUTING.md", "pyproject.toml")
# The rows of the table in CONTRIBUTING.md, and what its placeholders stand for here.
ROWS = {
    "an architecture": {"X": "bag_gru", "AUTHORYEAR": "cho2014"},
    "a paper": {"AUTHORYEAR": "cho2014"},
    "a corpus": {"NAME": "proverbs"},
    "a metric": {"NAME": "length_ratio"},
    "a recipe": {"NAME": "bag-gru-proverbs"},
}
# For each file that exists: the lines that it gets, each above a line that is there already, or at its end.
LINES = {
    "hf_paraphrase/registration.py": {'    Architecture("bag_gru", WRITES),\n': '    Architecture("coupled_lstm", ('},
    "model_cards/PAPERS.md": {
        "\n## Cho et al. 2014: bag of words\n\nModel type `bag_gru`; recipe `bag-gru-proverbs`.\n": ""
    },
    "tests/datasets/corpora.py": {
        """\
def proverbs() -> dict[str, list[str]]:
    return {"proverbs.tsv": [f"{sentence(2 * number)}\\t{sentence(2 * number + 1)}" for number in range(200)]}


""": "def synthetic_questions(",
        '    "proverbs": proverbs,\n': '    "quora": quora,',
    },
    "tests/metrics/test_load_metric.py": {
        '    "length_ratio": ({"predictions": PREDICTIONS, "sources": ["a b", "c"]}, {}),\n': '    "meteor": (',
    },
}
# The tests that hold for each architecture, corpus, metric and recipe, of which those of the templates are run, and
# how many of them there are at least.
SHARED = {
    "tests/models/test_modeling_bag_gru.py": 40,
    "tests/models/test_helper_names.py": 1,
    "tests/test_registration.py": 5,
    "tests/test_unique_names.py": 2,
    "tests/test_imports.py": 4,
    "tests/papers/test_figures.py": 2,
    "tests/hub/test_card.py": 1,
    "tests/datasets/test_all_corpora.py": 10,
    "tests/datasets/test_card.py": 1,
    "tests/metrics/test_load_metric.py": 5,
    "tests/hub/test_metric_cards.py": 1,
    "tests/serving/test_metric_page.py": 1,
    "tests/training/test_hub_configs.py": 2,
    "tests/test_moved_in.py": 4,
}
NAMES = ("bag_gru", "bag-gru", "proverbs", "length_ratio", "moved_in")
# Those that look at all of them at once.
OF_ALL = (
    "test_no_family_is_without_its_row",
    "test_public_names",
    "test_the_paper_index_names",
    "test_a_class_name_stands",
    "test_a_function_name_stands",
    "test_there_is_no_circle",
    "test_rooms_import",
    "test_every_room",
    "test_models_import",
    "test_a_file_each",
    "test_a_paper_is_found",
    "test_every_architecture_has",
    "test_every_corpus_has_its_files",
    "test_every_metric_is_whole",
    "test_the_functions_need_neither",
    "test_a_layer_of_one_family",
    "test_every_folder_is",
)


def read_table(text: str) -> dict[str, set[str]]:
    """The files that each row of the table names, from the root of the repository."""
    rows = re.findall(r"^\| (an? [a-z ]+) \| (.+) \|$", text, flags=re.MULTILINE)
    place = re.compile(r"`((?:hf_paraphrase|hub_configs|model_cards|tests)/[\w./-]+)`")
    return {what: set(place.findall(instructions)) for what, instructions in rows}


def find_touched() -> set[str]:
    """The files that the templates add or change."""
    files = (path for path in TREE.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(TREE).as_posix() for path in files} | LINES.keys()


def named_files(contributing: str) -> set[str]:
    """The files that CONTRIBUTING.md names for what the templates are."""
    table, files = read_table(contributing), set()
    for what, meanings in ROWS.items():
        placeholders = re.compile(rf"(?<![A-Z])({'|'.join(meanings)})(?![A-Z])")
        files |= {placeholders.sub(lambda match, known=meanings: known[match[1]], file) for file in table[what]}
    return files


def move_in(root: Path) -> None:
    """Copy the repository, and add the templates."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        ignore = {"ignore": shutil.ignore_patterns("__pycache__", "stranger")} if copy is shutil.copytree else {}
        copy(ROOT / name, root / name, **ignore)
    shutil.copytree(TREE, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, additions in LINES.items():
        text = (root / name).read_text(encoding="utf-8")
        for lines, below in additions.items():
            assert not below or text.count(f"\n{below}") == 1, f"{name} has no single line {below!r}"
            text = text.replace(f"\n{below}", f"\n{lines}{below}") if below else text + lines
        (root / name).write_text(text, encoding="utf-8")
    shutil.copy(HERE / "moved_in.py", root / "tests" / "test_moved_in.py")


def test_the_places_are_those_that_the_guide_names():
    assert named_files((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")) == find_touched()


def test_a_place_that_the_guide_forgets_is_noticed():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for place in ("hf_paraphrase/registration.py", "hf_paraphrase/metrics/NAME/scoring.py"):
        assert named_files(guide.replace(f"`{place}`", "it")) < find_touched()


def run_shared_tests(root: Path) -> Counter[str]:
    """Run those of the templates in the copy; how many of each file passed."""
    report = root / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "-k", " or ".join((*NAMES, *OF_ALL))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(root), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *SHARED]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    cases = [case for case in ElementTree.parse(report).iter("testcase") if case.find("skipped") is None]
    # The name of a class stands behind that of its module.
    modules = (re.sub(r"\.Test\w+$", "", case.get("classname")) for case in cases)
    return Counter(f"{module.replace('.', '/')}.py" for module in modules)


def test_shared_tests_accept_the_templates(tmp_path):
    move_in(tmp_path)
    passed = run_shared_tests(tmp_path)
    assert {file: passed[file] for file, least in SHARED.items() if passed[file] < least} == {}
