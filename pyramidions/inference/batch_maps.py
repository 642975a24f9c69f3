"""Summarizers and extractors as maps over batches of columns, for `datasets.Dataset.map` and Ray Data."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from pyramidions.base.arguments import Count, broken, checked
from pyramidions.base.device import found_device
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.parts import load_parts, loaded
from pyramidions.base.reading import Long, check_reading
from pyramidions.data.section_types import section_types as table_of_types
from pyramidions.extract.extraction import extract
from pyramidions.extract.methods import AUTO_METHOD, ORACLE, find_method
from pyramidions.extract.selection import Redundancy
from pyramidions.files.hub import hub_name
from pyramidions.inference.decoding_options import DecodingOptions, SamplingOptions
from pyramidions.inference.extractor import Extractor, Ranked, document_outline
from pyramidions.inference.precision import FLOAT32, PrecisionName
from pyramidions.pretrained.places import place_of
from pyramidions.text.language import Language
from pyramidions.text.text_windows import holds_text
from pyramidions.text.turns import read_outline

# The process that imported this; a fork of it has another number.
_IMPORTED_BY = os.getpid()

#: Columns by name, as lists or as arrays of one value a row.
Batch = Mapping[str, Any]
# Makes the new texts of documents, given the columns by the arguments that name them.
_Results = Callable[[Mapping[str, list[str]]], Iterable[str]]


class _BatchMap(ABC):
    """Adds a column to a batch by a model, which is read at the first batch and never pickled.

    Sizes and times of change of the model's ``files`` are kept, so that a changed model is not taken for the same.
    Further columns that are read, ``beside``, are given by the argument that names them.
    """

    def __init__(
        self, files: Iterable[Path], column: str, into: str, skip_empty: bool, device: str | None, **beside: str | None
    ) -> None:
        names = {"column": column, **{name: value for name, value in beside.items() if value is not None}}
        if into in names.values():
            raise UserError(f"`into` must be a new column, but {into!r} is read.")
        if device is not None:
            _check_device_name(device)
        self._files = {str(file): ((about := file.stat()).st_size, about.st_mtime_ns) for file in files}
        self._names = names
        self._into = into
        self._skip_empty = skip_empty
        self._device = device
        self._parts = tuple(loaded)
        self._results: _Results | None = None

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
            if self._results is None:
                if os.getpid() != _IMPORTED_BY and (torch := sys.modules.get("torch")) is not None:
                    # Workers of `datasets` are forks, where threads of the first process are gone: torch would wait
                    # for them forever.
                    torch.set_num_threads(1)
                self._results = self._load()
            of_read = {name: [texts[index] for index in read] for name, texts in columns.items()}
            for index, text in zip(read, self._results(of_read), strict=True):
                found[index] = text
        is_array = isinstance(batch[self._names["column"]], np.ndarray)
        return {**batch, self._into: np.array(found, dtype=object) if is_array else found}

    def __getstate__(self) -> dict[str, Any]:
        """Return the options; the model stays here."""
        return {**vars(self), "_results": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the options, in a worker which may not know the parts of the model."""
        vars(self).update(state)
        for folder in self._parts:
            load_parts(folder)

    @abstractmethod
    def _load(self) -> _Results:
        """Read the model."""

    @abstractmethod
    def _can_read(self, text: str) -> bool:
        """Whether a document holds what the model needs."""


def _texts(values: Any, column: str) -> list[str]:
    """Return the values of a column; None, a missing text, is an empty one."""
    if (wrong := broken(values, Iterable[str | None]) or broken([*values], list[str | None])) is not None:
        raise UserError(f"The column {column!r} {wrong.said}.")
    # NumPy's strings are a class of their own.
    return ["" if value is None else str(value) for value in values]


def _check_device_name(device: str) -> None:
    import torch

    try:
        # A GPU may be the workers' only, so that nothing is asked of it here.
        is_here = torch.device(device).type == "cpu"
    except (RuntimeError, TypeError):
        is_here = True
    if is_here:
        found_device(device)


def _files_of(model: str | Path) -> list[Path]:
    """Return the files of a model; of one on the hub, none is known here."""
    return [] if hub_name(model) else place_of(model).files()


class SummarizerMap(_BatchMap):
    """Adds the summaries of a trained model to batches of documents.

    Examples:
        >>> from pyramidions import SummarizerMap
        >>> summarize = SummarizerMap("my-summarizer", column="article", beam=4)       # doctest: +SKIP
        >>> dataset = dataset.map(summarize, batched=True, num_proc=2)                  # doctest: +SKIP

    A worker gets the path of the model and the options, and reads the model when its first batch comes; a forked
    worker, as those of ``num_proc`` are, computes in one thread. A sampled summary depends on the place of the
    document in its batch.

    Args:
        model: as in `Summarizer.from_pretrained`. Where its files change, `datasets` computes its cached results anew;
            of a model on the hub it knows the name alone, so give OWNER/NAME@REVISION.
        column: with the documents.
        into: the new column, with the texts of the summaries.
        query_column: with the query of each document, for models that were trained with queries.
        skip_empty: a document without text gets None instead of an error.
        batch_size: documents or parts that the model reads at once.
        long, section_types, select, language: as in `Summarizer.summarize`.
        device, precision: as in `Summarizer`; whether they fit together is checked at the first batch.
        decoding: as in `Summarizer.summarize`; None uses the model's defaults.

    Raises:
        UserError: an argument breaks a rule. What depends on the model, such as the most tokens that it writes, is
            checked at the first batch.
    """

    @checked
    def __init__(
        self,
        model: str | Path,
        *,
        column: str = "text",
        into: str = "summary",
        query_column: str | None = None,
        skip_empty: bool = False,
        batch_size: Count = 8,
        long: Long | None = None,
        section_types: str | Path | None = None,
        select: str | Path | None = None,
        language: str | None = None,
        device: str | None = None,
        precision: PrecisionName = FLOAT32,
        **decoding: Unpack[DecodingOptions],
    ) -> None:
        optional_library("torch", "`SummarizerMap`", extra="torch")
        from pyramidions.inference.search import check_decoding

        files = _files_of(model)
        check_decoding(**decoding)
        if long is not None:
            check_reading(long, section_types, select, language)
        if section_types is not None:
            table_of_types(Path(section_types))
            files.append(Path(section_types))
        if select is not None and (trained := find_method(select, "select", AUTO_METHOD).model) is not None:
            files += _files_of(trained)
        super().__init__(files, column, into, skip_empty, device, query_column=query_column)
        self._precision = precision
        self._path = str(model)
        self._reading = {
            "batch_size": batch_size,
            "long": long,
            "section_types": None if section_types is None else str(section_types),
            "select": None if select is None else str(select),
            "language": None if language is None else Language(language).code,
        }
        self._decoding = {name: value for name, value in sorted(decoding.items()) if name != "sampling"}
        # As plain values: `datasets` makes the key of its cache of them.
        self._sampling = None if (sampling := decoding.get("sampling")) is None else asdict(sampling)

    def _load(self) -> _Results:
        from pyramidions.inference.summarizer import Summarizer

        model = Summarizer.from_pretrained(self._path, self._device, self._precision)
        sampling = None if self._sampling is None else SamplingOptions(**self._sampling)
        options: dict[str, Any] = {**self._decoding, **self._reading, "sampling": sampling}

        def summaries(columns: Mapping[str, list[str]]) -> list[str]:
            found = model.summarize(columns["column"], query=columns.get("query_column"), **options)
            return [summary.text for summary in found]

        return summaries

    def _can_read(self, text: str) -> bool:
        return holds_text(text)


class ExtractorMap(_BatchMap):
    """Adds extracts to batches of documents.

    Examples:
        >>> from pyramidions import ExtractorMap
        >>> extract = ExtractorMap(column="article", words=220)                    # doctest: +SKIP
        >>> dataset = dataset.map(extract, batched=True, num_proc=2)                    # doctest: +SKIP

    A worker gets the method, or the path of a trained extractor, and the options; it reads the model when its first
    batch comes.

    Args:
        method: "auto", "hiporank", "textrank", "lead", "oracle", or where a trained extractor lies, as in `Extractor`.
            Where a trained one changes, `datasets` computes its cached results anew.
        options: of a method.
        column: with the documents.
        into: the new column, with the extracts.
        reference_column: with the summaries that the method "oracle" chooses by.
        query_column: with the query of each document, for models of concepts.
        skip_empty: a document without a sentence gets None instead of an error.
        words, sentences, redundancy: as in `Extractor.extract`.
        language: as in `Extractor`.
        device, precision: of a trained extractor, as in `Extractor`.

    Raises:
        UserError: an argument breaks a rule.
    """

    @checked
    def __init__(
        self,
        method: str | Path = AUTO_METHOD,
        options: Mapping[str, Any] | None = None,
        *,
        column: str = "text",
        into: str = "summary",
        reference_column: str | None = None,
        query_column: str | None = None,
        skip_empty: bool = False,
        words: Count | None = None,
        sentences: Count | None = None,
        redundancy: Redundancy | None = None,
        language: str | None = None,
        device: str | None = None,
        precision: PrecisionName | None = None,
    ) -> None:
        if (str(method) == ORACLE) != (reference_column is not None):
            raise UserError(f"The method {ORACLE!r} and `reference_column` must be given together.")
        found = find_method(method, "method", ORACLE, AUTO_METHOD)
        if query_column is not None and found.concepts is None:
            raise UserError(f"`query_column` is for models of concepts, but the method is {str(method)!r}.")
        is_network = found.network is not None
        if is_network:
            optional_library("torch", "A trained extractor", extra="torch")
            if options:
                raise UserError(
                    f"The method {str(method)!r} has no options, but was given {', '.join(map(repr, options))}."
                )
        # Without a model to read, the rules of any method are those of the extractor.
        checked = Extractor() if is_network else Extractor(method, options, device=device, precision=precision)
        checked.rules(words, sentences, redundancy)
        files = [] if found.model is None else _files_of(found.model)
        beside = {"reference_column": reference_column, "query_column": query_column}
        super().__init__(files, column, into, skip_empty, device, **beside)
        self._precision = precision
        self._method = str(method)
        self._options = dict(options or {})
        self._rules: dict[str, Any] = {"words": words, "sentences": sentences, "redundancy": redundancy}
        self._language = None if language is None else Language(language).code

    def _load(self) -> _Results:
        options, language = self._options, self._language
        model = Extractor(self._method, options, device=self._device, precision=self._precision, language=language)
        rules = model.rules(**self._rules)

        def extracts(columns: Mapping[str, list[str]]) -> list[str]:
            outlines = [document_outline(text, language=language) for text in columns["column"]]
            unset: list[str | None] = [None] * len(outlines)
            queries, references = (columns.get(name, unset) for name in ("query_column", "reference_column"))
            for query in queries:
                model.check_query(query, "query_column")
            scores = model.rank(map(Ranked, outlines, references, queries), rules.budget)
            return [extract(found, each, rules).text for found, each in zip(outlines, scores, strict=True)]

        return extracts

    def _can_read(self, text: str) -> bool:
        return bool(read_outline(text, language=self._language).sentences)
