"""Gathers what the steps of a row left in its result.json."""

import json
from pathlib import Path
from typing import Any

from lab.catalogue import ORDER, PaperRow
from lab.plan import Planner
from pyramidions.data.folder import DataFolder
from pyramidions.files.archive import is_whole_checkpoint
from pyramidions.files.atomic import write_file
from pyramidions.files.run_facts import RunFacts
from pyramidions.scoring import FIGURES


def write_result(planner: Planner, row: PaperRow, seed: int) -> None:
    """Write result.json of a row from the steps that are done; do nothing if none is.

    Commit, versions and hardware are noted with each step, and later runs do not change them. Hardware and versions are
    those of the first step, commits are those of all steps.
    """
    folder = planner.folder(row)
    done = planner.score(row).state.facts["done"]
    ran: dict[str, Any] = {name: done[name] for name in ORDER if name in done}
    if not ran:
        return
    first = next(iter(ran.values()))
    timed = bool(ran.keys() & {"time", "time-training"})
    result = {
        "config": row.config,
        "data": row.data,
        "corpus": _corpus(planner.data(row.corpus)) if "train" in ran and not row.is_of_characters else None,
        "scale": planner.scale.name,
        "data_hash": next((step["made_from"]["data"] for step in ran.values() if "data" in step["made_from"]), None),
        "commit": ", ".join(dict.fromkeys(step["commit"] for step in ran.values())),
        "versions": first["versions"],
        "hardware": first["hardware"],
        "seed": seed,
        "training": training(folder / "checkpoints" / "checkpoint_last.pt") if "train" in ran else None,
        "memory": ran.get("train", {}).get("memory"),
        "language": json.loads((folder / "test.json").read_text()) if "test" in ran else None,
        "losses": _losses(folder / "losses.json") if "loss" in ran else None,
        "generation": {"seconds": ran["generate"]["seconds"]} if "generate" in ran else None,
        "scores": _scores(folder / "scores.json") if "score" in ran else None,
        "times": _times(folder, planner.scale.decode_tokens) if timed else None,
    }
    write_file(folder / "result.json", (json.dumps(result, indent=1) + "\n").encode())


def training(path: Path) -> dict[str, Any] | None:
    """Return what the checkpoint of a run says about it; None if it is damaged or not of a run."""
    facts = RunFacts.of(path) if is_whole_checkpoint(path) else None
    if facts is None:
        return None
    best = None if facts.best is None else {"metric": facts.metric, "value": facts.best}
    return {"seconds": facts.seconds, "updates": facts.updates, "epochs": facts.epochs, "best": best}


def _corpus(folder: Path) -> dict[str, Any]:
    splits = DataFolder(folder).manifest["splits"]
    return {"name": folder.name, "documents": {name: split["documents"] for name, split in splits.items()}}


def _losses(path: Path) -> dict[str, Any]:
    """Return the losses without those of each document, which stay in their file."""
    losses = json.loads(path.read_text())
    return {name: losses[name] for name in ("split", "own", "another", "cost", "copied") if name in losses}


def _scores(path: Path) -> dict[str, Any]:
    scores = json.loads(path.read_text())
    ours = next(iter(scores["systems"].values()))
    return {"signature": scores["signature"], **{name: ours[name] for name in ours if name in FIGURES}}


def _times(folder: Path, decode_tokens: tuple[int, int]) -> dict[str, Any] | None:
    """Return the times of a row, and their ratios to those of its reference."""
    times: dict[str, Any] | None = None
    for name in ("training-times.json", "times.json"):
        path = folder / name
        if path.is_file():
            told = json.loads(path.read_text())
            own = told["configs"][-1]
            kept = {key: told[key] for key in ("repeats", "train_batch", "decode_batch", "precision")}
            kept |= {"reference": told["configs"][0]["config"], "device": told["hardware"]["device"]}
            times = {"decode_tokens": list(decode_tokens), **kept}
            for phase in ("train_step", *(f"decode_{tokens}" for tokens in decode_tokens)):
                if phase in own:
                    numbers = {key: own[phase][key] for key in ("mean", "standard_deviation", "median")}
                    times[phase] = {**numbers, "ratio_to_reference": own[phase]["ratio_to_first"]}
    return times
