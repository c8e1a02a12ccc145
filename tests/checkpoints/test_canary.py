"""No command runs what lies in a checkpoint, whatever stands on standard input, unless it is told to."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.models.fset.configuration_fset import FsetConfig
from hf_paraphrase.models.fset.modeling_fset import FsetForConditionalGeneration
from tests.checkpoints.hostile import KINDS, change_json, make_hostile
from tests.checkpoints.test_source import find_asking
from tests.cli.runner import run
from tests.models.tiny import save, tiny_bart, tiny_matcher, tiny_model
from tests.retrieval.corpus import count_letters

# The arguments by which every command loads a checkpoint; of some the second way, by an option.
COMMANDS = {
    "train": ["--recipe", "{recipe}", "{corpus}", "--max_steps", "1", "--output-dir", "{out}"],
    "evaluate": ["{evil}", "{corpus}"],
    "compare": ["a={evil}", "{corpus}", "--output-dir", "{out}", "--metrics", "bleu"],
    "augment": ["{pairs}", "--column", "source", "--model", "{evil}", "--output", "{out}"],
    "distill": [
        "{pairs}",
        "--column",
        "source",
        "--teacher",
        "{evil}",
        "--recipe",
        "{recipe}",
        "--output-dir",
        "{out}",
    ],
    "paraphrase": ["{evil}"],
    "paraphrase-document": ["--model", "{evil}", "{texts}", "--output", "{out}"],
    "mine": ["{texts}", "--output", "{out}", "--encoder", "{evil}"],
    "explain edit": ["{evil}", "a text", "--output", "{out}"],
    "explain documents": ["{evil}", "{texts}"],
    "explain map": ["{evil}", "{corpus}", "--output-dir", "{out}"],
    "explain match heatmap": ["{evil}", "--text", "a", "--text-pair", "b", "--output", "{out}"],
    "explain match pairs": ["{evil}", "{corpus}"],
    "serve": ["{evil}", "--port", "0"],
    "demo": ["{evil}"],
}
OPTIONS = {
    "paraphrase, select": ["paraphrase", "{good}", "--select", "matcher", "--matcher", "{evil}"],
    "paraphrase, matcher": ["paraphrase", "{good}", "--adequacy", "matcher", "--matcher", "{evil}"],
    "paraphrase, encoder": ["paraphrase", "{good}", "--adequacy", "embedding", "--encoder", "{evil}"],
    "paraphrase, fluency": ["paraphrase", "{good}", "--fluency", "{evil}"],
    "evaluate, matcher": ["evaluate", "{good}", "{corpus}", "--num-candidates", "2", "--select", "matcher"]
    + ["--matcher", "{evil}"],
    "compare, encoder": ["compare", "a={good}", "{corpus}", "--output-dir", "{out}"] + ["--encoder", "{evil}"],
    "train, tokenizer": ["train", "--recipe", "residual-lstm-synthetic", "{corpus}", "--tokenizer", "{evil}"]
    + ["--max_steps", "1", "--output-dir", "{out}"],
    "train, reward": ["train", "--recipe", "residual-lstm-synthetic", "{corpus}", "--objective", "rbm"]
    + ["--pretrained", "{good}", "--reward", "{evil}", "--max_steps", "1", "--output-dir", "{out}"],
    "train, retriever": ["train", "--recipe", "fset-synthetic", "{corpus}", "--retriever-encoder", "{evil}"]
    + ["--max_steps", "1", "--output-dir", "{out}"],
    "augment, matcher": ["augment", "{pairs}", "--column", "source", "--model", "{good}", "--output", "{out}"]
    + ["--paraphraser-option", "adequacy=matcher", "--paraphraser-option", "matcher={evil}"],
}
WAYS = {name: [*name.split(), *arguments] for name, arguments in COMMANDS.items()} | OPTIONS
PAIRS = [("how do i learn", "can you make bread"), ("the cat sat", "a dog sat"), ("x y z", "z y x")]


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> str:
    return save(tiny_bart(), tmp_path_factory.mktemp("good"))


@pytest.fixture
def canary(tmp_path, monkeypatch) -> Path:
    """The file that no command may write, while standard input consents to everything."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"yes\n" * 50), encoding="utf-8"))
    return tmp_path / "canary"


@pytest.fixture(autouse=True)
def loaded_and_not_served(monkeypatch):
    """What waits for requests ends once it has loaded its model."""
    monkeypatch.setattr("hf_paraphrase.serving.server.run_server", lambda app, listener, limits: None)
    monkeypatch.setattr("gradio.Blocks.launch", lambda self, **kwargs: None)


def fill(tmp_path: Path, arguments: list[str], **values: object) -> list[str]:
    """Arguments with the paths of what they name."""
    (tmp_path / "pairs.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS))
    (tmp_path / "texts.txt").write_text("the cat sat\nhow do i learn\na dog sat on a mat\n")
    (tmp_path / "recipe").mkdir()
    recipe = "dataset: pairs\npretrained: {evil}\nmax_steps: 1\n".format(**values)
    (tmp_path / "recipe" / "training.yaml").write_text(recipe)
    files = [f"--data-files={split}={tmp_path / 'pairs.csv'}" for split in ("train", "validation", "test")]
    values |= {
        "texts": tmp_path / "texts.txt",
        "pairs": tmp_path / "pairs.csv",
        "out": tmp_path / "out.html",
        "recipe": tmp_path / "recipe",
    }
    corpus = ["--dataset", "pairs", *files]
    return [part for word in arguments for part in (corpus if word == "{corpus}" else [word.format(**values)])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_runs_unasked(way, kind, good, canary, tmp_path, capsys):
    if (way, kind) == ("train, tokenizer", "pickle"):
        pytest.skip("only the tokenizer is read, which is not a pickle")
    evil = make_hostile(tmp_path / "evil", canary, kind)
    code = run(*fill(tmp_path, WAYS[way], evil=evil, good=good))
    assert not canary.exists()
    # A known type may have a class for what is asked, which is then used in place of the checkpoint's code.
    assert code == 2 or (code, kind) == (0, "known")
    assert code == 0 or capsys.readouterr().err.splitlines()[-1].startswith("error: ")


def test_all_commands_are_tried():
    assert find_asking() == set(COMMANDS)


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("paraphrase", "unknown"),
        ("paraphrase", "known"),
        ("paraphrase", "tokenizer"),
        ("evaluate", "unknown"),
        ("paraphrase, matcher", "unknown"),
        ("paraphrase, fluency", "unknown"),
        ("augment", "unknown"),
        ("train", "tokenizer"),
        ("mine", "unknown"),
        ("paraphrase", "nested"),
    ],
)
def test_the_canary_sings_where_it_is_let(way, kind, good, canary, tmp_path):
    """What is refused above is refused for its code, and for nothing else."""
    evil = make_hostile(tmp_path / "evil", canary, kind)
    with suppress(Exception):  # what the code does next is its own affair
        run(*fill(tmp_path, [*WAYS[way], "--trust-remote-code"], evil=evil, good=good))
    assert canary.exists()


def test_no_recipe_sets_the_flag(good, canary, tmp_path, capsys):
    evil = make_hostile(tmp_path / "evil", canary, "tokenizer")
    arguments = fill(tmp_path, WAYS["train"], evil=evil, good=good)
    with (tmp_path / "recipe" / "training.yaml").open("a") as recipe:
        recipe.write("trust_remote_code: true\n")
    assert run(*arguments) == 2
    assert "trust_remote_code" in capsys.readouterr().err
    assert not canary.exists()


@pytest.mark.parametrize("kind", ["unknown", "known"])
@pytest.mark.parametrize("place", ["enclosed", "named", "sentence-transformers"])
def test_the_encoder_of_a_retriever(place, kind, canary, tmp_path, capsys):
    model = tiny_model(FsetConfig, FsetForConditionalGeneration)
    folder = Path(save(model, tmp_path / "fset"))
    ParaphraseRetriever.from_pairs(PAIRS, count_letters).save_pretrained(folder / "retriever")
    config = folder / "retriever" / "retriever_config.json"
    if place == "named":
        change_json(config, encoder=str(make_hostile(tmp_path / "evil", canary, kind)))
    else:
        evil = make_hostile(folder / "retriever" / "encoder", canary, kind)
        change_json(config, encoder="./encoder")
        if place == "sentence-transformers":
            module = {"idx": 0, "name": "0", "path": "", "type": "evil.Model"}
            (evil / "modules.json").write_text(f"[{module}]".replace("'", '"'))
    for command in (
        ["paraphrase", folder],
        ["explain", "edit", folder, "a", "--output", tmp_path / "out.html"],
    ):
        assert run(*command) == 2
        said = capsys.readouterr().err
        assert "error: " in said
        assert ("is not opened unasked" in said) == (place == "named")
    assert not canary.exists()


def test_a_pickle_is_never_read_unasked(canary, tmp_path):
    from transformers import AutoModelForSequenceClassification

    from hf_paraphrase.checkpoints.pretrained import load_model

    evil = make_hostile(tmp_path / "evil", canary, "pickle", tiny_matcher(2))
    with pytest.raises(OSError, match="safetensors"):
        load_model(AutoModelForSequenceClassification, evil)
    assert not canary.exists()


@pytest.mark.parametrize(("kind", "said"), [("unknown", "needs code of its own"), ("nested", "`decoder.auto_map`")])
def test_the_real_command_line(kind, said, tmp_path):
    """Once in a process of its own: what `input` would read there is what is piped in."""
    canary = tmp_path / "canary"
    evil = make_hostile(tmp_path / "evil", canary, kind)
    ran = run_in_process("-m", "hf_paraphrase", "paraphrase", str(evil))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr and "--trust-remote-code" in ran.stderr
    assert not canary.exists()


def test_transformers_asks_nobody_where_the_package_is_imported(tmp_path):
    """Even by its own functions, which pass none of our checks."""
    canary = tmp_path / "canary"
    evil = make_hostile(tmp_path / "evil", canary, "nested")
    code = (
        "import sys, hf_paraphrase, transformers\n"
        "try:\n    transformers.AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1])\n"
        "except ValueError as error:\n    print('refused' if 'trust_remote_code' in str(error) else error)\n"
        "print(sys.stdin.readline())\n"
    )
    ran = run_in_process("-c", code, str(evil))
    assert (ran.returncode, ran.stdout.split()) == (0, ["refused", "yes"]), ran.stderr
    assert not canary.exists()


def test_no_library_reads_what_is_piped_in(good, canary, capsys, monkeypatch):
    """Whatever asks, and whenever: here as the model is loaded."""
    from hf_paraphrase.checkpoints.pretrained import AutoTokenizer

    load = AutoTokenizer.from_pretrained

    def ask_and_load(*arguments, **options):
        input("Shall I run this? [y/N]")
        return load(*arguments, **options)

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", ask_and_load)
    assert run("paraphrase", good) == 2
    assert "error: a library asked a question" in capsys.readouterr().err
    assert sys.stdin.readline() == "yes\n"


def run_in_process(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments],
        input="yes\n" * 20,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        timeout=120,
        check=False,
    )
