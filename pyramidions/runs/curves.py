"""Curves of trainings, from what ``fairseq-train --log-format json`` printed; and how all our plots are drawn."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyramidions.base.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Split of the training curve; a validation curve has the name of its subset, such as "valid".
TRAIN = "train"
#: fairseq's name of the means over intervals.
INTERVAL = "train_inner"
_LONGEST = 1 << 16  # characters of a line; fairseq's have about a thousand
_KEPT = re.compile(r"(?:nll_)?loss|rouge\w{0,20}|sharpness_\d{1,4}", re.ASCII)
#: The label of a panel, and how its measures begin.
_PANELS = {"loss": ("loss", "nll_loss"), "ROUGE": ("rouge",), "sharpness": ("sharpness_",)}
_STYLES = ("-", "--", ":", "-.")


class Record(NamedTuple):
    """What a line says: its split, the last update that it is about, and its numbers by measure."""

    split: str
    update: int
    values: dict[str, float]


def read_record(line: str) -> Record | None:
    """Return the numbers in a line of a log in JSON; None if it has none."""
    begin = line.find('{"epoch"')
    if begin < 0:
        return None
    try:
        texts = json.loads(line[begin:], parse_int=float)
    except (ValueError, RecursionError):
        return None  # torn by a kill
    split = INTERVAL
    if ends := [name for name in texts if name.endswith("_num_updates")]:
        # At the end of an epoch, names begin with the split. Only training tells how long it took.
        split = ends[0].removesuffix("_num_updates")
        texts = {name.removeprefix(f"{split}_"): text for name, text in texts.items()}
        if split in (TRAIN, INTERVAL) and "wall" not in texts:
            split = f"{split} (validation)"
    values = {name: _number(text) for name, text in texts.items() if name == "num_updates" or _KEPT.fullmatch(name)}
    update = values.pop("num_updates", -1)
    if "loss" in values:
        values.pop("nll_loss", None)
    return Record(split, round(update), values) if values and 0 <= update < 1e12 else None


def _number(text: object) -> float:
    try:
        return float(text) if isinstance(text, (str, float)) else float("nan")
    except ValueError:
        return float("nan")


def _records(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in iter(partial(file.readline, _LONGEST), ""):
            if record := read_record(line):
                yield record


def read_curves(run: Path) -> "pd.DataFrame":
    """Read the curves of a run: split, measure, updates and value, in the order of updates.

    fairseq logs means over intervals and over epochs; the training curve has whichever are more. Where updates go back,
    a killed run was resumed, and what it had done after its checkpoint is dropped. Values that are not finite stay.

    Args:
        run: a log, or a folder: its train.log, else the only log of a training in it or below.

    Raises:
        UserError: there is no log of a training, or several.
    """
    import pandas as pd

    usual = run / "train.log"
    logs = [run] if run.is_file() else [usual] if usual.is_file() else sorted(run.glob("**/*.log"))
    found = {log: records for log in logs if (records := list(_records(log)))}
    if len(found) != 1:
        named = f": choose among {', '.join(map(str, found))}" if found else " with a line of --log-format json"
        raise UserError(f"RUN must be or hold one log of fairseq-train, but {run} holds {len(found) or 'none'}{named}.")
    kept: list[Record] = []
    for record in next(iter(found.values())):
        if kept and record.update < kept[-1].update:
            kept = [before for before in kept if before.update < record.update]
        kept.append(record)
    points = pd.DataFrame(
        [(split, measure, update, value) for split, update, values in kept for measure, value in values.items()],
        columns=["split", "measure", "updates", "value"],
    ).drop_duplicates(["split", "measure", "updates"], keep="last")
    for measure in points.measure[points.split == INTERVAL].unique():
        of_measure = points.measure == measure
        fine, coarse = of_measure & (points.split == INTERVAL), of_measure & (points.split == TRAIN)
        points = points[~(coarse if fine.sum() >= coarse.sum() else fine)]
    return points.replace({"split": {INTERVAL: TRAIN}}).reset_index(drop=True)


def run_names(runs: Sequence[Path]) -> list[str]:
    """Return a name for each run: its path below the folder that all share; train.log is called after its folder."""
    paths = [str(run.absolute()).removesuffix("/train.log").removesuffix(".log") for run in runs]
    shared = os.path.commonpath([str(Path(path).parent) for path in paths])
    names = [os.path.relpath(path, shared) for path in paths]
    names = names if len(set(names)) == len(names) else [str(run) for run in runs]
    return [os.fsencode(name).decode(errors="replace").replace("\n", " ") for name in names]


def draw_training(points: "pd.DataFrame", kind: Literal["png", "svg"]) -> bytes:
    """Draw the curves of runs: a panel each for loss, ROUGE and sharpness, without those that have no data.

    A run has a colour, a measure or a layer a line style. The training curve is thin, validation has markers.

    Args:
        points: run, split, measure, updates and value, as `read_curves` returns them.
        kind: the format.
    """
    panels = {label: points[points.measure.str.startswith(begin)] for label, begin in _PANELS.items()}
    panels = {label: part for label, part in panels.items() if len(part)}
    figure = new_figure(9.5, 0.7 + 2.7 * len(panels))
    colours = {run: f"C{number}" for number, run in enumerate(points.run.unique())}
    axes = figure.subplots(len(panels), squeeze=False, sharex=True).flat
    for ax, (label, part) in zip(axes, panels.items(), strict=True):
        styles = {measure: _STYLES[number % len(_STYLES)] for number, measure in enumerate(part.measure.unique())}
        for (run, split, measure), curve in part.groupby(["run", "split", "measure"], sort=False):
            trains = split == TRAIN
            look = {"marker": "." if trains and len(curve) > 1 else "o", "linewidth": 0.8 if trains else 1.4}
            look |= {"markersize": 1 if trains else 4, "color": colours[run], "linestyle": styles[measure]}
            curve.plot("updates", "value", ax=ax, label=literal(f"{run}: {split} {measure}"), **look)
        if label == "loss" and 0 < 2 * part.value.min() < part.value.max():
            # Runs differ at their ends, which a steep beginning would flatten.
            ax.set_yscale("log")
        ax.set(ylabel=label, xlabel="updates")
        ax.grid(alpha=0.4)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="x-small")
    return image(figure, kind)


def literal(text: str) -> str:
    """Return text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    return Figure((width, height), layout="constrained", facecolor="white")


def image(figure: "Figure", kind: str = "png") -> bytes:
    """Return a figure as "png" or "svg"; the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # By default an SVG has random ids and the date.
    with rc_context({"svg.hashsalt": "pyramidions"}):
        figure.savefig(buffer, format=kind, dpi=140, metadata={"Date": None} if kind == "svg" else {})
    return buffer.getvalue()
