"""Adds a column to batches with a model that each worker loads itself."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from pyramidions.base.arguments import broken, checked
from pyramidions.base.device import found_device
from pyramidions.base.errors import UserError
from pyramidions.base.parts import load_parts, loaded
from pyramidions.files.hub import hub_name

# The process that imported this; a fork of it has another number.
_IMPORTED_BY = os.getpid()

Model = TypeVar("Model")
#: Columns by name, as lists or as arrays of one value a row.
Batch = Mapping[str, Any]


class BatchMap(ABC, Generic[Model]):
    """Adds a column to a batch by a model, which is read at the first batch and never pickled.

    Args:
        files: the model's size and time of change by file, see `stamps`.
        column: with the documents.
        into: the new column.
        skip_empty: a document without text gets None instead of an error.
        device: of the model.
        beside: further columns that are read, by the argument that names them.
    """

    def __init__(
        self,
        files: Mapping[str, tuple[int, int]],
        column: str,
        into: str,
        skip_empty: bool,
        device: str | None,
        **beside: str | None,
    ) -> None:
        names = {"column": column, **{name: value for name, value in beside.items() if value is not None}}
        if into in names.values():
            raise UserError(f"`into` must be a new column, but {into!r} is read.")
        if device is not None:
            # A GPU may be the workers' only, so that nothing is asked of it here.
            _check_device_name(device)
        self._files = dict(files)
        self._names = names
        self._into = into
        self._skip_empty = skip_empty
        self._device = device
        self._parts = tuple(loaded)
        self._model: Model | None = None

    @checked
    def __call__(self, batch: Batch) -> dict[str, Any]:
        """Return a batch with the new column.

        Args:
            batch: columns by name, of one length: lists, as `datasets.Dataset.map(batched=True)` gives them, or NumPy
                arrays, as `map_batches` of Ray Data does.

        Returns:
            All of its columns and the new one, of the same kind as the documents' column.

        Raises:
            UserError: a column is missing or there already, or holds something else than text; or the model cannot be
                read, or does not fit the options.
        """
        for name, column in self._names.items():
            if column not in batch:
                known = ", ".join(map(repr, batch)) or "none"
                raise UserError(f"`{name}` must be a column of the batch ({known}), but is {column!r}.")
        if self._into in batch:
            raise UserError(f"`into` must be a new column, but the batch has {self._into!r} already.")
        columns = {name: _texts(batch[column], column) for name, column in self._names.items()}
        documents = columns["column"]
        read = [index for index, text in enumerate(documents) if not self._skip_empty or self._can_read(text)]
        found: list[str | None] = [None] * len(documents)
        if read:
            if self._model is None:
                if os.getpid() != _IMPORTED_BY and (torch := sys.modules.get("torch")) is not None:
                    # Workers of `datasets` are forks, where threads of the first process are gone: torch would wait
                    # for them forever.
                    torch.set_num_threads(1)
                self._model = self._load()
            of_read = {name: [texts[index] for index in read] for name, texts in columns.items()}
            for index, text in zip(read, self._results(self._model, of_read), strict=True):
                found[index] = text
        is_array = isinstance(batch[self._names["column"]], np.ndarray)
        return {**batch, self._into: np.array(found, dtype=object) if is_array else found}

    def __getstate__(self) -> dict[str, Any]:
        """Return the options; the model stays here."""
        return {**vars(self), "_model": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the options, in a worker which may not know the parts of the model."""
        vars(self).update(state)
        for folder in self._parts:
            load_parts(folder)

    @abstractmethod
    def _load(self) -> Model:
        """Read the model."""

    @abstractmethod
    def _can_read(self, text: str) -> bool:
        """Whether a document holds what the model needs."""

    @abstractmethod
    def _results(self, model: Model, columns: Mapping[str, list[str]]) -> Iterable[str]:
        """Return the new texts of documents, given the columns by the arguments that name them."""


def _texts(values: Any, column: str) -> list[str]:
    """Return the values of a column; None, a missing text, is an empty one."""
    if (wrong := broken(values, Iterable[str | None]) or broken([*values], list[str | None])) is not None:
        raise UserError(f"The column {column!r} {wrong.said}.")
    # NumPy's strings are a class of their own.
    return ["" if value is None else str(value) for value in values]


def _check_device_name(device: str) -> None:
    import torch

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        # It says what is wrong with the name.
        found_device(device)
        raise
    if kind == "cpu":
        found_device(device)


def stamps(model: str | Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of each file of a model, so that a changed model is not taken for the same.

    Raises:
        UserError: there is nothing at the path, and it names nothing on the hub.
    """
    from pyramidions.pretrained.places import place_of

    if hub_name(model):
        return {}
    return {name: found for file in place_of(model).files() for name, found in stamp(file).items()}


def stamp(file: Path) -> dict[str, tuple[int, int]]:
    """Return the size in bytes of a file and when it was changed, in nanoseconds, by its path."""
    about = file.stat()
    return {str(file): (about.st_size, about.st_mtime_ns)}
