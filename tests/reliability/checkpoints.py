"""Checkpoints made to run code, or to reach what is not in them: no command lets them, whatever is piped in."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import torch

from hf_paraphrase import ParaphraseRetriever
from hf_paraphrase.models.fset.configuration_fset import FsetConfig
from hf_paraphrase.models.fset.modeling_fset import FsetForConditionalGeneration
from tests.checkpoints.hostile import CLASSIFIERS, KINDS, change_json, make_hostile
from tests.cli.runner import run
from tests.models.tiny import save, tiny_bart, tiny_matcher, tiny_model
from tests.retrieval.corpus import count_letters

from .trials import Trials

PAIRS = [("how do i learn", "can you make bread"), ("the cat sat", "a dog sat"), ("x y z", "z y x")]
WRITERS = {"bart": tiny_bart, "fset": lambda: tiny_model(FsetConfig, FsetForConditionalGeneration)}
COMMANDS = {
    "paraphrase": ["{evil}"],
    "paraphrase -n": ["1", "{evil}"],
    "paraphrase-document": ["--model", "{evil}", "{texts}", "--output", "{out}/a.txt"],
    "augment": ["{pairs}", "--column", "source", "--model", "{evil}", "--output", "{out}"],
    "evaluate": ["{evil}", "--dataset", "pairs", "--data-files=test={pairs}", "--metrics", "bleu"],
    "explain edit": ["{evil}", "a text", "--output", "{out}/a.html"],
    "mine": ["{texts}", "--output", "{out}", "--encoder", "{evil}"],
    "info": ["{evil}"],
}
# Whose events are about what is opened, changed or started.
READS = {"open", "os.listdir", "os.scandir"}
CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect"}
# What every process reads: Python and its libraries, this checkout, the system.
ROOT = Path(__file__).resolve().parents[2]
OPEN_TO_ALL = [ROOT, *map(Path, {sys.prefix, sys.base_prefix, *filter(None, map(os.path.realpath, sys.path))})]
OPEN_TO_ALL += [Path(name) for name in ("/proc", "/sys", "/dev", "/etc", "/usr")]


def open_hostile_checkpoints(count: int, seed: int = 0) -> Trials:
    """Open `count` checkpoints, each with one to three traps, by commands in turn."""
    trials = Trials("hostile checkpoints")
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        command = list(COMMANDS)[number % len(COMMANDS)]
        with tempfile.TemporaryDirectory(prefix="checkpoint-") as scratch:
            traps = make_checkpoint(Path(scratch), draw)
            with trials.trial(f"{number}: {command}, {', '.join(traps)}"):
                open_by(command, Path(scratch))
    return trials


def make_checkpoint(scratch: Path, draw: random.Random) -> list[str]:
    """Make a checkpoint `evil` and what it would reach, `outside`; return what its traps are called."""
    kind = draw.choice([None, None, *KINDS])
    name = draw.choice(list(WRITERS))
    outside, evil = scratch / "outside", scratch / "evil"
    save(tiny_matcher(2), outside)
    torch.save({}, outside / "optimizer.bin")
    (outside / "vocab.txt").write_text("hello\nworld\n")
    make_hostile(outside / "evil", scratch / "canary", "known")
    if kind is None:
        save(WRITERS[name](), evil)
    else:
        make_hostile(evil, scratch / "canary", kind, None if kind in CLASSIFIERS else WRITERS[name]())
    if name == "fset":
        ParaphraseRetriever.from_pairs(PAIRS, count_letters).save_pretrained(evil / "retriever")
        shutil.copytree(outside, evil / "retriever" / "encoder")
        change_json(evil / "retriever" / "retriever_config.json", encoder="./encoder")
    names = draw.sample(list(TRAPS), draw.randint(1, 3))
    for trap in names:
        TRAPS[trap](evil, outside, draw)
    (scratch / "pairs.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS))
    (scratch / "texts.txt").write_text("".join(f"{a}\n" for a, _ in PAIRS))
    (scratch / "out").mkdir()
    return [name, *([] if kind is None else [kind]), *names]


def open_by(command: str, scratch: Path) -> None:
    """Run a command with consent to everything on standard input, and check what it did."""
    values = {name: scratch / name for name in ("evil", "out")}
    values |= {"pairs": scratch / "pairs.csv", "texts": scratch / "texts.txt"}
    arguments = [word.format(**values) for word in [*command.split(), *COMMANDS[command]]]
    before = snapshot(scratch)
    stdin = io.TextIOWrapper(io.BytesIO(b"yes\n" * 50), encoding="utf-8")
    readable = [scratch / name for name in ("evil", "out", "pairs.csv", "texts.txt")]
    with patch.object(sys, "stdin", stdin), watching(readable, [scratch / "out"]) as found:
        said = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            code = run(*arguments)
    assert not (scratch / "canary").exists(), "its code ran"
    assert not found, f"it reached {'; '.join(sorted(set(found)))}"
    assert snapshot(scratch) == before, "files have changed, or been read"
    assert code == 0 or (code == 2 and "error: " in said.getvalue()), f"ended with {code}: {said.getvalue()[-200:]}"


def snapshot(scratch: Path) -> dict[str, tuple[int, int]]:
    """When each file that is not the output was changed, and those outside were read, by Python or another library."""
    found = {}
    for path in sorted(scratch.rglob("*")):
        if path.is_file() and (scratch / "out") not in path.parents:
            stat = path.lstat()
            is_outside = (scratch / "outside") in path.parents
            found[str(path)] = (stat.st_mtime_ns, stat.st_atime_ns if is_outside else 0)
    return found


# A hook stays for the life of its process; it reports while somebody watches.
_watchers: list[Callable[[str, tuple], None]] = []


def _report(event: str, arguments: tuple) -> None:
    for watcher in _watchers:
        watcher(event, arguments)


@contextmanager
def watching(readable: list[Path], writable: list[Path]) -> Iterator[list[str]]:
    """Note what Python opens, changes or starts beyond what it may: the caches are for both.

    Args:
        readable: Beside what every process reads.
        writable: Beside the temporary files of others.
    """
    if not getattr(watching, "is_hooked", False):
        sys.addaudithook(_report)
        watching.is_hooked = True
    found: list[str] = []
    cache = Path(os.environ["HF_HOME"]).resolve()
    scratch = readable[0].parent
    may_write = [cache, *writable]
    may_read = [*OPEN_TO_ALL, *may_write, *readable]

    def watch(event: str, arguments: tuple) -> None:
        if event in STARTS and arguments[0] != "git":  # which says what version of this package runs
            found.append(f"{event} {arguments[:2]!r:.100}")
        if event not in READS | CHANGES or not arguments or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = Path(os.path.abspath(os.fsdecode(arguments[0])))
        is_write = event in CHANGES or (event == "open" and is_for_writing(*arguments[1:]))
        # Elsewhere in the folder of temporary files may be those of libraries; what lies in the scratch is ours.
        allowed = may_write if is_write else may_read
        if not any(path.is_relative_to(one) for one in allowed) and (
            path.is_relative_to(scratch) or not path.is_relative_to(tempfile.gettempdir())
        ):
            found.append(f"{event} {path}")

    _watchers.append(watch)
    try:
        yield found
    finally:
        _watchers.remove(watch)


def is_for_writing(mode: str | None, flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND))


def link(evil: Path, outside: Path, draw: random.Random) -> None:
    """A file of the checkpoint is elsewhere."""
    name = draw.choice(["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "extra.json"])
    (evil / name).unlink(missing_ok=True)
    source = outside / name
    (evil / name).symlink_to(source if source.exists() else outside / "config.json")


def link_folder(evil: Path, outside: Path, draw: random.Random) -> None:
    """A folder of it is elsewhere."""
    place = evil / draw.choice(["retriever", "additional_chat_templates", "custom_generate"])
    shutil.rmtree(place, ignore_errors=True)
    place.symlink_to(outside)


def name_code(evil: Path, outside: Path, draw: random.Random) -> None:
    """Its code is elsewhere, by a path, or another repository."""
    places = [f"{outside}/evil/evil.Model", "../outside/evil/evil.Model", f"{outside}/evil--evil.Model"]
    place = draw.choice([*places, "you/evil--evil.Model"])
    classes = ("AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification")
    pipelines = {"text2text-generation": {"impl": place, "pt": ["AutoModel"], "type": "text"}}
    values = {"auto_map": dict.fromkeys(classes, place), "custom_pipelines": pipelines, "trust_remote_code": True}
    rewrite_some(evil / "config.json", **values)
    values = {"auto_map": {"AutoTokenizer": [place, None]}, "trust_remote_code": True}
    rewrite_some(evil / "tokenizer_config.json", **values)


def name_shards(evil: Path, outside: Path, draw: random.Random) -> None:
    """Its weights are said to lie elsewhere."""
    place = draw.choice(["../outside/model.safetensors", str(outside / "model.safetensors")])
    (evil / "model.safetensors").unlink(missing_ok=True)
    index = {"metadata": {"total_size": 1}, "weight_map": {"model.shared.weight": place, "lm_head.weight": place}}
    (evil / "model.safetensors.index.json").write_text(json.dumps(index))


def name_files_of_tokenizer(evil: Path, outside: Path, draw: random.Random) -> None:
    """Its tokenizer is said to lie elsewhere."""
    path = str(outside / "tokenizer.json")
    names = (
        "tokenizer_file",
        "vocab_file",
        "merges_file",
        "name_or_path",
        "chat_template_file",
        "fast_tokenizer_files",
    )
    values = {name: [path] if name.endswith("files") else path for name in draw.sample(names, 3)}
    if draw.random() < 0.5:
        (evil / "tokenizer.json").unlink(missing_ok=True)
    rewrite_some(evil / "tokenizer_config.json", **values)


def name_files_by_special_tokens(evil: Path, outside: Path, draw: random.Random) -> None:
    """The file of special tokens, which transformers reads as arguments of the tokenizer, says where its words lie."""
    change_json(evil / "tokenizer_config.json", added_tokens_decoder={})
    content = json.loads((evil / "tokenizer_config.json").read_text())
    del content["added_tokens_decoder"]
    (evil / "tokenizer_config.json").unlink()
    (evil / "tokenizer_config.json").write_text(json.dumps(content))
    names = draw.sample(["vocab_file", "vocab", "merges_file", "tokenizer_file", "gguf_file", "spm_file"], 3)
    rewrite_some(evil / "special_tokens_map.json", **dict.fromkeys(names, str(outside / "vocab.txt")))


def name_checkpoint(evil: Path, outside: Path, draw: random.Random) -> None:
    """Its configs name another checkpoint wherever one may be named."""
    names = ("_name_or_path", "name_or_path", "base_model_name_or_path", "assistant_model", "custom_generate")
    names += ("_attn_implementation", "attn_implementation", "experts_implementation", "tokenizer_class")
    values = dict.fromkeys(draw.sample(names, 4), str(outside))
    rewrite_some(evil / "config.json", **values)
    rewrite_some(evil / "generation_config.json", **values)
    adapter = {"peft_type": "LORA", "base_model_name_or_path": str(outside), "auto_mapping": None}
    if draw.random() < 0.5:
        (evil / "adapter_config.json").write_text(json.dumps(adapter))


def name_encoder(evil: Path, outside: Path, draw: random.Random) -> None:
    """The retriever's config names an encoder elsewhere."""
    place = draw.choice([str(outside), "../../outside", "./encoder/../../../outside", "you/evil"])
    if (evil / "retriever" / "retriever_config.json").is_file():
        rewrite_some(evil / "retriever" / "retriever_config.json", encoder=place)


def name_modules(evil: Path, outside: Path, draw: random.Random) -> None:
    """The checkpoint and its encoder are models of sentence-transformers, whose modules are elsewhere."""
    for folder in (evil, evil / "retriever" / "encoder"):
        if folder.is_dir():
            kinds = ["sentence_transformers.models.Transformer", "evil.Model", "os.path.join", "subprocess.Popen"]
            paths = ["", "../outside", "../../../outside", str(outside)]
            module = {"idx": 0, "name": "0", "path": draw.choice(paths), "type": draw.choice(kinds)}
            (folder / "modules.json").write_text(json.dumps([module]))


def name_index(evil: Path, outside: Path, draw: random.Random) -> None:
    """The retriever's files are said to lie elsewhere."""
    config = evil / "retriever" / "retriever_config.json"
    if config.is_file():
        rewrite_some(config, checksums={"../../outside/config.json": "0", "pairs.parquet": "0"})


TRAPS = {
    trap.__name__: trap
    for trap in (
        link,
        link_folder,
        name_code,
        name_shards,
        name_files_of_tokenizer,
        name_files_by_special_tokens,
        name_checkpoint,
        name_encoder,
        name_modules,
        name_index,
    )
}


def rewrite_some(path: Path, **values: object) -> None:
    """Set fields of a JSON file, which may be missing."""
    before = json.loads(path.read_text()) if path.is_file() else {}
    path.unlink(missing_ok=True)  # which may be a link, and is not written through
    path.write_text(json.dumps(before | values))
