"""Kills, full disks and two processes on one folder: does anything get lost?

    python lab/benchmarks/faults.py --work work/faults --out lab/benchmarks/results/faults-cpu.json
    python lab/benchmarks/faults.py --list
    python lab/benchmarks/faults.py --only extract-trained import trainings --repeats 4

Every try harms a command of ours or a training of fairseq's, runs the same command again without harm, and compares
what stands there at last with what an undisturbed run left: weights, optimizer and place in the data bit for bit, data
folders, summaries, pages and exports byte for byte. In between, no name that a user asked for may hold a part of a
file, and at last nothing else may be left but what was put aside as damaged. A try that fails is reported in a
sentence. All presets are trained, in a tiny size.

`--repeats` says how often each command is killed by chance: at a random moment, a training after its first update; and
of a training every second time in the middle of a save. A command that has ended before is killed again, earlier.

With `--work`, an interrupted campaign goes on where it stopped. The bad inputs of tests/bad_input are counted, too:
each must end in its one sentence and leave nothing.

Where a small file system can be mounted (as root on Linux) the disk is really full. Elsewhere a limit on the size of
files stands in for it, and the result says so.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from fault_campaign import DIFFERS, HALF, LEFT, NOT_TRIED, STUCK, Campaign, Try, plan
from fault_commands import FAMILIES, commands, trainings
from fault_subjects import COMMANDS, ROOT, Materials, Subject, run
from side_by_side import parser, record

from pyramidions.base.environment import commit, versions
from pyramidions.files.atomic import hold_folder, write_file

TRAININGS = "trainings"
ALL = "all"
BAD_INPUT = "bad-input"
_FOLDER = ROOT / "tests" / "bad_input"
_TEST = "test_bad_input_ends_in_one_sentence_and_leaves_nothing["


def chosen(names: Sequence[str] | None, subjects: Sequence[Subject]) -> list[Subject]:
    """Return the subjects of these names; a group stands for all of its own.

    Args:
        names: of subjects, COMMANDS or TRAININGS; None for all.
        subjects: all that there are.
    """
    if names is None:
        return list(subjects)
    valid = [COMMANDS, TRAININGS, BAD_INPUT, *(each.name for each in subjects)]
    if unknown := next((name for name in names if name not in valid), None):
        sys.exit(f"--only must name some of {', '.join(valid)}, but names {unknown!r}.")
    group = {each.name: TRAININGS if each.trains else COMMANDS for each in subjects}
    return [each for each in subjects if each.name in names or group[each.name] in names]


def check_work(folder: Path, seed: int) -> None:
    """End with a sentence where a folder holds a campaign of other code or another seed, or one that runs."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        hold_folder(folder)
    except BlockingIOError:
        sys.exit(f"Another campaign is running in {folder} at this moment.")
    about = {"commit": commit(), "versions": versions(), "seed": seed}
    path = folder / "campaign.json"
    if not path.exists():
        write_file(path, json.dumps(about).encode())
        return
    found = json.loads(path.read_text())
    for name, value in about.items():
        if found.get(name) != value:
            sys.exit(
                f"--work must hold no campaign of another {name}, but {folder} has {found.get(name)}, not {value}."
            )


def table(tries: Sequence[Try]) -> str:
    """Return a Markdown table of how many tries held: by command and harm; of trainings by family and harm."""
    rows = pd.DataFrame([(_row(each), each.harm, each.wrong is None) for each in tries])
    rows.columns = ["command, or family of trainings", "harm", "held"]
    counts = rows.groupby([*rows.columns[:2]], sort=False).held.agg(held="sum", of="size").reset_index()
    return str(counts.to_markdown(index=False))


def _row(each: Try) -> str:
    return each.group if each.group in FAMILIES else each.command


def groups(tries: Sequence[Try]) -> str:
    """Return a Markdown table with a line for each group: what was harmed, kills, tries, and what did not hold."""
    lines = []
    for group in (*dict.fromkeys(each.group for each in tries), ALL):
        of = [each for each in tries if group in (each.group, ALL)]
        kinds = Counter(each.kind for each in of)
        counts = {"commands or presets": len({each.command for each in of}), "kills": kills(of), "tries": len(of)}
        wrong = {"held": kinds[None], "parts that look whole": kinds[HALF], "silent differences": kinds[DIFFERS]}
        lines.append({"group": group, **counts, **wrong})
    return str(pd.DataFrame(lines).to_markdown(index=False))


def kills(tries: Sequence[Try]) -> int:
    """Return how many were killed, and did not end before."""
    return sum(each.harm.startswith("killed") and each.kind != NOT_TRIED for each in tries)


def counted_cases() -> int:
    """Return how many cases there are."""
    return len((_FOLDER / "cases.jsonl").read_text().splitlines())


def bad_input(folder: Path) -> dict[str, Any]:
    """Run the cases as the tests do; return how many there are, how many held, and the names of the others.

    Args:
        folder: where what came out is kept, and not found again.
    """
    kept = folder / "bad-input.json"
    if not kept.exists():
        print(f"running {counted_cases()} bad inputs", flush=True)
        with tempfile.TemporaryDirectory() as made:
            report = Path(made) / "report.xml"
            done = run(["python", "-m", "pytest", "-q", "-n", "0", f"--junitxml={report}", str(_FOLDER)])
            if not report.exists():
                sys.exit(f"The cases of bad input do not run:\n{done.output}")
            found = outcomes(report)
        if found["cases"] != counted_cases():
            sys.exit(f"{found['cases']} of {counted_cases()} bad inputs were run:\n{done.output}")
        write_file(kept, json.dumps(found).encode())
    return dict(json.loads(kept.read_text()))


def outcomes(report: Path) -> dict[str, Any]:
    """Return what a JUnit file of pytest says of the cases; one that was skipped did not hold."""
    cases = [each for each in ElementTree.parse(report).iter("testcase") if each.get("name", "").startswith(_TEST)]
    wrong = [each.get("name", "").removeprefix(_TEST)[:-1] for each in cases if len(each.findall("*"))]
    return {"cases": len(cases), "held": len(cases) - len(wrong), "wrong": wrong}


def main() -> None:
    """Run the campaign."""
    made: argparse.ArgumentParser = parser(__doc__, "faults", repeats=2, devices=False)
    made.add_argument("--work", type=Path, help="keep what is done in this folder, and go on there (default: none)")
    made.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help=f"such as summarize, hourglass_gumbel, {COMMANDS}, {TRAININGS} or {BAD_INPUT} (default: all)",
    )
    made.add_argument("--list", action="store_true", help="show all names, and how many tries each has")
    args = made.parse_args()
    if args.work is None and not args.list:
        with tempfile.TemporaryDirectory() as folder:
            _run(args, Path(folder))
    else:
        _run(args, args.work or Path())


def _run(args: argparse.Namespace, folder: Path) -> None:
    materials = Materials((folder / "materials").absolute())
    every = [*commands(materials), *trainings(materials)]
    subjects = chosen(args.only, every)
    planned = plan(subjects, args.repeats, args.seed)
    if args.list:
        counts = Counter(each.subject.name for each in planned)
        for each in subjects:
            print(f"{each.name:24} {counts[each.name]:3} tries  {each.group}")
        print(f"{len(planned)} tries; {BAD_INPUT}: {counted_cases()} cases")
        return
    check_work(folder, args.seed)
    bad = bad_input(folder) if args.only is None or BAD_INPUT in args.only else None
    tries = Campaign(folder.absolute(), args.seed).tries(planned)
    held = sum(each.wrong is None for each in tries)
    disks = sorted({each.disk for each in tries if each.disk})
    kinds = Counter(each.kind for each in tries)
    print(f"\n{table(tries)}\n\n{groups(tries)}\n")
    print(f"{held} of {len(tries)} held, {kills(tries)} of them killed. Full disks: {', '.join(disks) or 'not tried'}.")
    if bad is not None:
        print(f"{bad['held']} of {bad['cases']} bad inputs end in their sentence and leave nothing.")
    record(
        args,
        held=held,
        kills=kills(tries),
        wrong={kind: kinds[kind] for kind in (HALF, STUCK, DIFFERS, LEFT, NOT_TRIED)},
        bad_input=bad,
        full_disks=disks,
        tries=[asdict(each) for each in tries],
    )
    if args.check and (held < len(tries) or (bad is not None and bad["held"] < bad["cases"])):
        sys.exit(1)


if __name__ == "__main__":
    main()
