"""Where in a document is what its summary says? The curve of salient bigrams (Huang et al. 2021), and lengths.

    python lab/benchmarks/corpus_statistics.py sumpubmed --limit 600 --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/corpus_statistics.py ami=HMNet icsi=HMNet --split train

Each corpus is an INPUT of `pyramidions prepare`; NAME=FOLDER is a known corpus from its release. A bigram is two stems
of a sentence in a row, one of them no stop word (rouge-score's words, English). Salient are the distinct bigrams of a
summary that its document contains. The curve is their share that has occurred in the first x% of the document's words,
a mean over documents with a 95% bootstrap interval. What occurs often also occurs early, so the same curve is drawn for
documents whose sentences are shuffled: only what lies between the two is a matter of place.
"""

import argparse
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from figures import Entry, add_output, save

from pyramidions.cli.inputs import find_inputs
from pyramidions.data.readers import Document
from pyramidions.extract.concepts.words import Words, words_in
from pyramidions.scoring.metric import Example
from pyramidions.scoring.metrics.of_words import Coverage
from pyramidions.text.normalization import split_sentences
from pyramidions.text.words import count_words

PERCENT = np.arange(1, 101)
SAMPLES = 1000  # of the bootstrap
FIGURES = ("words", "summary words", "coverage", "density", "compression", "salient")


class Found(NamedTuple):
    """What was found in a corpus.

    Attributes:
        curves: share of salient bigrams that have occurred by each percent, (documents with any, 100).
        shuffled: the same with shuffled sentences.
        figures: of each document, by `FIGURES`; the last is the share of a summary's bigrams that are salient,
            (documents, 6).
    """

    curves: np.ndarray
    shuffled: np.ndarray
    figures: np.ndarray


@lru_cache(maxsize=2)  # the queries about a meeting follow one another
def sentences(text: str) -> list[Words]:
    """Return the words of each sentence."""
    words, counts = words_in(split_sentences(text))
    ends = np.cumsum(counts)[:-1]
    return [Words(*parts) for parts in zip(np.split(words.hashes, ends), np.split(words.content, ends), strict=True)]


def bigrams(text: list[Words]) -> np.ndarray:
    """Return the bigrams of sentences as numbers, 0 for those of two stop words or two sentences: (words - 1,)."""
    hashes = np.concatenate([each.hashes for each in text]).astype(np.uint64)
    content = np.concatenate([each.content for each in text])
    sentence = np.repeat(np.arange(len(text)), [len(each.hashes) for each in text])
    counts = (content[:-1] | content[1:]) & (sentence[:-1] == sentence[1:])
    return np.where(counts, hashes[:-1] << np.uint64(32) | hashes[1:], np.uint64(0))


def seen_at(document: list[Words], salient: np.ndarray) -> np.ndarray:
    """Return what share of a document ends with the first occurrence of each bigram that it contains: (contained,)."""
    found = bigrams(document)
    known, first = np.unique(found, return_index=True)
    return (first[np.isin(known, salient)] + 2) / (len(found) + 1)


def curve(seen: np.ndarray) -> np.ndarray:
    """Return the share of bigrams that have occurred by each percent of a document: (100,)."""
    return (seen[:, None] <= PERCENT / 100).mean(axis=0)


def measure(documents: Iterable[Document]) -> Found:
    """Return what is found in documents and their summaries."""
    random, coverage = np.random.default_rng(0), Coverage()
    curves, shuffled, figures = [], [], []
    for document in documents:
        text, own = sentences(document.source), np.unique(bigrams(sentences(document.target)))
        own = own[own != 0]
        seen = seen_at(text, own)
        if len(seen):
            curves.append(curve(seen))
            shuffled.append(curve(seen_at([text[place] for place in random.permutation(len(text))], own)))
        copied = coverage.of(Example(document.target, (document.target,), document.source))
        lengths = [count_words(document.source), count_words(document.target)]
        figures.append([*lengths, *copied, len(seen) / max(1, len(own))])
    return Found(*(np.array(each) for each in (curves, shuffled, figures)))


def intervals(curves: np.ndarray) -> np.ndarray:
    """Return the 95% bootstrap interval of the mean curve: (2, 100)."""
    count = len(curves)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), SAMPLES)
    return np.percentile(drawn @ curves / count, [2.5, 97.5], axis=0)


def entries(name: str, found: Found) -> Iterator[Entry]:
    """Yield means, and for each percent: seen so far with its interval, new in it, seen with shuffled sentences."""
    yield Entry(name, "documents", len(found.figures))
    yield Entry(name, "with salient bigrams", len(found.curves))
    for figure, value in zip(FIGURES, found.figures.mean(axis=0), strict=True):
        yield Entry(name, figure, float(value))
    mean, (low, high) = found.curves.mean(axis=0), intervals(found.curves)
    new, shuffled = np.diff(mean, prepend=0), found.shuffled.mean(axis=0)
    for place, percent in enumerate(PERCENT):
        row = f"{name}, first {percent}%"
        yield Entry(row, "seen", float(mean[place]), float(low[place]), float(high[place]))
        yield Entry(row, "new", float(new[place]))
        yield Entry(row, "shuffled", float(shuffled[place]))


def read(given: str, split: str, limit: int | None) -> tuple[str, Iterable[Document]]:
    """Return the name of a corpus and the documents of a split, which are shown while they are read."""
    name, _, release = given.partition("=")
    fields = dict.fromkeys(("config", "source_field", "target_field", "id_field", "query_field"))
    options = {"skip_empty": True, "number_repeated_ids": True}
    found = find_inputs(name, {}, Path(release) if release else None, **options, **fields)
    return Path(name).name, islice(found.corpora[split]().shown("reading"), limit)


def main() -> None:
    """Measure each corpus and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="INPUT", help="as of `prepare`, or NAME=FOLDER")
    parser.add_argument("--split", choices=("train", "valid", "test"), default="test", help="(default: %(default)s)")
    parser.add_argument("--limit", type=int, help="first documents of each corpus  [default: all]")
    add_output(parser, "statistics")
    args = parser.parse_args()
    corpora = {}
    for given in args.corpora:
        name, documents = read(given, args.split, args.limit)
        corpora[name] = found = measure(documents)
        half = found.curves.mean(axis=0)[49]
        print(f"{name}: {len(found.figures)} documents, {half:.1%} of the salient bigrams in the first half")
        print("  ".join(f"{n} {v:,.2f}" for n, v in zip(FIGURES, found.figures.mean(axis=0), strict=True)), flush=True)
    save(args, (entry for name, found in corpora.items() for entry in entries(name, found)))


if __name__ == "__main__":
    main()
