"""Summaries of texts, in a few lines of Python."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, repeat
from pathlib import Path
from typing import Unpack

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pyramidions.base.arguments import Count, checked
from pyramidions.base.device import Device, found_device
from pyramidions.base.errors import UserError
from pyramidions.base.reading import Long, check_reading
from pyramidions.data.section_types import SectionTypes
from pyramidions.extract.methods import AUTO_METHOD, HIPORANK
from pyramidions.files.parallel import chunks
from pyramidions.inference.decoding_options import DecodingOptions
from pyramidions.inference.explanation import Explanation, trace
from pyramidions.inference.line_breaks import LineBreaks
from pyramidions.inference.long_documents import LongReader, Part, joined, merge
from pyramidions.inference.precision import FLOAT32, PrecisionName, found_precision, in_precision
from pyramidions.inference.reader import OnRead, Reader, TokenizedText, check_queries
from pyramidions.inference.search import Bounds, DecodingSettings, decoding_settings
from pyramidions.inference.selection_model import selecting
from pyramidions.inference.summary import Summary
from pyramidions.nn import Hypothesis, NoSummaryError, Writer
from pyramidions.nn.decoder.static import as_cuda_graph
from pyramidions.nn.functional.kernels import FLEX, Kernels, use_kernels
from pyramidions.nn.sublayer import Memory
from pyramidions.pretrained.in_words import settings as about_model
from pyramidions.pretrained.saved_model import SavedModel, load_model

#: Progress callback: the place of a document whose summary is written.
OnWritten = Callable[[int], object]


class UnwritableError(UserError):
    """No summary of a document keeps the rules of decoding, or the model's scores are no numbers."""


class Summarizer:
    """Writes summaries of long documents.

    Examples:
        >>> from pyramidions import Summarizer
        >>> summarizer = Summarizer.from_pretrained("checkpoints")      # doctest: +SKIP
        >>> summarizer.summarize(["A long paper ...", "Another ..."])   # doctest: +SKIP

    Args:
        model: a trained model.
        device: where it computes, such as "cpu" or "cuda:1"; a GPU if there is one, if None.
        precision: "float32", "bfloat16" or "int8" (weights, on a CPU); or "auto": bfloat16 where the machine has
            instructions for it, but float32 for small models on a CPU. In float32 summaries are the same on all
            machines but for rounding.
        graphs: record the steps of the decoder as CUDA graphs, so that Python does not slow them. Decoders that hash
            take different steps, and are not recorded. No GPU has run this yet.
        kernels: how a GPU computes sliding windows: "auto", or "flex", torch's FlexAttention, which no GPU has run yet;
            None for what the model was trained with.

    Attributes:
        precision: which it is, and a sentence about that and the machine.

    Raises:
        UserError: there is no such device; or no such precision, or not on this device or of this model; or no graphs,
            or no FlexAttention, on this device; or no windows in the model.
    """

    @checked
    def __init__(
        self,
        model: SavedModel,
        device: Device | None = None,
        precision: PrecisionName = FLOAT32,
        graphs: bool = False,
        kernels: Kernels | None = None,
    ) -> None:
        self.model = model
        self.device = found_device(device)
        _check_gpu(self.device, graphs=graphs, kernels=kernels == FLEX)
        if model.config.tag_dim:
            raise UserError(
                "The model reads tags of words, which texts lack: use `prepare --tags` and fairseq-generate."
            )
        self.reader = Reader(model.tokenizer, model.max_source_positions, model.queries, model.source_prefix)
        self.precision = found_precision(precision, self.device, model.config.embed_dim)
        self._transformer = in_precision(model.transformer, self.precision).to(self.device)
        try:
            use_kernels(self._transformer, kernels or model.config.kernels)
        except ValueError as error:
            raise UserError(str(error)) from None
        decoder = self._transformer.decoder
        decoder.record = as_cuda_graph if graphs else None
        if graphs and not decoder.steps_alike:
            said = f"{self.precision.said} Its decoder takes different steps, so that none is recorded as a graph."
            self.precision = self.precision._replace(said=said)

    def __repr__(self) -> str:
        return f"Summarizer({self.model})"

    @classmethod
    @checked
    def from_pretrained(
        cls,
        path: str | Path,
        device: Device | None = None,
        precision: PrecisionName = FLOAT32,
        graphs: bool = False,
        kernels: Kernels | None = None,
    ) -> "Summarizer":
        """Read a checkpoint, a folder of checkpoints (the best is taken), or an exported model, here or on the hub.

        Args:
            path: of any of them; what is no path here may name an export on the Hugging Face hub, OWNER/NAME or
                OWNER/NAME@REVISION, where the revision is a branch, a tag or a commit.
            device, precision, graphs, kernels: as in the class.

        Raises:
            UserError: there is none, or it is damaged, or the hub cannot be reached; or as the class.
        """
        found = found_device(device)
        found_precision(precision, found)
        _check_gpu(found, graphs=graphs, kernels=kernels == FLEX)
        return cls(load_model(path), found, precision, graphs, kernels)

    @checked
    def summarize(
        self,
        texts: Iterable[str],
        *,
        query: str | Iterable[str] | None = None,
        batch_size: Count = 8,
        long: Long | None = None,
        section_types: str | Path | None = None,
        select: str | Path | None = None,
        language: str | None = None,
        copied: bool = False,
        on_read: OnRead | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[Summary]:
        """Summarize documents.

        `None` uses the model's decoding default. Documents of like length are read together.

        The default lengths are lowered for a short document: the most to n tokens, the fewest to n / 2, where n is the
        document's number of tokens, rounded down to a multiple of 64, below 64 to a power of two.

        Args:
            texts: the documents; each must hold text. They are read one by one and not kept. Several are summarized
                together as one text of `as_one`.
            query: what the summary of each document answers, or a list of one query for each document; for a model that
                was trained with queries, and only for such a model.
            batch_size: documents that are read at once.
            long: what becomes of a document that is longer than the model reads: None does what the model was trained
                for, mostly "truncate", which reads its beginning;
                "chunk" joins the summaries of its pieces; "merge" summarizes these summaries; "sections" joins the
                summaries of its sections, whatever its length, and the lengths are shared among them; "extract" reads
                the sentences that `select` selects; "rewrite" joins what is written of each of these, whatever the
                length of the document, and the lengths are those of one.
            section_types: a file with the table of section types, for "sections"; None for that of scientific papers.
            select: for "extract" and "rewrite": "hiporank", "lead", "textrank", "biomedical", "meetings", the path of a
                trained extractor, or "auto", the one of these that suits a document; None for "auto" where the model
                started from a pretrained one, else for "hiporank".
            language: of the documents, an ISO 639-1 code, by whose rules "sections", "extract" and "rewrite" cut them;
                None to detect it.
            copied: tell the share of a summary that was copied, of a model that copies. It takes one more pass of the
                decoder.
            on_read: Progress callback: characters tokenized since the last call.
            decoding: beam (hypotheses of a document), min_len and max_len (tokens of a summary, without its end),
                length_penalty (above 1 favours long summaries), no_repeat_ngram (a summary holds each n-gram of this n
                at most once; 0 allows all), sampling (samples in this way, in place of a search); see
                `DecodingOptions`.

        Returns:
            The summaries, in the order of ``texts``; with those of their pieces or sections.

        Raises:
            UserError: an argument that breaks a rule, or a document without text.
        """
        check_queries(self.model.queries, query is not None)
        settings = decoding_settings(self.model, **decoding)
        reader = self.long_reader(long, None if section_types is None else Path(section_types), select, language)
        check_reading(reader.long, section_types, select, language)
        parts: list[list[Part]] = []
        queries: list[str | None] = []
        for number, (text, asked) in enumerate(_with_queries(texts, query), 1):
            queries.append(asked)
            parts.append([part.of(number) for part in reader.parts(text, f"document {number}", on_read, asked)])

        def write(tokenized: list[TokenizedText]) -> list[Summary]:
            return self.write(tokenized, settings, batch_size, copied=copied)

        found = iter(write([part.tokenized for of_document in parts for part in of_document]))
        summaries = [[part.about(next(found)) for part in of_document] for of_document in parts]
        if reader.long == "merge":
            summaries = merge(summaries, self.reader, write, queries)
        return [joined(of_document) for of_document in summaries]

    @checked
    def long_reader(
        self,
        long: Long | None,
        types: SectionTypes | Path | None = None,
        select: str | Path | None = None,
        language: str | None = None,
    ) -> LongReader:
        """Return what reads documents of any length for this model; arguments as in `summarize`."""
        long = self.model.config.decoding_long if long is None else long
        check_reading(long, types, select)
        # A model trained from scratch on shortened documents has read what HipoRank selected.
        usual = HIPORANK if self.model.origin is None else AUTO_METHOD
        found = selecting(usual if select is None else select, self.device, self.precision.name)
        return LongReader(self.reader, long, types, found, language)

    @checked
    @torch.inference_mode()
    def write(
        self,
        documents: Sequence[TokenizedText],
        decoding: DecodingSettings,
        batch_size: Count,
        on_written: OnWritten | None = None,
        copied: bool = False,
    ) -> list[Summary]:
        """Summarize documents, or pieces, that `reader` has tokenized; those of like length are read together.

        Raises:
            UnwritableError: no summary keeps the rules of decoding, or scores are not numbers.
        """
        longest_first = sorted(range(len(documents)), key=lambda i: (documents[i].share, -documents[i].whole))
        found: dict[int, Summary] = {}
        # Those of one batch have the same bounds.
        for bounds, alike in groupby(longest_first, lambda i: _bounds(documents[i], decoding)):
            for batch in chunks(alike, batch_size):
                read = [documents[index] for index in batch]
                best, memories = self._best([self._ids(document) for document in read], decoding.writer(bounds, read))
                shares = self._copied(best, memories) if copied else [None] * len(best)
                for index, hypothesis, share in zip(batch, best, shares, strict=True):
                    found[index] = self._summary(documents[index], hypothesis, bounds, share)
                    if on_written is not None:
                        on_written(index)
        return [found[index] for index in range(len(documents))]

    @checked
    def explain(
        self, text: str, *, query: str | None = None, on_read: OnRead | None = None, **decoding: Unpack[DecodingOptions]
    ) -> Explanation:
        """Summarize the beginning of a document, as much as the model reads, and trace the summary back to it.

        Arguments and errors are those of `summarize`, which writes the same with ``long="truncate"``.
        """
        settings = decoding_settings(self.model, **decoding)
        head = self.reader.asking(query).head(text, "`text`", on_read)._replace(number=1)
        return self.explain_tokenized(head, self._line_breaks(self._text_of(head, text)), settings).answering(query)

    @checked
    def explain_pieces(
        self, text: str, *, query: str | None = None, on_read: OnRead | None = None, **decoding: Unpack[DecodingOptions]
    ) -> Iterator[Explanation]:
        """Summarize a document of any length piece by piece, each as long as the model reads, and explain each.

        Arguments and errors are those of `summarize`.
        """
        settings = decoding_settings(self.model, **decoding)
        line_breaks = self._line_breaks(text)
        for piece in self.reader.asking(query).pieces(text, "`text`", on_read):
            if (own := self._text_of(piece, text)) is not text:
                line_breaks = self._line_breaks(own)
            yield self.explain_tokenized(piece._replace(number=1), line_breaks, settings).answering(query)

    def _text_of(self, read: TokenizedText, text: str) -> str:
        """Return the text of what was read of several documents; that of one document is the whole ``text``."""
        return text if self.reader.documents(text) == [text] else self.reader.separated(read.tokens)

    @checked
    @torch.inference_mode()
    def explain_tokenized(
        self, document: TokenizedText, line_breaks: LineBreaks, decoding: DecodingSettings
    ) -> Explanation:
        """Summarize and explain a document, or its next piece, that `reader` has tokenized; errors as of `write`."""
        bounds = _bounds(document, decoding)
        writer = decoding.writer(bounds, [document])
        ids = self._ids(document)
        (best,), _ = self._best([ids], writer)
        traced = trace(self._transformer, ids.to(self.device), best.tokens, self.model.tokenizer.eos)
        copied = None if traced.copied is None else float(traced.copied.sum(dim=1).mean())
        prefix, asked = [""] * len(self.model.tokenizer.prefix), self.model.tokenizer.spellings(document.query)
        return Explanation(
            self._summary(document, best, bounds, copied),
            [*prefix, *asked, *line_breaks.restore(document.tokens), ""],
            self.model.tokenizer.spellings(best.tokens.tolist()),
            traced,
            about_model(self.model, writer, self.precision.name),
            len(prefix) + len(asked) if asked else 0,
        )

    def _line_breaks(self, text: str) -> LineBreaks:
        return LineBreaks(text, self.model.tokenizer.normalize)

    def _ids(self, document: TokenizedText) -> Tensor:
        return torch.tensor(self.model.tokenizer.framed(self.model.tokenizer.ids_of(document.tokens), document.query))

    def _best(self, documents: list[Tensor], writer: Writer) -> tuple[list[Hypothesis], tuple[Memory, ...]]:
        """Return the best summary of each document, and what the decoder read."""
        batch = pad_sequence(documents, batch_first=True, padding_value=self.model.tokenizer.pad).to(self.device)
        memories = writer.read(self._transformer, batch)
        try:
            return [best for best, *_ in writer.write(self._transformer, memories)], memories
        except NoSummaryError as error:
            raise UnwritableError(str(error)) from None

    def _copied(self, best: list[Hypothesis], memories: tuple[Memory, ...]) -> list[float | None]:
        """Return the share of each summary that was copied."""
        written = pad_sequence([each.tokens for each in best], batch_first=True, padding_value=self.model.tokenizer.pad)
        log_probs = pad_sequence([each.token_scores for each in best], batch_first=True)
        copied = self._transformer.decoder.copied(written, memories, self.model.tokenizer.eos, log_probs)
        if copied is None:
            return [None] * len(best)
        return [float(rows[: len(each.tokens)].sum(dim=1).mean()) for each, rows in zip(best, copied, strict=True)]

    def _summary(
        self, document: TokenizedText, best: Hypothesis, bounds: Bounds, copied: float | None = None
    ) -> Summary:
        text = self.model.tokenizer.decode(best.tokens.tolist())
        if document.casing is not None:
            text = document.casing.restore(text)
        lengths = len(best.tokens), document.whole, document.read, bounds.shortened_to
        return Summary(text, best.score, *lengths, copied=copied)


def _check_gpu(device: torch.device, **needed: bool) -> None:
    """Refuse what needs a GPU."""
    for name in needed:
        if needed[name] and device.type != "cuda":
            raise UserError(f"`{name}` is for GPUs, but the device is {str(device)!r}.")


def _bounds(document: TokenizedText, decoding: DecodingSettings) -> Bounds:
    return decoding.for_length(document.whole, document.share, document.sentence)


def _with_queries(texts: Iterable[str], query: str | Iterable[str] | None) -> Iterator[tuple[str, str | None]]:
    """Yield each document with its query, one for all of them or one for each."""
    if query is None or isinstance(query, str):
        yield from zip(texts, repeat(query))
        return
    asked, rule = iter(query), "`query` must be a text, or a list of one text for each document"
    for text in texts:
        if (following := next(asked, None)) is None:
            raise UserError(f"{rule}, but there are fewer.")
        yield text, following
    if next(asked, None) is not None:
        raise UserError(f"{rule}, but there are more.")
