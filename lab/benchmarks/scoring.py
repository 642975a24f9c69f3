"""How fast ROUGE is scored beside a plain loop over rouge-score.

    python lab/benchmarks/scoring.py --out lab/benchmarks/results/benchmarks.csv

Long summaries are the first sentences of real papers (data/sample), and their references every second one, 550 words
each as in GovReport. The plain loop calls rouge-score's RougeScorer with its stemmer on texts that are already
normalised and split into sentences; ours starts from the raw texts, and takes the bootstrap of all four figures, too.
Figures are compared to the last digit.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial

from contenders import Timed, finish, parser, ratio, take_turns
from figures import Figure
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.data.readers import Corpus, find_splits
from pyramidions.files.parallel import available_cores
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metrics import Rouge
from pyramidions.scoring.scores import metrics_of, score_documents
from pyramidions.text.normalization import split_sentences

ASKED = 1.5


def long_summaries(documents: int, words: int) -> Iterator[tuple[str, str]]:
    """Yield summaries and references; papers that are too short are left out, and all are taken again if needed."""
    papers = [document.source for document in Corpus(find_splits("data/sample")["train"])]
    made = []
    for paper in papers:
        sentences = split_sentences(paper)
        made.append((_first(sentences, words), _first(sentences[::2], words)))
    for number in range(documents):
        yield made[number % len(made)]


def _first(sentences: list[str], words: int) -> str:
    return " ".join(" ".join(sentences).split()[:words])


def plain_loop(predictions: list[str], references: list[str]) -> list[list[float]]:
    """Score sentences on lines, one document after the other."""
    scorer = RougeScorer(list(Rouge.figures), use_stemmer=True)
    found = (scorer.score(reference, prediction) for prediction, reference in zip(predictions, references, strict=True))
    return [[100 * scores[name].fmeasure for name in Rouge.figures] for scores in found]


def ours(predictions: list[str], references: list[str], workers: int) -> list[list[float]]:
    """Score raw texts, with intervals."""
    examples = Examples(predictions, [(reference,) for reference in references])
    scores = score_documents(examples, metrics_of(["rouge"]), workers=workers)
    print({name: f"{each.low:.2f} to {each.high:.2f}" for name, each in scores.estimates.items()}, file=sys.stderr)
    return scores.scores.tolist()  # type: ignore[no-any-return]


def speed(documents: int, words: int, repeats: int, workers: int) -> tuple[list[Figure], dict[str, Timed]]:
    """Return the ratio of the plain loop's seconds to ours."""
    pairs = list(long_summaries(documents, words))
    raw = [list(texts) for texts in zip(*pairs, strict=True)]
    split = [["\n".join(split_sentences(text)) for text in texts] for texts in raw]
    found: dict[str, list[list[float]]] = {}

    def scored(name: str, score: Callable[[], list[list[float]]]) -> None:
        found[name] = score()

    contenders = {
        "a plain loop over rouge-score": partial(plain_loop, *split),
        "ours": partial(ours, *raw, workers),
        "ours, one process": partial(ours, *raw, 1),
    }
    timed = take_turns({name: partial(scored, name, score) for name, score in contenders.items()}, repeats, warmup=0)
    expected, *others = found.values()
    if any(figures != expected for figures in others):
        sys.exit("The figures differ.")
    print("all figures are equal to the last digit")
    loop, here, alone = timed.values()
    figures = [
        ratio(f"a plain loop / ours with {workers} processes", loop, here, ASKED),
        ratio("a plain loop / ours in one process", loop, alone),
    ]
    return figures, timed


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "scoring-speed", repeats=3, devices=False)
    made.add_argument("--documents", type=int, default=1000, help="long summaries to score (default: 1000)")
    made.add_argument("--words", type=int, default=550, help="words of each (default: 550)")
    made.add_argument("--workers", type=int, default=available_cores(), help="processes (default: all cores)")
    args = made.parse_args()
    finish(args, *speed(args.documents, args.words, args.repeats, args.workers))


if __name__ == "__main__":
    main()
