"""What the README, the cards and other documents show: their Python runs, their commands exist, their links hold."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from transformers.pipelines.base import Pipeline

from hf_paraphrase import (
    DnpgConfig,
    DnpgForConditionalGeneration,
    ParaphraseRetriever,
    ResidualLstmConfig,
    ResidualLstmForConditionalGeneration,
)
from hf_paraphrase.released import RELEASED
from hf_paraphrase.serving.app import make_app
from hf_paraphrase.serving.served_model import load_served_model
from tests.cli.runner import find_commands, run
from tests.datasets.corpora import write_corpus
from tests.generation.paraphrasers import (
    character_tokenizer,
    tiny_autoencoder,
    tiny_hierarchical_lm,
)
from tests.models.test_pipeline_pairs import PAIRS, tiny_fset, tiny_matcher
from tests.models.tiny import SPECIAL_IDS, WORDS, save, tiny_bart, tiny_model
from tests.notebooks import run_notebook

ROOT = Path(__file__).parents[1]
COMMANDS = find_commands()
CARDS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("model_cards/*/*.md"))
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"model_cards/{name}.md" for name in ("PAPERS", "DECODING", "PARAPHRASER")),
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("scripts/docs/*.md"))),
    *CARDS,
]
TEXTS = {"texts": ["how do i learn ?", "a cat sat"], "markdown": "# Notes\n\nHow do I learn?\n"}


def find_blocks(language: str) -> list[tuple[str, str]]:
    """Every code block of a language, with its document."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [(name, code) for name in DOCUMENTS for code in pattern.findall((ROOT / name).read_text(encoding="utf-8"))]


def make_models(folder: Path) -> None:
    """A tiny model of the right family, of random weights, for each that the documents name."""
    sizes = {"vocab_size": len(WORDS), "embedding_size": 8, "hidden_size": 8, "num_layers": 1}
    config = ResidualLstmConfig(**sizes, **SPECIAL_IDS, attention="additive", initializer_range=1.0)
    writers = {
        "runs/quickstart": (ResidualLstmForConditionalGeneration(config), None),
        "residual-lstm-mscoco-small": (ResidualLstmForConditionalGeneration(config), None),
        "residual-lstm-mscoco-consensus-small": (ResidualLstmForConditionalGeneration(config), None),
        "runs/fset-synthetic": (tiny_fset(), None),
        "fset-quora-small": (tiny_fset(), None),
        "runs/dnpg-synthetic": (tiny_model(DnpgConfig, DnpgForConditionalGeneration), None),
        "dnpg-synthetic": (tiny_model(DnpgConfig, DnpgForConditionalGeneration), None),
        "hierarchical-autoencoder-hotel-reviews-small": (tiny_autoencoder(), None),
        "sarah-lm-paraphrase-small": (tiny_hierarchical_lm(), character_tokenizer()),
    }
    for name, (model, tokenizer) in writers.items():
        model.generation_config.max_new_tokens = 7
        save(model, folder / name, tokenizer)
    save(tiny_bart(), folder / RELEASED)
    for name in ("runs/fset-synthetic", "fset-quora-small"):
        ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(folder / name / "retriever")
    for name in ("runs/coupled-lstm-twitter-small", "coupled-lstm-twitter-small"):
        save(*tiny_matcher(folder / name))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_models(folder)
    write_corpus("quora", "li2018", folder / "data" / "quora")
    return folder


@pytest.mark.parametrize("document", sorted({name for name, _ in find_blocks("python")}))
def test_python_runs(document: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a document, one after the other, with stand-ins for the models; nothing is pushed."""
    pushed, names = [], dict(TEXTS)
    monkeypatch.setattr(Pipeline, "push_to_hub", lambda self, repo_id: pushed.append(repo_id))
    monkeypatch.chdir(models)
    blocks = [code for name, code in find_blocks("python") if name == document]
    for code in blocks:
        exec(compile(code, document, "exec"), names)
    assert len(pushed) == "".join(blocks).count("push_to_hub(")


def assert_same_output(printed: str, shown: str) -> None:
    """Word for word; numbers may differ as processors round."""
    for line, expected in zip(printed.strip().splitlines(), shown.splitlines(), strict=True):
        for word, wanted in zip(line.split(), expected.split(), strict=True):
            if re.fullmatch(r"0\.\d+\]?", wanted):
                assert float(word.rstrip("]")) == pytest.approx(float(wanted.rstrip("]")), abs=0.02)
            else:
                assert word == wanted


def test_readme_shows_what_it_prints(capsys: pytest.CaptureFixture) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 12_000
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    exec(compile(code, "README.md", "exec"), {})
    assert_same_output(capsys.readouterr().out, shown)
    picture = re.sub("<[^>]+>", " ", (ROOT / "model_cards/pictures/overview.svg").read_text(encoding="utf-8"))
    for line in shown.splitlines():
        score, sentence = line.split(maxsplit=1)
        assert score in picture and sentence in " ".join(picture.split())
    command = next(line for line in text.splitlines() if line.startswith("hf-paraphrase paraphrase "))
    (shown,) = re.findall(r"The first of these prints.*?```\n(.*?)```", text, re.DOTALL)
    assert run(*shlex.split(command)[1:]) == 0
    assert_same_output(capsys.readouterr().out, shown)


@pytest.mark.parametrize("name", ["first-steps", "data-frame"])
def test_notebooks_show_what_they_print(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m tests.notebooks scripts/docs/*.ipynb` runs them anew."""
    monkeypatch.setenv("COLUMNS", "100")
    path = ROOT / "scripts" / "docs" / f"{name}.ipynb"
    for cell, shown in zip(run_notebook(path)["cells"], json.loads(path.read_text())["cells"], strict=True):
        now, then = (
            "".join("".join(output.get("text") or output["data"]["text/plain"]) for output in one.get("outputs", ()))
            for one in (cell, shown)
        )
        assert_same_output(now, then.strip())


def test_serve_shows_what_it_answers() -> None:
    text = (ROOT / "scripts/docs/serve.md").read_text(encoding="utf-8")
    question, shown = re.search(r"-d '(.*?)'\n(.*?)```", text, re.DOTALL).groups()
    shown = json.loads(shown.replace("\n", " "))
    with TestClient(make_app(load_served_model(RELEASED))) as client:
        answer = client.post("/paraphrase", json=json.loads(question)).json()
    (paraphrase,), (expected,) = (one["results"][0].pop("paraphrases") for one in (answer, shown))
    assert answer == shown and paraphrase.pop("text") == expected.pop("text")
    assert paraphrase == pytest.approx(expected, abs=0.02)


def test_results_count_the_claims_of_every_reproduced_table() -> None:
    text = (ROOT / "scripts/docs/results.md").read_text(encoding="utf-8")
    rows = re.findall(r"\]\(\.\./\.\./(model_cards/\S+)\) \| (\d+) \| (\d+) \| (\d+) \|", text)
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in CARDS}
    verdicts = {name: re.findall(r"^- claimed: .*\*\*(.*)\*\*$", page, re.MULTILINE) for name, page in pages.items()}
    counts = {
        name: tuple(map(found.count, ("holds", "does not hold", "open"))) for name, found in verdicts.items() if found
    }
    assert {name: tuple(map(int, shown)) for name, *shown in rows} == counts


def find_lines() -> list[tuple[str, str]]:
    """Every command line of a shell block, with its document; of a loop its body."""
    lines = []
    for document, block in find_blocks("bash"):
        block = re.sub(r"<<'(\w+)'.*?^\1$", "", block, flags=re.DOTALL | re.MULTILINE).replace("\\\n", " ")
        parts = (part.strip() for line in block.splitlines() for part in re.split(r"  +#| \| | && ", line))
        lines += [(document, re.sub(r" [<>] \S+", "", part)) for part in parts if part and not part.startswith("#")]
    return lines


@pytest.mark.parametrize(("document", "line"), find_lines())
def test_commands_are_there_with_their_options(document: str, line: str) -> None:
    """They are read as the command would, and not run: they take data, or minutes."""
    words = shlex.split(line)
    if words[0] in ("bash", "python") and words[1].startswith("scripts/"):
        assert (ROOT / words[1]).is_file()
    if "hf-paraphrase" not in words[:1] and "hf_paraphrase" not in words:
        return
    rest = words[words.index("train" if "torchrun" in words else "hf-paraphrase") + ("torchrun" not in words) :]
    if rest[0] in ("--help", "--version"):
        return
    (name,) = [name for name in COMMANDS if rest[: len(name.split())] == name.split()]
    args = rest[len(name.split()) :]
    if "--help" not in args:
        COMMANDS[name].make_context(name, args, help_option_names=["--help"])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_pictures_are_there(document: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for link in links:
        if not re.match(r"\w+:", link):
            assert ((ROOT / document).parent / link.partition("#")[0]).exists(), link
