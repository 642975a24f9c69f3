"""Ways to summarize a document that is longer than a model reads."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyramidions.base.arguments import checked
from pyramidions.base.reading import Long
from pyramidions.data.section_types import SectionTypes, section_types
from pyramidions.data.select_sentences import select_tokens, selected_texts
from pyramidions.extract import select
from pyramidions.extract.fitness import fit_for_summary, lengths_of
from pyramidions.inference.reader import OnRead, Reader, TokenizedText
from pyramidions.inference.selection_model import Selecting, selecting
from pyramidions.inference.summary import Coverage, Summary, copied_share, of_pieces
from pyramidions.text.language import Language
from pyramidions.text.outline import outline
from pyramidions.text.turns import read_outline, with_speakers

#: Writes the summaries of what a model reads at once.
Write = Callable[[list[TokenizedText]], list[Summary]]


class Part(NamedTuple):
    """What a model reads of a document at once."""

    tokenized: TokenizedText  # a whole document, its beginning, a piece, a section, or selected sentences
    coverage: Coverage = Coverage()  # what this is of the document
    text: str | None = None  # its own text, where it does not follow the part before it in the document; else None
    query: str | None = None  # what stands before it, or None

    def of(self, number: int) -> "Part":
        """Say which document, of those that are summarized, this is a part of."""
        return self._replace(tokenized=self.tokenized._replace(number=number))

    def about(self, summary: Summary) -> Summary:
        """Add to a summary what it covers, and the query that it answers."""
        return summary._replace(coverage=self.coverage, query=self.query)


class LongReader:
    """Reads documents of any length, part by part, in the way ``long``.

    ``types`` says which sections "sections" summarizes. ``select`` returns what selects the sentences of a document for
    "extract" and "rewrite", HipoRank for all if None. The rules of ``language``, an ISO 639-1 code, find both; None
    detects it.
    """

    @checked
    def __init__(
        self,
        reader: Reader,
        long: Long = "truncate",
        types: SectionTypes | Path | None = None,
        select: Selecting | None = None,
        language: str | None = None,
    ) -> None:
        self._language = None if language is None else Language(language).code
        self.long = long
        self.reader = reader
        self._types = types if isinstance(types, SectionTypes) else section_types(types)
        self._select = select or selecting()

    def parts(self, text: str, name: str, on_read: OnRead | None = None, query: str | None = None) -> Iterator[Part]:
        """Yield the parts of a document in order, at least one."""
        # A selection, or a section, tells less of how words are written.
        casing = self.reader.casing(text)
        for part in self._parts(text, name, on_read, self.reader.asking(query)):
            yield part._replace(tokenized=part.tokenized._replace(casing=casing), query=query)

    def _parts(self, text: str, name: str, on_read: OnRead | None, reader: Reader) -> Iterator[Part]:
        if self.long in ("chunk", "merge"):
            for piece in reader.pieces(text, name, on_read):
                yield _read(text, piece, reader)._replace(coverage=Coverage())
            return
        head = reader.head(text, name, on_read)
        if self.long == "sections":
            yield from self._sections(text, head, reader)
        elif self.long == "rewrite":
            yield from self._single(text, head, reader)
        elif self.long == "extract" and head.whole > head.read:
            yield self._selection(text, head, reader)
        else:
            yield _read(text, head, reader)

    def _sections(self, text: str, head: TokenizedText, reader: Reader) -> Iterator[Part]:
        whole = outline(text, language=self._language)
        found = list(self._types.sections(whole, self._types.write))
        if not found:
            yield _beginning(text, head, reader, "no section of a type in the table", whole.language)
            return
        # The lengths that decoding allows are those of the whole summary.
        read = [reader.head(section.text, section.heading)._replace(share=len(found)) for section in found]
        left_out = max(head.whole - head.around - sum(each.whole - each.around for each in read), 0)
        for section, tokenized in zip(found, read, strict=True):
            yield Part(tokenized, Coverage(section.heading, left_out=left_out, language=whole.language), section.text)
            left_out = 0

    def _single(self, text: str, head: TokenizedText, reader: Reader) -> Iterator[Part]:
        """Yield each selected sentence as a part of its own."""
        found = read_outline(text, language=self._language)
        texts = list(with_speakers(found))
        if not texts:
            yield _beginning(text, head, reader, "no sentence", found.language)
            return
        method, ranker = self._select(found)
        chosen = select(
            texts, fit_for_summary(found, ranker.rank(found)), ranker.rules, lengths_of(found), found.language
        )
        if not chosen:
            yield _beginning(text, head, reader, "no sentence was selected", found.language)
            return
        # The lengths that decoding allows are those of a sentence, which the model was trained on.
        read = [reader.head(texts[place], "a sentence")._replace(sentence=True) for place in chosen]
        about = Coverage(
            sentences=(len(chosen), len(texts)),
            selected_by=method,
            left_out=max(head.whole - head.around - sum(each.whole - each.around for each in read), 0),
            language=found.language,
        )
        for place, tokenized in zip(chosen, read, strict=True):
            yield Part(tokenized, about, texts[place])
            about = Coverage()

    def _selection(self, text: str, head: TokenizedText, reader: Reader) -> Part:
        documents = reader.documents(text)
        budget = reader.budget(len(documents))
        selected: list[str] = []
        languages: Counter[str] = Counter()
        methods: set[str] = set()
        chosen = number = 0
        for document in documents:
            found = read_outline(document, language=self._language)
            languages[found.language] += 1
            places: list[int] = []
            if found.sentences:
                method, ranker = self._select(found)
                methods.add(method)
                places = select_tokens(found, ranker.rank(found), reader.tokenizer, budget, ranker.stops)
            # Where nothing is selected, the beginning is read.
            selected.append("\n".join(selected_texts(found, places)) if places else document)
            chosen += len(places)
            number += len(found.sentences)
        ((language, _),) = languages.most_common(1)
        if not chosen:
            return _beginning(text, head, reader, "no sentence was selected" if number else "no sentence", language)
        tokenized = reader.head_of(selected, "a selection")
        by = ", ".join(sorted(methods))
        coverage = Coverage(sentences=(chosen, number), selected_by=by, documents=len(documents), language=language)
        return Part(tokenized._replace(whole=head.whole), coverage, "\n\n".join(selected))


def _read(text: str, tokenized: TokenizedText, reader: Reader) -> Part:
    """Return as a part what was read of the beginning of each document of a text, or of one of them."""
    documents = reader.documents(text)
    # Without the names of documents, it does not follow the text.
    own = None if documents == [text] else reader.separated(tokenized.tokens)
    return Part(tokenized, Coverage(documents=len(documents)), own)


def _beginning(text: str, head: TokenizedText, reader: Reader, why: str, language: str) -> Part:
    part = _read(text, head, reader)
    note = f"{why}: the text was read from its beginning"
    return part._replace(coverage=part.coverage._replace(note=note, language=language))


def merge(
    documents: Sequence[list[Summary]], reader: Reader, write: Write, queries: Sequence[str | None] | None = None
) -> list[list[Summary]]:
    """Replace several summaries of pieces of a document by a summary of these summaries, until it is one."""
    readers = [reader.asking(query) for query in queries or [None] * len(documents)]
    current = [list(summaries) for summaries in documents]
    lengths = [sum(summary.document_tokens for summary in summaries) for summaries in documents]
    notes: list[str | None] = [None] * len(current)
    while unfinished := [index for index, summaries in enumerate(current) if len(summaries) > 1]:
        parts: list[list[TokenizedText]] = []
        for index in unfinished:
            text = " ".join(summary.text for summary in current[index])
            pieces = list(readers[index].pieces(text, "a summary")) if text.strip() else []
            length = sum(piece.whole for piece in pieces)
            # A model whose summaries are as long as what they summarize would never end.
            if len(pieces) > 1 and length >= lengths[index]:
                pieces = [readers[index].head(text, "a summary")]
                notes[index] = "the summaries of its pieces were truncated, because they are as long as the text"
            lengths[index] = length
            parts.append(pieces)
        found = iter(write([piece for pieces in parts for piece in pieces]))
        for index, pieces in zip(unfinished, parts, strict=True):
            # Pieces without any word in their summaries leave an empty summary.
            current[index] = [next(found) for _ in pieces] or current[index][:1]
    return [
        [of_pieces(summary, pieces, Coverage(note=note)) if len(pieces) > 1 else summary]
        for (summary,), pieces, note in zip(current, documents, notes, strict=True)
    ]


def joined(summaries: Sequence[Summary]) -> Summary:
    """Return the summaries of the parts of a document as one, with the mean of their scores."""
    if len(summaries) == 1:
        return summaries[0]
    return Summary(
        " ".join(summary.text for summary in summaries),
        sum(summary.score for summary in summaries) / len(summaries),
        sum(summary.tokens for summary in summaries),
        sum(summary.document_tokens + summary.coverage.left_out for summary in summaries),
        sum(summary.read_tokens for summary in summaries),
        pieces=tuple(summaries),
        query=summaries[0].query,
        copied=copied_share(summaries),
    )
