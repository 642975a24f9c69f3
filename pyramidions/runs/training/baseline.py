"""What a model is compared with: HipoRank, which needs no training."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from pyramidions.data.readers import Corpus, Document
from pyramidions.documents.sections import sectioned_text
from pyramidions.extract import Budget, HipoRank, SelectionRules
from pyramidions.extract.extraction import extract
from pyramidions.files.atomic import atomic_file
from pyramidions.files.parallel import available_cores, ordered_map
from pyramidions.files.progress import progress_bar
from pyramidions.text.outline import outline


def with_headings(corpus: Corpus) -> Iterator[Document]:
    """Yield the documents of a corpus, with headings where their records have sections.

    They are the same documents whether the corpus takes them from the sections or not.

    Raises:
        UserError: a document or its sections are invalid.
    """
    for document, record in corpus.with_records():
        yield document._replace(source=sectioned_text(record.value, record.place) or document.source)


def write_hiporank(path: Path, documents: Iterable[Document], number: int, words: int) -> None:
    """Write the extracts of documents, one a line.

    Args:
        path: the file.
        documents: in the order of the references.
        number: of them.
        words: most words of an extract.
    """
    work = partial(_line, words=words)
    with atomic_file(path) as file, progress_bar("extracting with HipoRank", number, "documents") as bar:
        for line in ordered_map(work, documents, available_cores()):
            file.write(line)
            bar.update()


def advice(scores: Path, kind: str, ours: str) -> list[str]:
    """Return in words which system scored best, and its command.

    Args:
        scores: the file of scores.
        kind: of the model, whose name there it is.
        ours: the command of the model.
    """
    found = json.loads(scores.read_text())
    means = {name: system["rouge1"]["mean"] for name, system in found["systems"].items()}
    # Of equal ones the model, which comes first.
    best = max(means, key=lambda name: means[name])
    if best == kind:
        return [f"Next: {ours}"]
    rival = found["comparisons"][best]["rouge1"]
    low, high = -rival["high"], -rival["low"]
    sure = "better" if low > 0 else "higher, though that may be chance"
    told = (
        f"{best} needs no training, and scored {sure}: ROUGE-1 {means[best]:.1f}, the {kind} has {means[kind]:.1f} "
        f"(difference {-rival['difference']:.1f}, 95% interval {low:.1f} to {high:.1f}). More documents make a better "
        "model."
    )
    return [told, f"Next: pyramidions extract --method {best} paper.pdf", f"The model: {ours}"]


def _line(document: Document, words: int) -> bytes:
    read = outline(document.source)
    found = extract(read, HipoRank().rank(read), SelectionRules(Budget(words=words)))
    return found.text.encode("utf-8", "replace") + b"\n"
