"""Downloads the files of a model or a dataset from the hub, into the cache that all programs share."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.files.hub.client import PATIENCE, UnreachableError, address, as_sentences, library
from pyramidions.files.hub.names import HubName
from pyramidions.files.progress import note

Kind = Literal["model", "dataset"]


class Fetched(NamedTuple):
    """Files of a model or a dataset on this machine.

    Attributes:
        path: of their folder.
        commit: their hash on the hub.
    """

    path: Path
    commit: str


def fetch(name: HubName, patterns: Sequence[str], commit: str | None = None, kind: Kind = "model") -> Fetched:
    """Download files of a model or a dataset, or find them in the cache.

    The cache is the hub's own (`HF_HOME`). Where the hub cannot be reached, its copy is taken, and a line says so.

    Args:
        name: on the hub.
        patterns: of names of files.
        commit: of what was fetched before, since a branch may have moved on; None for the newest of the revision.
        kind: what it is.

    Raises:
        UserError: there is nothing of this name or revision, the hub cannot be reached, or refuses; or the library is
            missing.
    """
    hub = library(f"{name} does not exist here, and a {kind} of this name on the hub")
    api = hub.HfApi(endpoint=address())
    reason = None
    try:
        with as_sentences(str(name)):
            # The download itself has no limit of time until it has found the files.
            api.repo_info(name.name, revision=commit or name.revision, repo_type=kind, timeout=PATIENCE)
    except UnreachableError as error:
        reason = str(error)
    found = _fetched(name, commit or name.revision, patterns, reason, kind)
    if reason is not None:
        _say_once(f"The hub cannot be reached: the copy of {name} in the cache is used, commit {found.commit}.")
    return found


_say_once = cache(note)


def _fetched(
    name: HubName, revision: str | None, patterns: Sequence[str], unreachable: str | None, kind: Kind
) -> Fetched:
    missing = library().errors.LocalEntryNotFoundError
    try:
        with as_sentences(str(name)):
            try:
                folder = Path(
                    library().snapshot_download(
                        name.name,
                        repo_type=kind,
                        revision=revision,
                        allow_patterns=list(patterns),
                        local_files_only=unreachable is not None,
                        endpoint=address(),
                    )
                )
            except missing:
                if unreachable is None:
                    raise
                raise UserError(
                    f"{name} is not on this machine, and the hub at {address()} cannot be reached: {unreachable}."
                ) from None
    except UnreachableError as error:
        raise UserError(f"The download of {name} failed: {error}; run the same command to resume.") from None
    return Fetched(folder, folder.name)
