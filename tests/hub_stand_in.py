"""A small stand-in of the Hugging Face hub: it answers what huggingface_hub asks to download and to upload models."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import huggingface_hub.constants
import pytest

TOKEN = "hf_of_the_tests"

Files = dict[str, bytes]


@dataclass
class Repository:
    """A model: files by commit, and commits by branch or tag."""

    commits: dict[str, Files] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False

    def commit(self, files: Files, branch: str = "main") -> str:
        """Add a commit with exactly these files; return its hash."""
        content = b"".join(name.encode() + value for name, value in sorted(files.items()))
        sha = hashlib.sha1(content + branch.encode() + str(len(self.commits)).encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.refs[branch] = sha
        return sha

    def files(self, revision: str) -> tuple[str, Files] | None:
        """Return the hash and the files of a branch, a tag or a commit."""
        sha = self.refs.get(revision, revision)
        return (sha, self.commits[sha]) if sha in self.commits else None


@dataclass
class Hub:
    """The stand-in; `asked` lists the requests, `down` is a status that answers all of them, `no_commits` commits."""

    models: dict[str, Repository] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    address: str = ""
    down: int = 0
    no_commits: int = 0
    writers: tuple[str, ...] = (TOKEN,)

    def add(self, name: str, files: Files, **about: Any) -> str:
        """Add a model, or a dataset as datasets/OWNER/NAME; return its first commit."""
        self.models[name] = Repository(**about)
        return self.models[name].commit(files)

    def downloaded(self) -> set[str]:
        """Return the names of the files that were asked for."""
        return {path.rpartition("/")[2] for method, path in map(str.split, self.asked) if "/resolve/" in path}


def _stored(name: str, content: bytes) -> dict[str, Any]:
    """Return what the hub knows of a file of weights, which it stores apart."""
    if not name.endswith(".safetensors"):
        return {}
    about = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 100}
    return {"lfs": about, "size": len(content)}


class _RefusedError(Exception):
    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(status)
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer(self._read)

    do_HEAD = do_GET  # noqa: N815, the name that the server calls

    def do_POST(self) -> None:
        self._answer(self._write)

    def _answer(self, work: Any) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        url = urlsplit(self.path)
        self.hub.asked.append(f"{self.command} {url.path}")
        try:
            down = self.hub.down or ("/commit/" in url.path and self.hub.no_commits)
            if down:
                raise _RefusedError(down)
            found, headers = work([unquote(part) for part in url.path.strip("/").split("/")], body, parse_qs(url.query))
            status = 200
        except _RefusedError as error:
            status, found = error.status, json.dumps({"error": error.message}).encode()
            headers = {"X-Error-Code": error.code, "X-Error-Message": error.message}
        self.send_response(status)
        for name, value in {"Content-Length": str(len(found)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found)

    @property
    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def _model(self, owner: str, name: str) -> Repository:
        found = self.hub.models.get(name if name.startswith("datasets/") else f"{owner}/{name}")
        if found is None or (found.private and self._token not in self.hub.writers):
            raise _RefusedError(401, "RepoNotFound", "Repository not found")
        return found

    def _read(self, path: list[str], body: bytes, query: dict[str, list[str]]) -> tuple[bytes, dict[str, str]]:
        match path:
            case ["api", "datasets", owner, name, *rest]:
                return self._read(["api", "models", owner, f"datasets/{owner}/{name}", *rest], body, query)
            case ["datasets", owner, name, "resolve", revision, *file]:
                return self._read([owner, f"datasets/{owner}/{name}", "resolve", revision, "/".join(file)], body, query)
            case ["api", "models", owner, name, "tree", revision]:
                _, files = self._files(self._model(owner, name), revision)
                entries = [
                    {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for file, content in files.items()
                ]
                return json.dumps(entries).encode(), {"Content-Type": "application/json"}
            case ["api", "models", owner, name, *rest]:
                model = self._model(owner, name)
                sha, files = self._files(model, rest[1] if rest else "main")
                about = {"id": f"{owner}/{name}", "modelId": f"{owner}/{name}", "sha": sha, "private": model.private}
                siblings = [{"rfilename": file, **_stored(file, content)} for file, content in files.items()]
                return json.dumps({**about, "tags": [], "siblings": siblings}).encode(), {}
            case [owner, name, "resolve", revision, file]:
                model = self._model(owner, name)
                sha, files = self._files(model, revision)
                if model.gated:
                    raise _RefusedError(403, "GatedRepo", "Access to this model is restricted")
                if file not in files:
                    raise _RefusedError(404, "EntryNotFound", "Entry not found")
                etag = f'"{hashlib.sha1(files[file]).hexdigest()}"'
                return files[file], {"ETag": etag, "X-Repo-Commit": sha}
        raise _RefusedError(404, "", "Not found")

    def _files(self, model: Repository, revision: str) -> tuple[str, Files]:
        found = model.files(revision)
        if found is None:
            raise _RefusedError(404, "RevisionNotFound", "Invalid rev id")
        return found

    def _write(self, path: list[str], body: bytes, query: dict[str, list[str]]) -> tuple[bytes, dict[str, str]]:
        if path == ["api", "validate-yaml"]:
            return b'{"errors": [], "warnings": []}', {}
        if self._token not in self.hub.writers:
            raise _RefusedError(403, "", "You don't have the rights to do this")
        match path:
            case ["api", "repos", "create"]:
                about = json.loads(body)
                name = f"{about['organization']}/{about['name']}"
                private = about.get("visibility") == "private" or bool(about.get("private"))
                self.hub.models[name] = Repository(private=private)
                self.hub.models[name].commit({".gitattributes": b""})
                return json.dumps({"url": f"{self.hub.address}/{name}", "name": name}).encode(), {}
            case ["api", "models", owner, name, "branch", branch]:
                model = self._model(owner, name)
                if branch in model.refs:
                    raise _RefusedError(409, "", "Reference already exists")
                model.refs[branch] = model.refs["main"]
                return b"", {}
            case ["api", "models", _, _, "preupload", _]:
                asked = [file["path"] for file in json.loads(body)["files"]]
                modes = [{"path": file, "uploadMode": "regular", "shouldIgnore": False} for file in asked]
                return json.dumps({"files": modes}).encode(), {}
            case ["api", "models", owner, name, "commit", branch]:
                model = self._model(owner, name)
                files = dict(self._files(model, branch)[1])
                for line in map(json.loads, body.splitlines()):
                    if line["key"] == "file":
                        files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
                    elif line["key"] == "deletedFile":
                        del files[line["value"]["path"]]
                sha = model.commit(files, branch)
                url = f"{self.hub.address}/{owner}/{name}/commit/{sha}"
                return json.dumps({"success": True, "commitOid": sha, "commitUrl": url}).encode(), {}
        raise _RefusedError(404, "", "Not found")


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Run a stand-in in threads of this process."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def patched_hub(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Hub]:
    """Run a stand-in that huggingface_hub takes for the hub, with a cache of its own in a folder."""
    with running_hub() as found:
        # What HF_ENDPOINT, HF_HUB_CACHE and HF_TOKEN_PATH set when the library is imported.
        for name, value in {
            "ENDPOINT": found.address,
            "HUGGINGFACE_CO_URL_TEMPLATE": found.address + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_CACHE": str(folder / "cache"),
            "HF_TOKEN_PATH": str(folder / "token"),
            "HF_HUB_DISABLE_XET": True,
        }.items():
            monkeypatch.setattr(huggingface_hub.constants, name, value)
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        yield found
