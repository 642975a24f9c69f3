"""`pyramidions score`."""

import json
import re
import shutil
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.data.folder import DataFolder, Reference
    from pyramidions.scoring.scores import Scores

LEAD = "lead"
_FEW = 20  # documents; below, intervals and p-values are unreliable


@click.command(short_help="Score summaries against the raw references.")
@click.argument("summaries", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="Data folder with the raw references.")
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    help="Split of --data.  [default: that of generate-SPLIT.txt, else test]",
)
@click.option(
    "--references",
    type=click.Path(path_type=Path),
    help="References instead of --data: .jsonl of {id, summary}, or text with one summary per line.",
)
@click.option("--baseline", multiple=True, type=click.Path(path_type=Path), help="Summaries to compare with.")
@click.option("--lead", is_flag=True, help="Compare with the first sentences of each document; needs --data.")
@click.option("--lead-words", type=click.IntRange(1), help="Their length.  [default: mean of train's summaries]")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write all numbers to this file.")
@click.option("--show", type=click.IntRange(0), metavar="N", help="Show summary and reference of document N.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes that score.  [default: all cores]")
def score(
    summaries: Path,
    data: Path | None,
    split: str | None,
    references: Path | None,
    baseline: tuple[Path, ...],
    lead: bool,
    lead_words: int | None,
    out: Path | None,
    show: int | None,
    workers: int | None,
) -> None:
    """Score summaries against the raw references: ROUGE-1, -2, -L and -Lsum with 95% intervals.

    SUMMARIES is the output of fairseq-generate, a .jsonl file of {id, summary}, or text with one summary per line.
    Every document must have a summary. Summaries and references are normalised and split into sentences in the same
    way. A paired bootstrap gives the difference to each baseline, its interval and its p-value.

    \b
    Example:
      pyramidions score generate-test.txt --data prepared --lead --json scores.json --show 0
    """
    from pyramidions.cli.outputs import check_output
    from pyramidions.data.folder import DataFolder
    from pyramidions.files.parallel import available_cores
    from pyramidions.scoring.scores import score_documents
    from pyramidions.scoring.summaries import read_references, read_summaries

    if (data is None) == (references is None):
        raise UserError("Exactly one of --data and --references must be given.")
    if references is not None and split is not None:
        raise UserError("--split can be given only with --data.")
    if out is not None and data is not None and data.resolve() in out.resolve().parents:
        raise UserError(f"--json must not lie in the data folder {data}, but is {out}.")
    inputs = [summaries, *baseline, *([references] if references else [])]
    check_output("--json", out, "an older file of scores", inputs)
    split = _split(summaries, split)
    folder = None if data is None else DataFolder(data)
    expected = _references(folder, split) if references is None else read_references(references)
    if show is not None and show >= len(expected):
        raise UserError(f"--show must be below {len(expected)}, the number of documents, but is {show}.")
    if repeated := [path for i, path in enumerate(baseline) if path in (summaries, *baseline[:i])]:
        raise UserError(f"--baseline must name other summaries each time, but {repeated[0]} comes twice.")
    systems = {str(path): read_summaries(path, expected) for path in (summaries, *baseline)}
    if lead:
        systems[LEAD] = _lead_summaries(folder, split, lead_words)
    elif lead_words is not None:
        raise UserError("--lead-words can be given only with --lead.")
    workers = workers or available_cores()
    truth = [reference.summary for reference in expected]
    scores = {name: score_documents(texts, truth, workers=workers) for name, texts in systems.items()}
    click.echo(_table(scores))
    if out is not None:
        _write(out, scores, expected)
    if show is not None:
        click.echo(f"\n{_side_by_side(systems[str(summaries)][show], expected[show])}")


def _split(summaries: Path, asked: str | None) -> str:
    """Return the split that was asked for, or else that in the name of fairseq's output, or else test."""
    named = re.fullmatch(r"generate-(train|valid|test)\.txt", summaries.name)
    if named and asked not in (None, named[1]):
        raise UserError(f"--split must be {named[1]}, as the name of {summaries} says, but is {asked}.")
    return asked or (named[1] if named else "test")


def _references(folder: "DataFolder | None", split: str) -> "list[Reference]":
    assert folder is not None
    if folder.manifest_path.exists():
        _refuse_damaged(folder, folder.references_path(split))
    return folder.references(split)


def _refuse_damaged(folder: "DataFolder", *paths: Path) -> None:
    """Refuse files whose hash is not the manifest's: one flipped bit would give another score."""
    from pyramidions.data.manifest import file_hash

    hashes = folder.manifest["files"]
    for path in paths:
        if path.is_file() and path.name in hashes and file_hash(path) != hashes[path.name]:
            raise UserError(f"{path} is damaged: its SHA-256 is not the one in {folder.manifest_path.name}.")


def _lead_summaries(folder: "DataFolder | None", split: str, words: int | None) -> list[str]:
    """Return the first sentences of each document, decoded from its tokens; unknown characters read ⁇."""
    from pyramidions.data.indexed import IndexedReader
    from pyramidions.scoring.lead import lead

    if folder is None:
        raise UserError("--lead needs --data, which has the documents.")
    if words is None:
        train = folder.manifest["splits"].get("train")
        if train is None:
            raise UserError(f"--lead needs --lead-words, since {folder.path} has no train split.")
        words = round(train["target_words"]["mean"])
    _refuse_damaged(folder, folder.tokens_path(split, "source"), folder.tokenizer_path)
    tokenizer = folder.tokenizer()
    documents = IndexedReader(folder.indexed(split, "source"))
    # No word takes more than some pieces: the rest of a long document need not be decoded.
    enough = 20 * words
    return [lead(tokenizer.decode(documents[i][:enough]), words) for i in range(len(documents))]


def _table(scores: "dict[str, Scores]") -> str:
    from pyramidions.files.progress import counted
    from pyramidions.scoring import LABELS
    from pyramidions.scoring.scores import SMALLEST_P

    width = max(len(name) for name in [*scores, "system"])
    lines = ["  ".join([f"{'system':{width}}", *(f"{label:>20}" for label in LABELS.values())])]
    for name, rouge in scores.items():
        cells = (f"{e.mean:.2f} [{e.low:.2f}, {e.high:.2f}]" for e in rouge.estimates.values())
        lines.append("  ".join([f"{name:{width}}", *(f"{cell:>20}" for cell in cells)]))
    first, *others = scores
    for other in others:
        lines.append(f"\n{first} minus {other}, paired bootstrap:")
        for metric, d in scores[first].compare(scores[other]).items():
            sign = "<=" if d.p_value <= SMALLEST_P else "="
            interval = f"{d.difference:+6.2f} [{d.low:+.2f}, {d.high:+.2f}]"
            lines.append(f"  {LABELS[metric]:10}  {interval}  p {sign} {d.p_value:.3f}")
    documents = len(scores[first].scores)
    if documents < _FEW:
        lines.append(f"\nOnly {counted(documents, 'document')}: too few for reliable intervals and p-values.")
    lines.append(f"\n{scores[first].signature}")
    return "\n".join(lines)


def _write(out: Path, scores: "dict[str, Scores]", expected: "Sequence[Reference]") -> None:
    from pyramidions.files.atomic import atomic_file
    from pyramidions.scoring import LABELS

    first, *others = scores
    result: dict[str, Any] = {
        "signature": scores[first].signature,
        "systems": {
            name: {metric: estimate._asdict() for metric, estimate in rouge.estimates.items()}
            for name, rouge in scores.items()
        },
        "comparisons": {
            other: {m: d._asdict() for m, d in scores[first].compare(scores[other]).items()} for other in others
        },
        "documents": [
            {
                "id": reference.id,
                **{
                    name: dict(zip(LABELS, rouge.scores[index].tolist(), strict=True)) for name, rouge in scores.items()
                },
            }
            for index, reference in enumerate(expected)
        ],
    }
    with atomic_file(out) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())


def _side_by_side(summary: str, reference: "Reference") -> str:
    from pyramidions.text.normalization import normalize

    width = max(20, (min(shutil.get_terminal_size().columns, 160) - 3) // 2)
    left = ["SUMMARY", *textwrap.wrap(normalize(summary) or "(empty)", width)]
    right = ["REFERENCE", *textwrap.wrap(normalize(reference.summary), width)]
    rows = (f"{a:{width}} | {b}".rstrip() for a, b in zip_longest(left, right, fillvalue=""))
    return "\n".join([f"document {reference.id}", *rows])
