"""Makes the inputs that a case names: a whole one with something wrong, or a file of certain bytes."""

import gzip
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import torch
from small_language_models import saved


def changed(values: Any, path: str, value: Any) -> Any:
    """Return nested values in which the one at a path ("model.embed_dim") is another.

    "(missing)" stands for none at all, "(deep)" for brackets within brackets, "(tensor)" for two numbers.
    """
    if not path:
        return {"(deep)": deep(), "(tensor)": torch.zeros(2)}.get(str(value), value)
    name, _, rest = path.partition(".")
    if value == "(missing)" and not rest:
        return {key: kept for key, kept in values.items() if key != name}
    return {**(values or {}), name: changed((values or {}).get(name), rest, value)}


def deep(levels: int = 100_000) -> str:
    """Return brackets within brackets, more than a reader can follow."""
    return levels * "["


def damage(path: Path, how: str) -> None:
    """Damage one file of a folder."""
    content = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if how == "folder":
        path.mkdir()
    elif how != "missing":
        middle = len(content) // 2
        path.write_bytes(
            {
                "empty": b"",
                "truncated": content[:middle],
                "text": b"This is a text.\n",
                "deep": deep().encode(),
                "latin-1": "café\n".encode("latin-1"),
                # More bytes than stand between two records of a checkpoint, where they would make no difference.
                "flipped": content[:middle]
                + bytes(byte ^ 1 for byte in content[middle : middle + 128])
                + content[middle + 128 :],
                "all ones": b"\xff" * len(content),
            }[how]
        )


def with_json(of: str, file: str) -> Callable[..., None]:
    """Return what makes a whole folder anew, in which one value of a file is another."""

    def make(path: Path, whole: Path, *change: Any) -> None:
        shutil.copytree(whole / of, path)
        about = json.loads((path / file).read_text())
        (path / file).write_text(json.dumps(changed(about, *change)))

    return make


def with_damage(of: str) -> Callable[..., None]:
    """Return what makes a whole folder anew, of which one file is damaged."""

    def make(path: Path, whole: Path, name: str, how: str) -> None:
        shutil.copytree(whole / of, path)
        damage(path / name, how)

    return make


def checkpoint(path: Path, whole: Path, *change: Any) -> None:
    """Make a checkpoint of which one value is another."""
    torch.save(changed(torch.load(whole / "whole.pt", weights_only=True), *change), path)


WEIGHT = "decoder.core.layers.0.sublayers.feed_forward.function.fc1.bias"
WEIGHTS: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
    "nan": lambda weights: weights[WEIGHT].fill_(float("nan")),
    "infinite": lambda weights: weights[WEIGHT].fill_(float("inf")),
    "too large": lambda weights: weights.update({WEIGHT: weights[WEIGHT].double().fill_(1e300)}),
    "complex": lambda weights: weights.update({WEIGHT: weights[WEIGHT] + 1j}),
    "sparse": lambda weights: weights.update({WEIGHT: weights[WEIGHT].to_sparse()}),
    "whole numbers": lambda weights: weights.update({WEIGHT: weights[WEIGHT].long()}),
    "missing": lambda weights: weights.pop(WEIGHT),
    "unknown": lambda weights: weights.update({"encoder.core.extra": torch.ones(1)}),
    "of another shape": lambda weights: weights.update({WEIGHT: torch.ones(3)}),
    "named by a number": lambda weights: weights.update({7: torch.ones(1)}),  # type: ignore[dict-item]
    "a list": lambda weights: weights.update({WEIGHT: [1.0]}),  # type: ignore[dict-item]
}


def weights(path: Path, whole: Path, kind: str) -> None:
    """Make a checkpoint of which one weight is wrong."""
    state = torch.load(whole / "whole.pt", weights_only=True)
    WEIGHTS[kind](state["model"])
    torch.save(state, path)


def damaged(path: Path, whole: Path, of: str, how: str) -> None:
    """Make a whole input's file anew, damaged."""
    shutil.copy(whole / of, path)
    damage(path, how)


def config(path: Path, whole: Path, text: str) -> None:
    """Make a folder of configs beside base.yaml, with one row of this text."""
    configs = Path(__file__).parents[2] / "configs"
    (path / "own").mkdir(parents=True)
    shutil.copy(configs / "base.yaml", path)
    shutil.copy(configs / "paper.csv", path)
    (path / "own" / "row.yaml").write_text(f"# @package _global_\n{text}", errors="surrogateescape")


def text(path: Path, whole: Path, content: str) -> None:
    """Write a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", errors="surrogatepass")


def bomb() -> bytes:
    """Return a zip archive that unpacks to a thousand times its size."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(2**25))
    return file.getvalue()


def packed_bomb() -> bytes:
    """Return a .tar.gz whose paper is a thousand times its size."""
    file, member = BytesIO(), tarfile.TarInfo("paper.tex")
    member.size = 2**25
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.addfile(member, BytesIO(bytes(2**25)))
    return file.getvalue()


def content(path: Path, whole: Path, kind: str) -> None:
    """Write a file that holds something else than text."""
    path.write_bytes(
        {
            "latin-1": "Das Café.\n".encode("latin-1"),
            "cut utf-16": "Das Café.\n".encode("utf-16")[:-1],
            "zeros": bytes(1000),
            "packed blank lines": gzip.compress(b"\n" * 1000),
            "bomb": bomb(),
            "packed bomb": packed_bomb(),
            "deep": deep().encode(),
            "deep object": (20_000 * '{"a":').encode(),
            "many digits": b'{"id": "a", "summary": ' + 5000 * b"1" + b"}\n",
        }[kind]
    )


def folder(path: Path, whole: Path, *files: str) -> None:
    """Make a folder with empty files."""
    path.mkdir()
    for name in files:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).touch()


def files(path: Path, whole: Path, contents: dict[str, str]) -> None:
    """Make a folder with files of these texts."""
    path.mkdir()
    for name, content in contents.items():
        (path / name).write_text(content)


def pipe(path: Path, whole: Path) -> None:
    """Make a pipe that nobody writes to."""
    os.mkfifo(path)


def link(path: Path, whole: Path, target: str) -> None:
    """Make a link, which may lead to nothing or back to itself."""
    path.symlink_to(target)


def pickled(path: Path, whole: Path) -> None:
    """Make a checkpoint that would run code if it were trusted."""
    torch.save({"model": {}, "cfg": Code()}, path)


class Code:
    """Removes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.remove, ("paper.txt",)


def language_model(path: Path, whole: Path, kind: str, *change: Any) -> None:
    """Make a checkpoint of a language model of characters; one value may be another."""
    saved(path.parent, kind).rename(path)
    if change:
        torch.save(changed(torch.load(path, weights_only=True), *change), path)


MAKERS: dict[str, Callable[..., None]] = {
    "export": with_json("export", "config.json"),
    "export file": with_damage("export"),
    "checkpoint": checkpoint,
    "weights": weights,
    "damaged": damaged,
    "data": with_damage("data"),
    "manifest": with_json("data", "manifest.json"),
    "config": config,
    "text": text,
    "content": content,
    "folder": folder,
    "files": files,
    "pipe": pipe,
    "link": link,
    "pickled": pickled,
    "language model": language_model,
}
