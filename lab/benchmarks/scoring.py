"""How fast ROUGE is scored beside a plain loop over rouge-score, and the memory of scoring very many documents.

    python lab/benchmarks/scoring.py --out lab/benchmarks/results/scoring-cpu.json

Speed: long summaries, made of the sentences of real papers (data/sample) as both the reference (every second sentence)
and the summary (the first ones), 550 words as in GovReport. The plain loop calls rouge-score's RougeScorer with its
stemmer on texts that are already normalised and split into sentences; ours starts from the raw texts, and takes the
bootstrap of all four figures, too. Figures are compared to the last digit.

Memory: `pyramidions score` on made-up documents, 3 kB each, as files: the peak of the whole process for few of them and
for many. What it takes beyond its start should grow by the figures and the ids, not by the texts.
"""

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path

from peaks import peak, peak_of_process
from rouge_score.rouge_scorer import RougeScorer
from side_by_side import Figure, finish, parser, ratio, take_turns

from lab.timing import Timed
from pyramidions.data.readers import Corpus, find_splits
from pyramidions.files.parallel import available_cores
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metrics import Rouge
from pyramidions.scoring.scores import metrics_of, score_documents
from pyramidions.text.normalization import split_sentences

ASKED = 1.5
MOST_BYTES = 1000  # of a document, which has 3 kB of text
METRICS = ("length", "coverage")


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


def write_documents(folder: Path, documents: int) -> None:
    """Write summaries, references and documents of 3 kB."""
    draw = random.Random(1)
    words = [f"word{number}" for number in range(5000)]
    texts = [" ".join(draw.choices(words, k=350)) for _ in range(100)]
    for name, key in (("summaries", "summary"), ("references", "summary"), ("documents", "article")):
        with (folder / f"{name}.jsonl").open("w") as file:
            for number in range(documents):
                file.write(json.dumps({"id": f"document-{number}", key: texts[number % 100]}) + "\n")


def score_files(folder: Path) -> None:
    """Do what `pyramidions score` does."""
    from pyramidions.cli.commands import main as command

    files = [str(folder / f"{name}.jsonl") for name in ("summaries", "references", "documents")]
    words = ["score", files[0], "--references", files[1], "--documents", files[2], "--metrics", ",".join(METRICS)]
    # The peak is all that goes to standard output.
    with redirect_stdout(sys.stderr), suppress(SystemExit):
        command([*words, "--json", str(folder / "scores.json"), "--workers", "1"])


def memory(few: int, many: int) -> tuple[list[Figure], dict[int, float]]:
    """Return the bytes that a document takes, from the peaks of scoring few and many."""
    peaks: dict[int, float] = {}
    for documents in (few, many):
        with tempfile.TemporaryDirectory() as folder:
            write_documents(Path(folder), documents)
            found = peak_of_process(["--of", folder])
        if found is None:
            sys.exit(f"Memory does not suffice for {documents:,} documents.")
        peaks[documents] = found
        print(f"{documents:,} documents: {found:.0f} MB", file=sys.stderr)
    each = (peaks[many] - peaks[few]) * 1e6 / (many - few)
    return [
        Figure(f"bytes that a further document takes (asked: at most {MOST_BYTES})", each, each, each, unit="")
    ], peaks


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "scoring", repeats=3, devices=False)
    made.add_argument("--only", nargs="+", choices=("speed", "memory"), default=("speed", "memory"))
    made.add_argument("--documents", type=int, default=1000, help="long summaries to score (default: 1000)")
    made.add_argument("--words", type=int, default=550, help="words of each (default: 550)")
    made.add_argument("--workers", type=int, default=available_cores(), help="processes (default: all cores)")
    made.add_argument("--few", type=int, default=10_000, help="documents of the smaller measurement of memory")
    made.add_argument("--many", type=int, default=100_000, help="documents of the larger one")
    made.add_argument("--of", type=Path, help="score the files of this folder, and print the peak of this process")
    args = made.parse_args()
    if args.of:
        print(peak(partial(score_files, args.of)))
        return
    figures: list[Figure] = []
    timed: dict[str, Timed] = {}
    details = {}
    if "speed" in args.only:
        figures, timed = speed(args.documents, args.words, args.repeats, args.workers)
    if "memory" in args.only:
        more, details["peaks_mb"] = memory(args.few, args.many)
        figures += more
    finish(args, figures, timed, **details)


if __name__ == "__main__":
    main()
