"""What the README, the cards and other documents show: their Python runs, their commands exist, their links hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from transformers.pipelines.base import Pipeline

from hf_paraphrase import (
    DnpgConfig,
    DnpgForConditionalGeneration,
    ParaphraseRetriever,
    ResidualLstmConfig,
    ResidualLstmForConditionalGeneration,
)
from hf_paraphrase.released import RELEASED
from tests.cli.runner import find_commands
from tests.datasets.corpora import write_corpus
from tests.generation.paraphrasers import (
    character_tokenizer,
    tiny_autoencoder,
    tiny_hierarchical_lm,
)
from tests.models.test_pipeline_pairs import PAIRS, tiny_fset, tiny_matcher
from tests.models.tiny import SPECIAL_IDS, WORDS, save, tiny_bart, tiny_model

ROOT = Path(__file__).parents[1]
COMMANDS = find_commands()
CARDS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("model_cards/*/*.md"))
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"model_cards/{name}.md" for name in ("PAPERS", "DECODING", "PARAPHRASER")),
    *CARDS,
]
# Of the documents' Python blocks, those of the README need these.
NAMES = {"texts": ["how do i learn ?", "a cat sat"], "markdown": "# Notes\n\nHow do I learn?\n"}


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


@pytest.mark.parametrize(("document", "code"), find_blocks("python"), ids=lambda value: value.partition("\n")[0][:40])
def test_python_runs(document: str, code: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for the models; nothing is pushed."""
    pushed = []
    monkeypatch.setattr(Pipeline, "push_to_hub", lambda self, repo_id: pushed.append(repo_id))
    monkeypatch.chdir(models)
    exec(compile(code, document, "exec"), dict(NAMES))
    assert len(pushed) == code.count("push_to_hub(")


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
