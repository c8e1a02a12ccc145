"""A small server on loopback that speaks those of the Hub's endpoints which pushing and loading use.

It stands in for huggingface.co where `HF_ENDPOINT` says so. Faults can be injected: refused or dropped requests.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from .repositories import Blob, Refusal, Repository

# As on the Hub, larger files go through the large-file protocol; so does every weight file.
LARGE = 10_000_000


@dataclass
class Fault:
    """Makes requests fail.

    Args:
        pattern: Of `METHOD /path`.
        status: The answer; None drops the connection without one.
        times: How often.
        done: Do what is asked before failing, as when only the answer is lost.
        retry_after: Seconds that the answer asks to wait.
    """

    pattern: str
    status: int | None = None
    times: int = 1
    done: bool = False
    retry_after: int | None = None


class HubServer(ThreadingHTTPServer):
    """The server: `users` by token, `repositories` by kind and name, `requests` as they came, `faults` to come."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.users = {"hf_you": "you", "hf_reader": "reader"}
        self.clear()

    def clear(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.tokens: set[str | None] = set()
        self.faults: list[Fault] = []

    def __enter__(self) -> HubServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def count(self, pattern: str) -> int:
        """How many requests matched a pattern."""
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    def repository(self, name: str, kind: str = "models") -> Repository:
        return self.repositories[kind, name]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is not an error of the server's."""


class Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def handle_request(self) -> None:
        url = urlsplit(self.path)
        self.url, self.query = unquote(url.path), {key: value[0] for key, value in parse_qs(url.query).items()}
        self.body = self._read_body()
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.user = self.server.users.get(token)
        request = f"{self.command} {self.url}"
        self.server.requests.append(request)
        self.server.tokens.add(token)
        fault = next((f for f in self.server.faults if f.times and re.search(f.pattern, request)), None)
        if fault is None:
            return self._answer()
        fault.times -= 1
        if fault.done:
            self._respond = lambda *args, **kwargs: None
            self._answer()
            del self._respond
        if fault.status is None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        else:
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            self._respond(fault.status, {"error": "an injected fault"}, headers)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_request

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self) -> None:
        method = "GET" if self.command == "HEAD" else self.command
        try:
            for wanted, pattern, answer in ROUTES:
                if wanted == method and (match := re.fullmatch(pattern, self.url)):
                    return answer(self, **match.groupdict())
            raise Refusal(404, f"no such page: {self.url}", "EntryNotFound")
        except Refusal as refusal:
            headers = {"X-Error-Message": str(refusal)} | ({"X-Error-Code": refusal.code} if refusal.code else {})
            self._respond(refusal.status, {"error": str(refusal)}, headers)
        except (KeyError, ValueError) as error:  # a mistake in this file: shown where the client says what it got
            self._respond(500, {"error": f"the test's server is wrong: {error!r}"})

    def _respond(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _find(self, kind: str | None, name: str, write: bool = False) -> Repository:
        repository = self.server.repositories.get((kind or "models", name))
        if repository is None or (repository.private and self.user != name.partition("/")[0]):
            raise Refusal(404 if self.user else 401, "Repository not found", "RepoNotFound")
        if write:
            self._require_owner(name.partition("/")[0])
        return repository

    def _require_owner(self, namespace: str) -> None:
        if self.user is None:
            raise Refusal(401, "Invalid username or password.")
        if self.user != namespace:
            raise Refusal(403, f"You don't have the rights to write under the namespace {namespace!r}.")

    def whoami(self) -> None:
        if self.user is None:
            raise Refusal(401, "Invalid username or password.")
        self._respond(200, {"type": "user", "name": self.user, "orgs": []})

    def create(self) -> None:
        wanted = json.loads(self.body)
        namespace, kind = wanted["organization"] or self.user, f"{wanted.get('type', 'model')}s"
        self._require_owner(namespace)
        name = f"{namespace}/{wanted['name']}"
        prefix = "" if kind == "models" else f"{kind}/"
        found = {"url": f"{self.server.endpoint}/{prefix}{name}", "name": name}
        if (kind, name) in self.server.repositories:
            return self._respond(409, {"error": "You already created this repo", **found})
        private = wanted.get("visibility") == "private"
        self.server.repositories[kind, name] = Repository(kind, name, private)
        self._respond(200, found)

    def branch(self, kind: str, name: str, revision: str) -> None:
        start = json.loads(self.body).get("startingPoint", "main")
        self._find(kind, name, write=True).branch(revision, start)
        self._respond(200, {})

    def preupload(self, kind: str, name: str, revision: str) -> None:
        files = self._find(kind, name, write="create_pr" not in self.query).files(revision)
        answers = []
        for file in json.loads(self.body)["files"]:
            is_large = file["size"] > LARGE or file["path"].endswith((".safetensors", ".parquet"))
            known = {"oid": files[file["path"]].etag} if file["path"] in files else {}
            mode = "lfs" if is_large else "regular"
            answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, **known})
        self._respond(200, {"files": answers})

    def batch(self, kind: str | None, name: str) -> None:
        self._find(kind, name)
        objects = [dict(wanted) for wanted in json.loads(self.body)["objects"]]
        for wanted in objects:
            if wanted["oid"] not in self.server.large:
                actions = {"upload": "large", "verify": "verify"}
                links = {
                    key: {"href": f"{self.server.endpoint}/{folder}/{wanted['oid']}"}
                    for key, folder in actions.items()
                }
                wanted["actions"] = links
        self._respond(200, {"transfer": "basic", "objects": objects})

    def upload(self, oid: str) -> None:
        if Blob(self.body, True).sha256 != oid:
            raise Refusal(400, "the content is not what its digest says")
        self.server.large[oid] = self.body
        self._respond(200, b"")

    def verify(self, oid: str) -> None:
        if oid not in self.server.large:
            raise Refusal(404, "not uploaded")
        self._respond(200, {})

    def commit(self, kind: str, name: str, revision: str) -> None:
        asks_for_review = "create_pr" in self.query
        repository = self._find(kind, name, write=not asks_for_review)
        lines = [json.loads(line) for line in self.body.splitlines()]
        review = {}
        if asks_for_review:
            request = repository.open_pull_request(revision, lines[0]["value"]["summary"], self.user)
            revision = f"refs/pr/{request['num']}"
            review = {"pullRequestUrl": f"{self.server.endpoint}/{name}/discussions/{request['num']}"}
        sha = repository.commit(revision, lines, self.server.large)
        address = f"{self.server.endpoint}/{name}/commit/{sha}"
        self._respond(200, {"success": True, "commitOid": sha, "commitUrl": address, **review})

    def info(self, kind: str, name: str, revision: str = "main") -> None:
        self._respond(200, self._find(kind, name).describe(revision))

    def tree(self, kind: str, name: str, revision: str, folder: str | None = None) -> None:
        recursive = self.query.get("recursive", "").lower() == "true"
        self._respond(200, self._find(kind, name).entries(revision, (folder or "").strip("/"), recursive))

    def paths_info(self, kind: str, name: str, revision: str) -> None:
        repository = self._find(kind, name)
        files = repository.files(revision)
        try:
            paths = json.loads(self.body)["paths"]
        except ValueError:
            paths = parse_qs(self.body.decode())["paths"]
        folders = {path.rpartition("/")[0] for path in files}
        self._respond(
            200,
            [repository.entry(path, files[path]) for path in paths if path in files]
            + [{"type": "directory", "path": path, "oid": "0" * 40} for path in paths if path in folders],
        )

    def refs(self, kind: str, name: str) -> None:
        heads = self._find(kind, name).heads.items()
        branches = [{"name": head, "ref": f"refs/heads/{head}", "targetCommit": sha} for head, sha in heads]
        self._respond(200, {"branches": branches, "converts": [], "tags": []})

    def discussions(self, kind: str, name: str) -> None:
        found = self._find(kind, name).pull_requests
        found = [one for one in found if one["author"]["name"] == self.query.get("author", one["author"]["name"])]
        self._respond(200, {"discussions": found, "count": len(found), "start": 0})

    def validate(self) -> None:
        content = json.loads(self.body)["content"]
        metadata = yaml.safe_load(content.split("---", 2)[1]) if content.startswith("---") else {}
        errors = [] if isinstance(metadata, dict) else [{"message": "the metadata must be an object"}]
        self._respond(400 if errors else 200, {"errors": errors, "warnings": []})

    def resolve(self, kind: str | None, name: str, revision: str, path: str) -> None:
        repository = self._find(kind, name)
        sha, blob = repository.sha(revision), repository.files(revision).get(path)
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if blob is None:
            message = f"{path} does not exist"
            return self._respond(404, {"error": message}, headers | {"X-Error-Code": "EntryNotFound"})
        if blob.is_large:
            headers |= {"X-Linked-Etag": f'"{blob.etag}"', "X-Linked-Size": str(len(blob.content))}
        self._send_range(blob.content, headers | {"ETag": f'"{blob.etag}"'})

    def _send_range(self, content: bytes, headers: dict[str, str]) -> None:
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self._respond(200, content, headers)
        first, last = wanted.groups()
        start = int(first) if first else len(content) - int(last)
        end = min(int(last) if first and last else len(content) - 1, len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
        self._respond(206, content[start : end + 1], headers)


API = r"/api/(?P<kind>models|datasets|spaces)/(?P<name>[^/]+/[^/]+)"
PAGE = r"/(?:(?P<kind>datasets|spaces)/)?(?P<name>[^/]+/[^/]+?)"
# A branch, a commit, or a pull request.
REVISION = r"(?P<revision>refs/[^/]+/[^/]+|[^/]+)"
ROUTES = [
    ("GET", r"/api/whoami-v2", Handler.whoami),
    ("POST", r"/api/repos/create", Handler.create),
    ("POST", r"/api/validate-yaml", Handler.validate),
    ("POST", rf"{API}/branch/(?P<revision>.+)", Handler.branch),
    ("POST", rf"{API}/preupload/{REVISION}", Handler.preupload),
    ("POST", rf"{PAGE}\.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", r"/large/(?P<oid>\w+)", Handler.upload),
    ("POST", r"/verify/(?P<oid>\w+)", Handler.verify),
    ("POST", rf"{API}/commit/{REVISION}", Handler.commit),
    ("GET", API, Handler.info),
    ("GET", rf"{API}/revision/{REVISION}", Handler.info),
    ("GET", rf"{API}/tree/{REVISION}(?P<folder>/.*)?", Handler.tree),
    ("POST", rf"{API}/paths-info/{REVISION}", Handler.paths_info),
    ("GET", rf"{API}/refs", Handler.refs),
    ("GET", rf"{API}/discussions", Handler.discussions),
    ("GET", rf"{PAGE}/resolve/{REVISION}/(?P<path>.+)", Handler.resolve),
]
