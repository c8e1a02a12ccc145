"""Small releases of the corpora, packed as they are published, and a server that gives them out."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from hf_paraphrase.datasets.addresses import RELEASES, Release, ReleasedFile

from .corpora import FILES

# What stands in front of the names that `FILES` has, in the archives that have a folder more.
INSIDE = {
    "wikianswers": "wikianswers-paraphrases-1.0/",
    "wikipedia_paragraphs": "wikitext-103/",
    "wikiqa": "WikiQACorpus/",
}
# What the archives hold beside the files that are read.
BESIDE = {
    "mscoco": {"annotations/instances_train2014.json": ["{}"]},
    "snli": {"__MACOSX/snli_1.0/._snli_1.0_train.jsonl": ["\0"], "snli_1.0/README.txt": ["read me"]},
    "wikiqa": {"WikiQACorpus/WikiQA-train.ref": ["1 0"], "WikiQACorpus/LICENSE.pdf": ["%PDF"]},
}


def published(corpus: str) -> dict[str, list[str]]:
    """The files of a corpus under the names they have after download."""
    files = FILES[corpus]()
    if corpus == "gutenberg":
        return {f"pg{Path(name).stem}.txt": lines for name, lines in files.items() if name != "txt/0.txt"}
    return files


def pack(corpus: str, url: str) -> bytes:
    """The content of a released file."""
    name = url.rpartition("/")[2]
    contents = {path: "".join(f"{line}\n" for line in lines).encode() for path, lines in published(corpus).items()}
    inside = {INSIDE.get(corpus, "") + path: content for path, content in contents.items()}
    inside |= {path: "\n".join(lines).encode() for path, lines in BESIDE.get(corpus, {}).items()}
    packed = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(packed, "w") as archive:
            for path, content in inside.items():
                archive.writestr(path, content)
    elif name.endswith(".tar.gz"):
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, content in inside.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    elif name.endswith(".gz"):
        return gzip.compress(contents[name.removesuffix(".gz")])
    else:
        return contents[name]
    return packed.getvalue()


def release(corpus: str, folder: Path) -> Release:
    """Write a corpus's released files into `folder/corpus`; the release as the table of addresses would have it."""
    (folder / corpus).mkdir(parents=True)
    for file in RELEASES[corpus].files:
        numbers = [Path(name).stem.removeprefix("pg") for name in published(corpus)] if "{number}" in file.url else [0]
        for number in numbers:
            url = file.url.format(number=number, size="l", part="all")
            (folder / corpus / url.rpartition("/")[2]).write_bytes(pack(corpus, url))
    return replace(RELEASES[corpus], files=tuple(_known(folder / corpus, file) for file in RELEASES[corpus].files))


def _known(folder: Path, file: ReleasedFile) -> ReleasedFile:
    """A file with the size and checksum of the small one, where those of the published one are known."""
    if file.size is None and file.sha256 is None:
        return file
    # Not packed anew: archives have the time in them.
    content = (folder / file.url.rpartition("/")[2]).read_bytes()
    size, digest = len(content), hashlib.sha256(content).hexdigest()
    return replace(file, size=file.size and size, sha256=file.sha256 and digest)


class Handler(SimpleHTTPRequestHandler):
    """Serves files and notes what is asked for; of those that the server cuts off the second half is missing."""

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        super().do_GET()

    def copyfile(self, source, outputfile) -> None:
        content = source.read()
        outputfile.write(content[: len(content) // 2] if self.path in self.server.cut_off else content)

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.requests: list[str] = []
        self.cut_off: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Give out a folder over HTTP while the context is open."""
    server = Server(folder)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
