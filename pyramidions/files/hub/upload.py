"""Uploads an export to the hub."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.files.hub.client import UnreachableError, address, as_sentences, library
from pyramidions.files.hub.names import HubName

_MESSAGE = "Upload an export of pyramidions"  # of the commit
_CONFIG = "config.json"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".onnx")

#: Says by its config.json and what is known of the SHA-256 of its files whether a model on the hub is an export.
IsExport = Callable[[Path, Mapping[str, str]], bool]


def upload(folder: Path, name: HubName, files: Sequence[str], is_export: IsExport, *, private: bool) -> str:
    """Upload files of a folder in one commit; the model is made if there is none.

    Args:
        folder: of the files.
        name: of the model on the hub; its revision is a branch, which is made if there is none.
        files: names of all files that may be in the folder; what it lacks is removed on the hub.
        is_export: a model that exists is replaced only if it is one.
        private: only its owner sees a new model.

    Returns:
        The address of the model.

    Raises:
        UserError: there is no token or no right; the hub cannot be reached, or refuses the card; or the model is public
            and must not be, or is no export.
    """
    hub = library()
    if hub.get_token() is None:
        raise UserError("The hub must know who you are: run `hf auth login`, or set HF_TOKEN.")
    api = hub.HfApi(endpoint=address())
    try:
        with as_sentences(name.name, "write to"):
            exists = api.repo_exists(name.name)
            if exists:
                _check_replaced(api, name, is_export, private)
    except UnreachableError as error:
        raise UserError(f"The hub at {address()} cannot be reached: {error}; nothing was uploaded.") from None
    try:
        with as_sentences(name.name, "write to"):
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
                commit_message=_MESSAGE,
            )
    except UserError:
        raise
    except ValueError as error:
        # The library checks the front matter of the card.
        raise UserError(f"The hub refused the model card: {' '.join(str(error).split())}") from None
    except UnreachableError as error:
        # The hub may have done a part of it, or all.
        raise UserError(f"The upload to {name.name} was interrupted: {error}; run the command again.") from None
    place = f"{address()}/{name.name}"
    return place if name.revision is None else f"{place}/tree/{name.revision}"


def _check_replaced(api: Any, name: HubName, is_export: IsExport, private: bool) -> None:
    """Refuse to replace a model on the hub that is public and must not be, or is no export."""
    if private and not api.model_info(name.name).private:
        raise UserError(f"{name.name} exists on the hub and is public: --private is for new models.")
    try:
        found = api.model_info(name.name, revision=name.revision, files_metadata=True)
    except library().errors.RevisionNotFoundError:
        return  # A new branch replaces nothing.
    held = {file.rfilename: file for file in found.siblings}
    hashes = {path: file.lfs.sha256 for path, file in held.items() if file.lfs is not None}
    if _CONFIG in held:
        replaceable = is_export(Path(api.hf_hub_download(name.name, _CONFIG, revision=found.sha)), hashes)
    else:
        replaceable = not any(path.endswith(_WEIGHTS) for path in held)
    if not replaceable:
        raise UserError(
            f"{name} exists on the hub and holds a model that `pyramidions export` did not write: give another NAME."
        )
