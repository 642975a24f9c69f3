"""Models and datasets on the Hugging Face hub: their names, downloads and uploads, and its errors as sentences."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.base.optional import optional_library

Kind = Literal["model", "dataset"]
#: Says by its config.json and what is known of the SHA-256 of its files whether a model on the hub is an export.
IsExport = Callable[[Path, Mapping[str, str]], bool]

#: Seconds until a hub that does not answer counts as unreachable.
PATIENCE = 10.0
_PART = r"[A-Za-z0-9_][\w.-]*"
_NAME = re.compile(rf"(?P<name>{_PART}/{_PART})(?:@(?P<revision>[\w][\w./-]*))?", re.ASCII)
# What ends in one of these is a file.
_FILES = (*(".pt", ".model", ".git", ".jsonl", ".json", ".txt", ".bin", ".safetensors"), *(".tar.gz", ".tgz", ".tar"))
_CONFIG = "config.json"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".onnx")


class HubName(NamedTuple):
    """A model on the hub."""

    name: str  # OWNER/NAME
    revision: str | None = None  # a branch, a tag or a commit; None for the main branch

    def __str__(self) -> str:
        """OWNER/NAME, or OWNER/NAME@REVISION."""
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def hub_name(place: str | Path) -> HubName | None:
    """Return what a place names on the hub, unless it is a path that exists.

    A name without a revision may be a mistyped path, and is no reason to ask the hub, if its folder exists.
    """
    found = parsed(str(place))
    is_path = found is not None and found.revision is None and Path(found.name).parent.exists()
    return None if is_path or Path(place).exists() else found


def absent(place: str | Path) -> str:
    """Return the clause that a place does not exist, and how to name the model on the hub that may be meant."""
    text = str(place)
    if (found := parsed(text)) is not None:
        folder, name = found.name.split("/")
        return f"does not exist: the folder {folder} here holds no {name}; the hub's is {found.name}@main"
    if re.fullmatch(_PART, text, re.ASCII) and not text.endswith(_FILES):
        return "does not exist; on the hub, models are called OWNER/NAME"
    return "does not exist"


def when_damaged(path: Path) -> str:
    """Return the clause of what to do about a damaged file in the hub's cache; "" of any other file."""
    above = {folder.parent.name: folder.parents[1] for folder in path.parents[:-2]}
    found = above.get("snapshots")
    return "" if found is None or "--" not in found.name else f"; remove {found} to download it again"


def parsed(text: str) -> HubName | None:
    """Return what OWNER/NAME or OWNER/NAME@REVISION names; None for any other text."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    name = found["name"]
    if len(name) > 96 or "--" in name or ".." in name or name.endswith((".", "-", *_FILES)):
        return None
    return HubName(name, found["revision"])


def fetch(name: HubName, patterns: Sequence[str], commit: str | None = None, kind: Kind = "model") -> Path:
    """Download files of a model or a dataset, or find them in the cache; return their folder (`commit_of`).

    The cache is the hub's own (`HF_HOME`). Where the hub cannot be reached, its copy is taken, and a line says so. A
    branch may have moved on since the ``commit`` of what was fetched before; None is the newest of the revision.
    """
    hub = _library(f"{name} does not exist here, and a {kind} of this name on the hub")
    api, revision, about, unreachable = hub.HfApi(), commit or name.revision, None, None
    try:
        with _as_sentences(str(name)):
            # The download itself has no limit of time until it has found the files.
            about = api.repo_info(name.name, revision=revision, repo_type=kind, timeout=PATIENCE)
    except _UnreachableError as error:
        unreachable = str(error)
    try:
        with _as_sentences(str(name)):
            if about is None:
                whole = {"repo_type": kind, "revision": revision, "allow_patterns": list(patterns)}
                folder = Path(hub.snapshot_download(name.name, **whole, local_files_only=True))
            else:
                folder = _downloaded(hub, name.name, about, revision, patterns, kind)
    except _UnreachableError as error:
        if unreachable is None:
            raise UserError(f"The download of {name} failed: {error}; run the same command to resume.") from None
        held = "is not on this machine" if commit is None else "is not whole in the cache"
        raise UserError(f"{name} {held}, and the hub at {api.endpoint} cannot be reached: {unreachable}.") from None
    if unreachable is not None:
        _say_once(f"The hub cannot be reached: the copy of {name} in the cache is used, commit {commit_of(folder)}.")
    return folder


def commit_of(folder: Path) -> str:
    """Return the commit of a folder that `fetch` returned: the cache of the hub calls folders by it."""
    return folder.name


def _downloaded(hub: Any, name: str, about: Any, revision: str | None, patterns: Sequence[str], kind: Kind) -> Path:
    """Download files one after the other, since threads would not end on Ctrl-C; return their folder."""
    place: dict[str, Any] = {"repo_type": kind, "revision": revision, "endpoint": hub.HfApi().endpoint}
    folder: Path | None = None
    # By the name that was asked for, under which it is sought without network: the hub may know another one.
    for file in hub.utils.filter_repo_objects(
        [each.rfilename for each in about.siblings], allow_patterns=list(patterns)
    ):
        folder = Path(hub.hf_hub_download(name, file, **place)).parents[len(Path(file).parts) - 1]
        if commit_of(folder) != about.sha:
            raise _UnreachableError("the hub has another commit than the cache, or stopped to answer")
    return folder or Path(hub.snapshot_download(name, **place, allow_patterns=list(patterns)))


_say_once = cache(note)


def check_upload(name: HubName, is_export: IsExport, *, private: bool) -> bool:
    """Return whether a model exists on the hub, where a new one or an export in its place may be uploaded.

    A UserError says that there is no token or no right, that the hub cannot be reached, or that the model is public and
    must not be, or is no export.
    """
    hub = _library()
    if hub.get_token() is None:
        raise UserError("The hub must know who you are: run `hf auth login`, or set HF_TOKEN.")
    api = hub.HfApi()
    try:
        with _as_sentences(name.name, "write to"):
            exists: bool = api.repo_exists(name.name)
            if exists:
                _check_replaced(api, name, is_export, private)
    except _UnreachableError as error:
        raise UserError(f"The hub at {api.endpoint} cannot be reached: {error}; nothing was uploaded.") from None
    return exists


def upload(folder: Path, name: HubName, files: Sequence[str], is_export: IsExport, *, private: bool) -> str:
    """Upload files of a folder in one commit, and return the address of the model, which is made if there is none.

    What the folder lacks of ``files`` is removed on the hub. A model that exists must be an export. The revision is a
    branch, and made if there is none. Errors are those of `check_upload`, and what the hub says of files and card.
    """
    exists = check_upload(name, is_export, private=private)
    api = _library().HfApi()
    try:
        with _as_sentences(name.name, "write to"):
            if not exists:
                api.create_repo(name.name, private=private, exist_ok=True)
            if name.revision is not None:
                api.create_branch(name.name, branch=name.revision, exist_ok=True)
            api.upload_folder(
                repo_id=name.name,
                folder_path=folder,
                revision=name.revision,
                allow_patterns=list(files),
                delete_patterns=list(files),
                commit_message="Upload an export of pyramidions",
            )
    except UserError:
        raise
    except ValueError as error:
        # The library checks the front matter of the card.
        raise UserError(f"The hub refused the model card: {' '.join(str(error).split())}") from None
    except _UnreachableError as error:
        # The hub may have done a part of it, or all.
        raise UserError(f"The upload to {name.name} was interrupted: {error}; run the command again.") from None
    return f"{api.endpoint}/{name.name}" + ("" if name.revision is None else f"/tree/{name.revision}")


def _check_replaced(api: Any, name: HubName, is_export: IsExport, private: bool) -> None:
    """Refuse to replace a model on the hub that is public and must not be, or is no export."""
    if private and not api.model_info(name.name).private:
        raise UserError(f"{name.name} exists on the hub and is public: --private is for new models.")
    try:
        found = api.model_info(name.name, revision=name.revision, files_metadata=True)
    except _library().errors.RevisionNotFoundError:
        return  # A new branch replaces nothing.
    held = {file.rfilename: file for file in found.siblings}
    hashes = {path: file.lfs.sha256 for path, file in held.items() if file.lfs is not None}
    if _CONFIG in held:
        replaceable = is_export(Path(api.hf_hub_download(name.name, _CONFIG, revision=found.sha)), hashes)
    else:
        replaceable = not any(path.endswith(_WEIGHTS) for path in held)
    if not replaceable:
        raise UserError(
            f"{name} exists on the hub and holds a model that `pyramidions export` did not write: give another name."
        )


def _library(user: str = "A model on the hub") -> Any:
    return optional_library("huggingface_hub", user, "errors")


class _UnreachableError(Exception):
    """The hub does not answer; the message is a clause that says why."""


@contextmanager
def _as_sentences(name: str, doing: str = "read") -> Iterator[None]:
    """Turn errors of the library into ours: a `UserError` where the hub refuses, else an `_UnreachableError`."""
    hub = _library()
    errors = hub.errors
    model, _, revision = name.partition("@")
    try:
        yield
    except errors.GatedRepoError:
        raise UserError(
            f"{name} is gated: ask for access at {hub.HfApi().endpoint}/{model}, then run `hf auth login`."
        ) from None
    except errors.RevisionNotFoundError:
        raise UserError(f"{model} has no revision {revision or 'main'} on the hub.") from None
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"{name} exists neither on this machine nor on the hub, or it is private and needs `hf auth login`."
        ) from None
    except errors.OfflineModeIsEnabled:
        raise _UnreachableError("HF_HUB_OFFLINE is set") from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status >= 500:
            raise _UnreachableError(f"its status is {status}") from None
        said = " ".join((error.server_message or error.response.reason_phrase).split()).rstrip(".")
        start = f"The hub does not let you {doing}" if status in (401, 403) else "The hub refused"
        raise UserError(f"{start} {name}: {said} ({status}).") from None
    except errors.LocalEntryNotFoundError:
        raise _UnreachableError("the download was interrupted") from None
    except errors.HfHubHTTPError.__bases__ as error:
        # Its base class covers all network errors of the HTTP library, whichever that is.
        if isinstance(error, OSError) and not isinstance(error, ConnectionError | TimeoutError):
            raise
        raise _UnreachableError(" ".join(str(error).split()) or type(error).__name__) from None
