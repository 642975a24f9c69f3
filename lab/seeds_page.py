"""What the report says of rows that were trained for several seeds: a table of figures, and one line a seed as CSV."""

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from lab.catalogue import PaperRow, is_trained, rows_of
from lab.notes import TITLES
from lab.paper_tables import NOT_RUN, cell, lengths
from lab.scale import SCALES
from lab.seeds import ROUGE, SeededRow, reference_of
from pyramidions.files.progress import counted
from pyramidions.scoring.scores import Estimate

#: How to read the tables.
LEGEND = (
    "Rows are compared with each other, not with the paper: models and lengths are smaller than its, and each was "
    "trained for as many updates, those to learn copying included.",
    "Every figure is a mean over documents and seeds, with a 95% bootstrap interval in brackets that draws both anew. "
    "Few seeds make it too narrow rather than too wide.",
    "“loss” is that of summaries of validation documents in nats a token, and “another document costs” how much higher "
    "it is where the model reads the next document instead. Around 0, the model does not read: then its loss says "
    "nothing about its architecture.",
    "“loss over” is the difference to the row behind it, blockwise with as many tokens, paired by document, over the "
    "seeds that both have, as in the last table; below 0 is better. Without a seed in common, or with different "
    "documents, rows are not comparable.",
    "“R-1”, “R-2” and “R-L” are ROUGE of summaries of the test documents in percent; “R-L” is the summary-level one.",
    "“minutes” are those of a training from nothing on, from the fastest to the slowest seed; rows may share "
    "the copying. “GiB” is the highest peak of memory after it: of the process on a CPU, of what it allocated on a "
    "GPU.",
)
_HEADS = (
    *("row", "architecture", "encoder → decoder", "seeds", "updates", "loss", "loss over", "another document costs"),
    *("R-1", "R-2", "R-L", "minutes", "GiB"),
)


class Section(NamedTuple):
    """A table of the page: its heading, and its lines."""

    title: str
    lines: list[str]


def sections(catalogue: Sequence[PaperRow], rows: Sequence[SeededRow]) -> list[Section]:
    """Return a table for each table of the papers that has such rows."""
    found = []
    for table in TITLES:
        members = {(row.data, row.config): row for row in rows_of(list(catalogue), table)}
        chosen = [
            SeededRow(members[key], row.results, row.losses, row.scores)
            for row in rows
            if (key := (row.row.data, row.row.config)) in members
        ]
        # Table 10 and figure 4 have rows of others, and times only.
        if chosen and is_trained(table):
            chosen.sort(key=lambda row: list(members).index((row.row.data, row.row.config)))
            found.append(Section(TITLES[table], _table(chosen, rows)))
    return found


def differences(rows: Sequence[SeededRow]) -> Section | None:
    """Return how much higher the loss of each row is than that of each better one; None without two to compare."""
    known = sorted((row for row in rows if row.losses), key=lambda row: row.estimates["own"].mean)
    if len(known) < 2:
        return None
    lines = [
        *_lines(["loss above", *(f"{cell(row.name)} {cell(row.row.architecture)}" for row in known[:-1])], texts=1),
        *(
            _line(
                f"{cell(row.name)} {cell(row.row.architecture)}",
                *(_difference(row, other) if place > column else "" for column, other in enumerate(known[:-1])),
            )
            for place, row in enumerate(known)
            if place
        ),
    ]
    return Section("Losses of all rows: row minus column", lines)


def _difference(row: SeededRow, other: SeededRow) -> str:
    above = row.loss_above(other)
    return "not comparable" if above is None else shown(above, 3)


def _table(chosen: Sequence[SeededRow], rows: Sequence[SeededRow]) -> list[str]:
    return [*_lines(_HEADS, texts=3), *(_line(*_cells(row, rows)) for row in chosen)]


def _lines(heads: Sequence[str], texts: int) -> list[str]:
    """Return the head of a table whose columns behind the first ``texts`` are numbers."""
    return [_line(*heads), _line(*("---:" if number >= texts else "---" for number in range(len(heads))))]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(seeded: SeededRow, rows: Sequence[SeededRow]) -> list[str]:
    row, found, minutes = seeded.row, seeded.estimates, seeded.minutes
    reference = reference_of(seeded, rows)
    above = seeded.loss_above(reference) if reference else None
    return [
        *(cell(row.row), cell(row.architecture), lengths(row, SCALES[seeded.scale].lengths)),
        ", ".join(map(str, seeded.results)),
        NOT_RUN if seeded.updates is None else f"{seeded.updates:,}",
        shown(found.get("own"), 3),
        "–" if above is None or reference is None else f"{shown(above, 3)} {cell(reference.name)}",
        shown(found.get("cost"), 3),
        *(shown(found.get(name), 2) for name in ROUGE),
        f"{min(minutes):.1f} to {max(minutes):.1f}" if minutes else NOT_RUN,
        NOT_RUN if seeded.memory is None else f"{seeded.memory / 2**30:.2f}",
    ]


def summary(rows: Sequence[SeededRow]) -> str:
    """Say how much was run."""
    seeds = sorted({seed for row in rows for seed in row.results})
    return f"{counted(len(rows), 'row')} compared with each other, seeds {', '.join(map(str, seeds))}."


def warnings(rows: Sequence[SeededRow]) -> list[str]:
    """Return what forbids a comparison of rows, each in a few sentences."""
    results = [result for row in rows for result in row.results.values()]
    found = []
    if any(result.scale == "tiny" for result in results):
        found.append("**Tiny models.** Their figures say nothing about architectures, only that every row runs.")
    if len({row.updates for row in rows if row.updates is not None}) > 1 or None in {row.updates for row in rows}:
        found.append("**Unequal updates.** Trainings differ in their updates: a lower loss may come from more of them.")
    if len({tuple(row.results) for row in rows}) > 1:
        found.append("**Unequal seeds.** Not every row was trained for all seeds yet.")
    if len({part.hardware for result in results for part in (result, result.start) if part}) > 1:
        found.append("**Mixed hardware.** Do not compare minutes and memory of trainings on different machines.")
    if any(
        len({r.data_hash for r in results if r.data == data and r.data_hash}) > 1 for data in {r.data for r in results}
    ):
        found.append("**Mixed data.** Results on one corpus come from different preparations of it.")
    return found


def missing(rows: Sequence[SeededRow]) -> list[str]:
    """Return what seeds of rows lack, a line for each."""
    found = []
    for row in rows:
        for seed, result in row.results.items():
            parts = {"training": result.training, "loss": result.losses, "scores": result.scores}
            if lacking := [name for name, part in parts.items() if part is None]:
                found.append(f"{cell(row.row.config)} on {row.row.data}, seed {seed}: {', '.join(lacking)} {NOT_RUN}")
    return found


def shown(found: Estimate | None, digits: int) -> str:
    """Return a mean with its interval; "not run" if there is none."""
    if found is None:
        return NOT_RUN
    mean, low, high = (f"{number:.{digits}f}".replace("-", "−") for number in found)
    return f"{mean} [{low}, {high}]"


def by_seed(rows: Sequence[SeededRow]) -> str:
    """Return one line a row and seed as CSV; what was not run is empty."""
    buffer = io.StringIO()
    names = ("loss", "another_document", "cost", *ROUGE)
    head = (
        "table",
        "row",
        "config",
        "data",
        "scale",
        "seed",
        "updates",
        "minutes",
        "memory_bytes",
        "memory_of",
        *names,
    )
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    for seeded in rows:
        for seed, result in seeded.results.items():
            alone = SeededRow(seeded.row, {seed: result})
            losses, scores = result.losses, result.scores
            found = {
                **({"loss": losses.own, "another_document": losses.another, "cost": losses.cost} if losses else {}),
                **({name: scores.figures[name] for name in ROUGE} if scores else {}),
            }
            row, memory = seeded.row, result.memory
            writer.writerow(
                [
                    *(row.table, row.row, row.config, row.data, result.scale, seed),
                    "" if alone.updates is None else alone.updates,
                    f"{alone.minutes[0]:.2f}" if alone.minutes else "",
                    *((memory.bytes, memory.of) if memory else ("", "")),
                    *(f"{found[name].value:.6g}" if name in found else "" for name in names),
                ]
            )
    return buffer.getvalue()
