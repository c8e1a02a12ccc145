"""What a Hub keeps: repositories of files with branches, commits and pull requests."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

DATE = "2026-01-01T00:00:00.000Z"


class Refusal(Exception):
    """An answer other than success: status, message, and the code that the client makes an exception of."""

    def __init__(self, status: int, message: str, code: str | None = None):
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class Blob:
    """Content of a file, as a Git object or as a large file."""

    content: bytes
    is_large: bool

    @property
    def oid(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_large else self.oid


@dataclass
class Repository:
    """A repository: `kind` is `models`, `datasets` or `spaces`, as in the Hub's addresses."""

    kind: str
    name: str
    private: bool = False
    heads: dict[str, str] = field(default_factory=dict)
    trees: dict[str, dict[str, Blob]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    pull_requests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self):
        self.record("main", {".gitattributes": Blob(b"*.safetensors filter=lfs\n", False)}, "initial commit")

    def record(self, branch: str, tree: dict[str, Blob], message: str) -> str:
        """Add a commit to a branch."""
        # As git names commits, by what they hold: a client's cache keeps files by this name from test to test.
        content = sorted((path, blob.oid) for path, blob in tree.items())
        sha = hashlib.sha1(repr((self.name, len(self.trees), message, content)).encode()).hexdigest()
        self.heads[branch], self.trees[sha], self.messages[sha] = sha, tree, message
        return sha

    def sha(self, revision: str) -> str:
        sha = self.heads.get(revision, revision)
        if sha not in self.trees:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return sha

    def files(self, revision: str = "main") -> dict[str, Blob]:
        return self.trees[self.sha(revision)]

    def branch(self, name: str, start: str) -> None:
        if name.startswith("refs/"):
            raise Refusal(400, f"Invalid reference for a branch: {name}")
        if name in self.heads:
            raise Refusal(409, f"Reference already exists: {name}")
        self.heads[name] = self.sha(start)

    def commit(self, revision: str, lines: list[dict], large: dict[str, bytes]) -> str:
        """Apply the lines of a commit's payload, all or none."""
        tree, message = dict(self.files(revision)), ""
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                message = value["summary"]
                if value.get("parentCommit", self.sha(revision)) != self.sha(revision):
                    raise Refusal(412, "A commit has happened since. Please refresh and try again.")
            elif line["key"] == "file":
                tree[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in large:
                    raise Refusal(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
                tree[value["path"]] = Blob(large[value["oid"]], True)
            elif line["key"] == "deletedFile":
                if tree.pop(value["path"], None) is None:
                    raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")
            else:
                raise Refusal(400, f"unknown operation {line['key']}")
        return self.record(revision, tree, message)

    def open_pull_request(self, start: str, title: str, author: str) -> dict[str, Any]:
        number = len(self.pull_requests) + 1
        self.heads[f"refs/pr/{number}"] = self.sha(start)
        request = {
            "num": number,
            "title": title,
            "author": {"name": author},
            "createdAt": DATE,
            "status": "open",
            "repo": {"name": self.name, "type": self.kind[:-1]},
            "isPullRequest": True,
        }
        self.pull_requests.append(request)
        return request

    def describe(self, revision: str) -> dict[str, Any]:
        siblings = [{"rfilename": path} for path in sorted(self.files(revision))]
        return {
            "id": self.name,
            "sha": self.sha(revision),
            "private": self.private,
            "lastModified": DATE,
            "createdAt": DATE,
            "tags": [],
            "siblings": siblings,
        }

    def entries(self, revision: str, folder: str, recursive: bool) -> list[dict[str, Any]]:
        """Files and folders below a folder, as the Hub lists them."""
        prefix = f"{folder}/" if folder else ""
        found: dict[str, dict[str, Any]] = {}
        for path, blob in sorted(self.files(revision).items()):
            if not path.startswith(prefix):
                continue
            *parents, _ = path[len(prefix) :].split("/")
            for depth in range(1, len(parents) + 1):
                if recursive or depth == 1:
                    parent = prefix + "/".join(parents[:depth])
                    found[parent] = {"type": "directory", "path": parent, "oid": "0" * 40, "size": 0}
            if recursive or not parents:
                found[path] = self.entry(path, blob)
        if folder and not found:
            raise Refusal(404, f"{folder} does not exist on {revision!r}", "EntryNotFound")
        return list(found.values())

    @staticmethod
    def entry(path: str, blob: Blob) -> dict[str, Any]:
        size = len(blob.content)
        entry = {"type": "file", "path": path, "oid": blob.oid, "size": size}
        return entry | ({"lfs": {"oid": blob.sha256, "size": size, "pointerSize": 130}} if blob.is_large else {})
