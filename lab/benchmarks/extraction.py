"""How good are extracted summaries, and how fast are they made? Methods and options side by side on real papers.

    python lab/benchmarks/extraction.py sumpubmed/test.jsonl.xz --idf sumpubmed/train.jsonl.xz \\
        --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/extraction.py papers.jsonl --only lead hiporank --method my-extractor --limit 100
    python lab/benchmarks/extraction.py papers.jsonl --only hiporank --limit 100 --rival lex_rank --rival summa

A file of JSON lines has documents and their abstracts. Every system gets the same budget of words, the lead among them.
Reported are ROUGE with 95% bootstrap intervals, the paired differences to the lead and to hiporank, and documents per
second of one process, reading and ranking included.

Rivals are sumy and summa, which must be installed. sumy's methods rank the sentences that we read, without
headings, and the best of them that fit the budget are taken; summa splits the text and keeps the budget by itself.
"""

import argparse
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd
from figures import Entry, add_output, save, shown

from pyramidions.extract import TfIdf
from pyramidions.files.parallel import available_cores
from pyramidions.inference.extractor import Extractor
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import MetricOptions
from pyramidions.scoring.metrics.rouge import Rouge
from pyramidions.scoring.scores import Scores, metrics_of, score_documents
from pyramidions.text.outline import outline
from pyramidions.text.words import count_words

LABELS = {name: figure.label for name, figure in Rouge.figures.items()}
#: Systems that all others are compared with.
COMPARED = ("lead", "hiporank")
RIVALS = ("lex_rank", "text_rank", "lsa", "luhn", "summa")

Summarise = Callable[[dict[str, str]], str]


class System(NamedTuple):
    """A method with its options."""

    name: str
    method: str = "hiporank"
    options: Mapping[str, Any] = MappingProxyType({})
    redundancy: str = "none"
    with_corpus: bool = False
    with_headings: bool = True


SYSTEMS = [
    System("lead", "lead"),
    System("textrank", "textrank"),
    System("textrank, no repeated trigrams", "textrank", redundancy="trigrams"),
    System("textrank, MMR", "textrank", redundancy="mmr"),
    System("hiporank"),
    System("hiporank, no repeated trigrams", redundancy="trigrams"),
    System("hiporank, MMR", redundancy="mmr"),
    System("hiporank, document frequencies of a corpus", with_corpus=True),
    System("hiporank, mu 0.5 as published", options={"mu": 0.5}),
    System("hiporank, mu 2", options={"mu": 2.0}),
    System("hiporank, mu 0: no sections as nodes", options={"mu": 0.0}),
    System("hiporank, lambda_1 0.2", options={"lambda_1": 0.2}),
    System("hiporank, lambda_1 1: no direction", options={"lambda_1": 1.0}),
    System("hiporank, alpha 0.8", options={"alpha": 0.8}),
    System("hiporank, alpha 1.2", options={"alpha": 1.2}),
    System("hiporank, headings taken away", with_headings=False),
    System("biomedical", "biomedical"),
    System("oracle", "oracle"),
]


def by_sumy(method: str, words: int, each: dict[str, str]) -> str:
    """Return the summary of a method of sumy, such as lex_rank."""
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.utils import get_stop_words

    module = import_module(f"sumy.summarizers.{method}")
    summarizer = getattr(module, f"{method.title().replace('_', '')}Summarizer")(Stemmer("english"))
    summarizer.stop_words = get_stop_words("english")
    # sumy's own reader of words needs data that it downloads.
    reader = SimpleNamespace(to_words=lambda sentence: tuple(re.findall(r"[^\W_]+", sentence)))
    sentences = [Sentence(text, reader) for text in outline(each["article"]).texts]
    document = ObjectDocumentModel([Paragraph(sentences)])

    def fitting(ranked: list[Any]) -> list[Any]:
        left, kept = words, []
        for found in ranked:
            count = count_words(str(found.sentence))
            if count <= left:
                left -= count
                kept.append(found)
        return kept

    return " ".join(map(str, summarizer(document, fitting)))


def by_summa(words: int, each: dict[str, str]) -> str:
    """Return the summary of summa's TextRank."""
    from summa.summarizer import summarize

    return " ".join(summarize(each["article"], words=words).split("\n"))


def by_rival(name: str, words: int) -> Summarise:
    """Return what summarises a record in so many words: summa, or a method of sumy, by its name there."""
    return partial(by_summa, words) if name == "summa" else partial(by_sumy, name, words)


def records(path: Path, limit: int | None) -> list[dict[str, str]]:
    """Return the records of a file of JSON lines, which may be compressed."""
    found: list[dict[str, str]] = pd.read_json(path, lines=True, nrows=limit, dtype=False).to_dict("records")
    return found


def without_headings(text: str) -> str:
    """Return a text whose headings are gone."""
    from pyramidions.text.headings import headed_lines

    return "\n".join(line.text for line in headed_lines(text) if not line.level)


def by_us(system: System, words: int, corpus: TfIdf | None, language: str) -> Summarise:
    """Return what extracts so many words of a record."""
    vectors = corpus if system.with_corpus else None
    extractor = Extractor(system.method, system.options, vectors=vectors, language=language)

    def summarise(each: dict[str, str]) -> str:
        text = each["article"] if system.with_headings else without_headings(each["article"])
        reference = each["abstract"] if system.method == "oracle" else None
        return extractor.extract(text, words=words, redundancy=system.redundancy, reference=reference).text

    return summarise


def run(
    name: str, summarise: Summarise, documents: list[dict[str, str]], language: str, log: Callable[[str], object]
) -> tuple[Scores, dict[str, Any]]:
    """Extract and score; return the scores, and words and documents per second."""
    begun = time.perf_counter()
    made = [summarise(each) for each in documents]
    seconds = time.perf_counter() - begun
    examples = Examples(made, [(each["abstract"],) for each in documents])
    scores = score_documents(
        examples, metrics_of(["rouge"], MetricOptions(language=language)), workers=available_cores()
    )
    about = {
        "words": sum(len(text.split()) for text in made) / len(made),
        "documents_per_second": len(made) / seconds,
    }
    means = "  ".join(f"{scores.estimates[name].mean:5.2f}" for name in LABELS)
    log(f"{name:45}  {means}  {about['words']:5.0f} words  {about['documents_per_second']:6.1f} documents/s")
    return scores, about


def table(found: dict[str, tuple[Scores, dict[str, Any]]]) -> list[Entry]:
    """Return all figures of all systems: scores, and paired differences to those that all are compared with."""
    signature = next(iter(found.values()))[0].signature
    entries = [Entry("all", "signature", signature)]
    for name, (scores, about) in found.items():
        entries += [Entry(name, measure, value) for measure, value in about.items()]
        entries += [Entry(name, metric, e.mean, e.low, e.high) for metric, e in scores.estimates.items()]
        for other in COMPARED:
            if other in found and other != name:
                for metric, d in scores.compare(found[other][0]).items():
                    entries.append(Entry(name, f"{metric} minus {other}", d.difference, d.low, d.high))
    return entries


def main() -> None:
    """Run all systems and write a table and a file of figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, help="JSON lines with article and abstract, .jsonl or .jsonl.xz")
    parser.add_argument("--idf", type=Path, help="such a file whose documents give document frequencies")
    parser.add_argument("--method", action="append", default=[], help="a further method, such as a trained model")
    names = [system.name for system in SYSTEMS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="SYSTEM", help="some of the systems (default: all)")
    parser.add_argument("--rival", action="append", default=[], choices=RIVALS, help="a system of others")
    parser.add_argument("--words", type=int, default=220, help="budget of a summary (default: 220)")
    parser.add_argument("--language", default="en", help="of the documents, an ISO 639-1 code (default: en)")
    parser.add_argument("--limit", type=int, help="documents that are read (default: all)")
    add_output(parser, "extraction")
    given = parser.parse_args()
    documents = records(given.documents, given.limit)
    corpus = None if given.idf is None else TfIdf(each["article"] for each in records(given.idf, given.limit))
    systems = [system for system in SYSTEMS if corpus is not None or not system.with_corpus]
    systems = [system for system in systems if not given.only or system.name in given.only]
    systems += [System(shown(method), method) for method in given.method]
    ways = {system.name: by_us(system, given.words, corpus, given.language) for system in systems}
    ways |= {name: by_rival(name, given.words) for name in given.rival}
    found = {name: run(name, summarise, documents, given.language, print) for name, summarise in ways.items()}
    entries = table(found)
    for entry in entries:
        if " minus " in entry.measure:
            print(f"{entry.row:45}  {entry.measure:25}  {entry.value:+.2f} [{entry.low:+.2f}, {entry.high:+.2f}]")
    save(given, entries)


if __name__ == "__main__":
    main()
