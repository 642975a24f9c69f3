"""What the extractors of other packages choose from papers, for `pyramidions score`.

    pip install sumy summa
    python lab/benchmarks/rival_extractors.py sumpubmed/test.jsonl.xz --out rivals
    pyramidions score rivals/*.jsonl --references rivals/references.jsonl

Each package ranks the sentences of a paper without its headings; the best that fit into the budget of words are taken
and stand in the paper's order. sumy gets our sentences, since its own need a model that it fetches; summa has its own.
"""

import argparse
import json
import multiprocessing
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from extraction import records, without_headings
from summa.summarizer import summarize
from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
from sumy.nlp.stemmers import Stemmer
from sumy.summarizers.lex_rank import LexRankSummarizer
from sumy.summarizers.luhn import LuhnSummarizer
from sumy.summarizers.text_rank import TextRankSummarizer
from sumy.utils import get_stop_words
from tqdm import tqdm

from pyramidions.text.normalization import split_sentences
from pyramidions.text.words import word_places

Fill = Callable[[Iterable[tuple[str, int]]], list[int]]
SUMY = {
    "sumy_lexrank": LexRankSummarizer,
    "sumy_textrank": TextRankSummarizer,
    "sumy_luhn": LuhnSummarizer,
}


class Words:
    """Splits a sentence into words, as sumy asks a tokenizer to."""

    def to_words(self, sentence: str) -> tuple[str, ...]:
        """Return the words."""
        return tuple(word for word, _, _ in word_places(sentence))


def fitting(ranked: Iterable[tuple[str, int]], budget: int) -> list[int]:
    """Return the places of the best sentences that fit, in order; ``ranked`` has sentences and places, best first."""
    chosen = []
    for sentence, place in ranked:
        if (size := len(sentence.split())) <= budget:
            budget -= size
            chosen.append(place)
    return sorted(chosen)


def by_sumy(name: str, sentences: list[str], budget: int) -> str:
    """Return what a summarizer of sumy chooses."""
    summarizer = SUMY[name](Stemmer("english"))
    summarizer.stop_words = get_stop_words("english")
    document = ObjectDocumentModel([Paragraph([Sentence(sentence, Words()) for sentence in sentences])])

    def best(infos: list[Any]) -> list[Any]:
        taken = set(fitting(((str(info.sentence), info.order) for info in infos), budget))
        return [info for info in infos if info.order in taken]

    return " ".join(map(str, summarizer(document, best)))


def by_summa(text: str, budget: int) -> str:
    """Return what summa's TextRank chooses."""
    rated = summarize(text, ratio=1.0, split=True, scores=True)
    order = sorted(range(len(rated)), key=lambda place: -rated[place][1])
    return " ".join(rated[place][0] for place in fitting(((rated[place][0], place) for place in order), budget))


def read(record: dict[str, str], words: int) -> dict[str, str]:
    """Return the extract of each package."""
    text = without_headings(record["article"])
    sentences = [sentence for line in text.splitlines() for sentence in split_sentences(line)]
    return {"summa_textrank": by_summa(text, words), **{name: by_sumy(name, sentences, words) for name in SUMY}}


def write(path: Path, papers: list[dict[str, str]], texts: list[str]) -> None:
    """Write a text for each paper as JSON lines."""
    lines = (json.dumps({"id": paper["id"], "summary": text}) for paper, text in zip(papers, texts, strict=True))
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run the program."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("papers", type=Path, help="JSON lines with article and abstract")
    made.add_argument("--words", type=int, default=220, help="of an extract (default: 220)")
    made.add_argument("--limit", type=int, help="documents")
    made.add_argument("--out", type=Path, required=True, help="folder for a file of each package")
    args = made.parse_args()
    papers = list(records(args.papers, args.limit))
    args.out.mkdir(parents=True, exist_ok=True)
    with multiprocessing.Pool() as pool:
        found = list(tqdm(pool.imap(partial(read, words=args.words), papers), total=len(papers)))
    for name in found[0]:
        lines = (
            json.dumps({"id": paper["id"], "summary": each[name]}) for paper, each in zip(papers, found, strict=True)
        )
        (args.out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    lines = (json.dumps({"id": paper["id"], "summary": paper["abstract"]}) for paper in papers)
    (args.out / "references.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
