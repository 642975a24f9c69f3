"""Summarizers and extractors as maps over batches of columns, for `datasets.Dataset.map` and Ray Data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pyramidions.base.arguments import Count, checked
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.base.reading import Long, check_reading
from pyramidions.data.section_types import section_types as table_of_types
from pyramidions.extract.extraction import extract
from pyramidions.extract.methods import ORACLE, find_method
from pyramidions.extract.selection import Redundancy
from pyramidions.inference.batch_map import BatchMap, stamp, stamps
from pyramidions.inference.decoding_options import DecodingOptions, SamplingOptions
from pyramidions.inference.extractor import Extractor, Ranked, document_outline
from pyramidions.inference.precision import FLOAT32, PrecisionName
from pyramidions.text.language import Language
from pyramidions.text.text_windows import holds_text
from pyramidions.text.turns import read_outline

if TYPE_CHECKING:
    from pyramidions.inference.summarizer import Summarizer


class SummarizerMap(BatchMap["Summarizer"]):
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

        files = stamps(model)
        check_decoding(**decoding)
        if long is not None:
            check_reading(long, section_types, select, language)
        if section_types is not None:
            table_of_types(Path(section_types))
            files |= stamp(Path(section_types))
        if select is not None and (trained := find_method(select, "select").model) is not None:
            files |= stamps(trained)
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

    def _load(self) -> "Summarizer":
        from pyramidions.inference.summarizer import Summarizer

        return Summarizer.from_pretrained(self._path, self._device, self._precision)

    def _can_read(self, text: str) -> bool:
        return holds_text(text)

    def _results(self, model: "Summarizer", columns: Mapping[str, list[str]]) -> Iterable[str]:
        sampling = None if self._sampling is None else SamplingOptions(**self._sampling)
        queries = columns.get("query_column")
        options: dict[str, Any] = {**self._decoding, **self._reading}
        found = model.summarize(columns["column"], query=queries, sampling=sampling, **options)
        return [summary.text for summary in found]


class ExtractorMap(BatchMap[Extractor]):
    """Adds extracts to batches of documents.

    Examples:
        >>> from pyramidions import ExtractorMap
        >>> extract = ExtractorMap("hiporank", column="article", words=220)            # doctest: +SKIP
        >>> dataset = dataset.map(extract, batched=True, num_proc=2)                    # doctest: +SKIP

    A worker gets the method, or the path of a trained extractor, and the options; it reads the model when its first
    batch comes.

    Args:
        method: "hiporank", "textrank", "lead", "oracle", or where a trained extractor lies, as in `Extractor`. Where a
            trained one changes, `datasets` computes its cached results anew.
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
        method: str | Path = "hiporank",
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
        found = find_method(method, "method", ORACLE)
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
        files = {} if found.model is None else stamps(found.model)
        beside = {"reference_column": reference_column, "query_column": query_column}
        super().__init__(files, column, into, skip_empty, device, **beside)
        self._precision = precision
        self._method = str(method)
        self._options = dict(options or {})
        self._rules = {"words": words, "sentences": sentences, "redundancy": redundancy}
        self._language = None if language is None else Language(language).code

    def _load(self) -> Extractor:
        return Extractor(
            self._method, self._options, device=self._device, precision=self._precision, language=self._language
        )

    def _can_read(self, text: str) -> bool:
        return bool(read_outline(text, language=self._language).sentences)

    def _results(self, model: Extractor, columns: Mapping[str, list[str]]) -> Iterable[str]:
        rules: dict[str, Any] = self._rules
        selection = model.rules(**rules)
        outlines = [document_outline(text, language=self._language) for text in columns["column"]]
        unset: Sequence[str | None] = [None] * len(outlines)
        queries = columns.get("query_column", unset)
        for query in queries:
            model.check_query(query, "query_column")
        references = columns.get("reference_column", unset)
        documents = map(Ranked, outlines, references, queries)
        scores = model.rank(documents, selection.budget)
        return [extract(found, each, selection).text for found, each in zip(outlines, scores, strict=True)]
