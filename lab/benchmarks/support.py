"""How well does support by words tell a document from another one? Sentences that people wrote, at several thresholds.

    python lab/benchmarks/support.py sumpubmed/test.jsonl.xz qmsum/test.jsonl.xz

Each file of JSON lines has documents (`article`) and their summaries (`abstract`). The sentences of each summary are
looked for in its own document and in the next one that differs: a good threshold lets most of the former pass and few
of the latter. Printed are the shares that pass, by the best source sentence alone and by all that are named.
"""

import argparse
import json
import lzma
from pathlib import Path

import numpy as np

from pyramidions.text.normalization import split_sentences
from pyramidions.text.support import MOST, THRESHOLD, SupportIndex

THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)


def recalls(pairs: list[tuple[SupportIndex, str]]) -> np.ndarray:
    """Return the recall of each sentence by the best source sentence and by all that are named, (sentences, 2)."""
    found = [index.support(sentence) for index, summary in pairs for sentence in split_sentences(summary)]
    return np.array([(sum(share for _, share in each.shares[:1]), each.recall) for each in found if each is not None])


def report(path: Path, limit: int | None) -> None:
    """Print the table of a file."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt") as lines:
        records = [json.loads(line) for _, line in zip(range(limit or 10**9), lines, strict=False)]
    indices = {text: SupportIndex(split_sentences(text)) for text in {record["article"] for record in records}}
    own, other = [], []
    for place, record in enumerate(records):
        following = [*records[place + 1 :], *records[:place]]
        another = next(each["article"] for each in following if each["article"] != record["article"])
        own.append((indices[record["article"]], record["abstract"]))
        other.append((indices[another], record["abstract"]))
    in_own, in_other = recalls(own), recalls(other)
    print(f"\n{path}: {len(in_own)} sentences of {len(records)} summaries\n")
    print(f"| threshold | best sentence: own | another | best {MOST}: own | another |\n|---|---|---|---|---|")
    for threshold in THRESHOLDS:
        shares = [100 * (of >= threshold).mean(axis=0) for of in (in_own, in_other)]
        cells = [f"{shares[document][kind]:.1f}%" for kind in (0, 1) for document in (0, 1)]
        print(" | ".join([f"| {threshold:.2f}{' (ours)' if threshold == THRESHOLD else ''}", *cells]), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help=".jsonl, or .jsonl.xz, of {article, abstract}")
    parser.add_argument("--limit", type=int, help="documents of each file  [default: all]")
    arguments = parser.parse_args()
    for path in arguments.files:
        report(path, arguments.limit)


if __name__ == "__main__":
    main()
