"""The campaign of faults tells a program that does wrong: its own logic, on programs of a few lines."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fairseq_commands import run as run_program

BENCHMARKS = Path(__file__).parent.parent / "lab/benchmarks"
HEAD = "import os, sys, time\nfrom pathlib import Path\nout = Path(sys.argv[1]) / 'made.txt'\n"
# What is written appears at once.
RIGHT = "part = out.with_name('.part')\npart.write_text('whole\\n' * 9)\npart.replace(out)\n"
# Half of it, then the rest a second later.
IN_PLACE = "with out.open('w') as f:\n    f.write('half')\n    f.flush()\n    time.sleep(1)\n    f.write('whole')\n"
# A run that finds something of another one goes on from it, and forgets that there was half.
OTHERWISE = (
    "seen = out.with_name('.part')\nfirst = not seen.exists()\nseen.write_text('')\ntime.sleep(0.5)\n"
    "text = 'whole' if first else 'other'\nseen.write_text(text)\nseen.replace(out)\n"
)
STUCK = (
    "lock = out.with_name('lock')\nlock.open('x').close()\ntime.sleep(0.5)\nout.write_text('whole')\nlock.unlink()\n"
)
LEAVES = "part = out.with_name(f'part-{os.getpid()}')\npart.write_text('whole')\ntime.sleep(0.5)\npart.replace(out)\n"
# It does not see that nothing was written.
DEAF = (
    "part = out.with_name('.part')\ntry:\n    part.write_text('whole\\n' * 9)\nexcept OSError:\n    pass\n"
    "part.replace(out)\n"
)
Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def of_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def subject(tmp_path: Path) -> Make:
    """Makes a subject of a few lines of Python."""
    from fault_subjects import Subject, absent_or_like, same

    def make(code: str, *calls: tuple[str, str, str, int], **changes: Any) -> Any:
        script = tmp_path / "program.py"
        script.write_text(f"#!{sys.executable}\n{HEAD}{code}")
        script.chmod(0o755)
        made = Subject(
            "it", "commands", lambda out: [str(script), str(out)], ("made.txt",), same, absent_or_like, calls
        )
        return replace(made, **{"twice": False, **changes})

    return make


def outcomes(folder: Path, subject: Any, repeats: int = 0, seed: int = 1) -> Iterator[tuple[str, str | None]]:
    """Harm a subject; yield each harm with the kind of what did not hold."""
    from fault_campaign import Campaign, plan

    for each in Campaign(folder / "work", seed).tries(plan([subject], repeats, seed)):
        yield each.harm, each.kind


KILL_AT_END = ("kill", "os.rename", "*.part", 1)
FULL = ("full", "open", "*part*", 1)


def test_a_program_that_writes_whole_files_holds(subject: Make, tmp_path: Path) -> None:
    assert list(outcomes(tmp_path, subject(RIGHT, KILL_AT_END), repeats=2)) == [
        ("killed at a random moment", None),
        ("killed at a random moment", None),
        ("killed at a chosen call", None),
    ]
    assert not list((tmp_path / "work" / "places").iterdir())


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (IN_PLACE, "a part that looks whole"),
        (OTHERWISE, "a silent difference"),
        (STUCK, "neither resumed nor ended in a sentence"),
        (LEAVES, "something left behind"),
    ],
)
def test_what_does_not_hold_after_a_kill_is_told_by_its_kind(
    subject: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, kind: str
) -> None:
    # As soon as a first file is there
    monkeypatch.setattr("fault_campaign.moment", lambda each, seed, began, took: began + 0.1)
    assert list(outcomes(tmp_path, subject(code), repeats=1)) == [("killed at a random moment", kind)]


def test_a_full_disk_that_goes_unnoticed_is_told(subject: Make, tmp_path: Path) -> None:
    assert list(outcomes(tmp_path, subject(DEAF, FULL))) == [("disk full", "a part that looks whole")]
    (tries,) = json.loads((tmp_path / "work" / "tries.json").read_text()).values()
    assert tries["wrong"] == "ended with status 0, as if nothing were wrong" and tries["disk"]


def test_of_our_commands_a_full_disk_must_end_in_a_sentence() -> None:
    from fault_campaign import no_sentence

    assert no_sentence(["pyramidions"], "Error: a.txt: No space left on device\n") is None
    assert no_sentence(["pyramidions"], "Traceback (most recent call last):\nError: no\n")
    assert no_sentence(["pyramidions"], "Killed\n") == "without a sentence: Killed"
    assert no_sentence(["fairseq-train"], "OSError: no\n") is None


def test_a_call_that_is_not_reached_is_no_kill(subject: Make, tmp_path: Path) -> None:
    from fault_campaign import Campaign, plan
    from faults import kills

    never = ("kill", "os.rename", "*.part", 2)
    tries = Campaign(tmp_path / "work", 1).tries(plan([subject(RIGHT, never)], 0, 1))
    assert [each.kind for each in tries] == ["could not be tried"] and kills(tries) == 0


@pytest.mark.parametrize("seed", range(3))
def test_of_drawn_calls_one_that_is_reached_strikes(subject: Make, tmp_path: Path, seed: int) -> None:
    from fault_campaign import Campaign, plan

    never = ("kill", "os.rename", "*.part", 2)
    training = subject(RIGHT, group="extractors", drawn=(never, KILL_AT_END))
    (drawn,) = (each for each in plan([training], 2, seed) if each.way == "kill")
    (found,) = Campaign(tmp_path / "work", seed).tries([drawn])
    assert (found.kind, found.where) == (None, "os.rename of *.part, no. 1")


def test_a_kill_that_comes_too_late_is_tried_again_earlier(
    subject: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fault_campaign import Campaign, plan

    monkeypatch.setattr("fault_campaign.moment", lambda *_: 40.0)
    monkeypatch.setattr("fault_campaign.EARLIER", 0.001)
    (made,) = Campaign(tmp_path / "work", 1).tries(plan([subject(RIGHT)], 1, 1))
    # On a busy machine the second run, too, may end before it is killed.
    assert (made.harm, made.kind) == ("killed at a random moment", None) and made.runs > 1
    monkeypatch.setattr("fault_campaign.EARLIER", 1.0)
    (made,) = Campaign(tmp_path / "other", 1).tries(plan([subject(RIGHT)], 1, 1))
    assert (made.harm, made.kind, made.runs) == ("ended before it was killed", "could not be tried", 8)


def test_a_training_that_goes_on_after_its_end_is_told(subject: Make, tmp_path: Path) -> None:
    more = "with out.open('a') as f:\n    f.write('more')\n"
    done = "out.exists() and sys.exit()\n"
    harm = "started again after its end"
    changes = {"group": "extractors"}
    assert list(outcomes(tmp_path / "1", subject(more, **changes))) == [(harm, "a silent difference")]
    assert list(outcomes(tmp_path / "2", subject(done + more, **changes))) == [(harm, None)]


def test_a_program_that_fails_by_itself_is_told_and_tried_again_in_the_next_sitting(
    subject: Make, tmp_path: Path
) -> None:
    from fault_campaign import Campaign, plan

    folder, harm = tmp_path / "work", "killed at a chosen call"
    broken = plan([subject("sys.exit('no such file')", KILL_AT_END, FULL)], 0, 1)
    found = Campaign(folder, 1).tries(broken)
    assert [each.kind for each in found] == ["could not be tried"] * 2
    assert found[1].wrong == "without any harm, it ends with status 1: no such file"
    (found,) = Campaign(folder, 1).tries(plan([subject(RIGHT, KILL_AT_END, made=("other.txt",))], 0, 1))
    assert found.wrong == "without any harm, it does not make other.txt"
    assert list(outcomes(tmp_path, subject(RIGHT, KILL_AT_END))) == [(harm, None)]


def test_half_of_the_kills_of_a_training_strike_a_save(subject: Make) -> None:
    from fault_campaign import plan

    training = subject(RIGHT, group="extractors", drawn=(KILL_AT_END,))
    planned = plan([training], 4, seed=1)
    assert [each.way for each in planned] == ["random", "kill", "random", "kill", "again"]
    assert len({each.key for each in planned}) == 5


def test_a_campaign_goes_on_where_it_stopped(subject: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harmed = subject(RIGHT + "log = Path(sys.argv[0] + '.log').open('a')\nlog.write('run\\n')\n", KILL_AT_END)
    log = tmp_path / "program.py.log"
    first = list(outcomes(tmp_path, harmed))
    # The undisturbed run, and the one after the kill
    assert log.read_text().count("run") == 2
    # As one that was killed leaves it
    (tmp_path / "work" / "places" / "left").mkdir(parents=True)
    assert list(outcomes(tmp_path, harmed)) == first and log.read_text().count("run") == 2
    assert "1 of 1 tries are done; going on." in capsys.readouterr().out
    assert not (tmp_path / "work" / "places").exists()
    assert len(list(outcomes(tmp_path, harmed, repeats=1))) == 2 and log.read_text().count("run") == 3


def test_kills_are_counted_by_group_and_those_that_came_too_late_are_not() -> None:
    from fault_campaign import DIFFERS, NOT_TRIED, Try
    from faults import groups, kills, table

    tries = [
        Try("average", "commands", "killed at a random moment"),
        Try("average", "commands", "ended before it was killed", "", NOT_TRIED, "it ended 8 times"),
        Try("vanilla", "other summarizers", "killed while copying", "x", DIFFERS, "it differs"),
        Try("lsh", "other summarizers", "killed while copying", "x"),
    ]
    assert kills(tries) == 3
    assert ["other summarizers", "killed while copying", "1", "2"] in cells(table(tries))
    assert cells(groups(tries))[2:] == [
        ["commands", "1", "1", "2", "1", "0", "0"],
        ["other summarizers", "2", "2", "2", "1", "0", "1"],
        ["all", "3", "3", "4", "2", "0", "1"],
    ]


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_names_are_checked_before_any_work(tmp_path: Path) -> None:
    done = run_program("python", BENCHMARKS / "faults.py", "--only", "average", "no", "--work", tmp_path / "work")
    assert done.returncode == 1 and not (tmp_path / "work").exists()
    (line,) = done.stdout.splitlines()
    assert line.startswith("--only must name some of commands, trainings, bad-input, fairseq-generate, prepare, ")
    assert line.endswith(", but names 'no'.")


def test_every_preset_is_trained() -> None:
    from fault_commands import FAMILIES, trainings
    from fault_subjects import Materials

    from pyramidions.models import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS

    made = trainings(Materials(Path("nowhere")))
    assert {each.name for each in made} >= {*PRESETS, *EXTRACTOR_PRESETS, *LANGUAGE_MODEL_PRESETS}
    assert {each.group for each in made} == set(FAMILIES)


def test_there_are_a_hundred_kills_and_names_tell_all_subjects_apart(capsys: pytest.CaptureFixture[str]) -> None:
    from fault_campaign import plan
    from fault_commands import commands, trainings
    from fault_subjects import Materials
    from faults import chosen

    materials = Materials(Path("nowhere"))
    every = [*commands(materials), *trainings(materials)]
    assert len({each.name for each in every}) == len(every)
    assert sum("kill" in each.harm for each in plan(every, 2, 1)) >= 100
    assert chosen(["trainings"], every) == trainings_of(every) and chosen(None, every) == every
    assert [each.name for each in chosen(["average", "lsh"], every)] == ["average", "lsh"]
    assert chosen(["bad-input"], every) == []


def trainings_of(every: list[Any]) -> list[Any]:
    return [each for each in every if each.group != "commands"]


def test_a_folder_of_another_campaign_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import faults

    monkeypatch.setattr(faults, "commit", lambda: "1f2e")
    faults.check_work(tmp_path, 1)
    faults.check_work(tmp_path, 1)
    with pytest.raises(SystemExit, match=f"--work must hold no campaign of another seed, but {tmp_path} has 1, not 2"):
        faults.check_work(tmp_path, 2)
    monkeypatch.setattr(faults, "commit", lambda: "3d4c")
    with pytest.raises(SystemExit, match="no campaign of another commit, but .* has 1f2e, not 3d4c"):
        faults.check_work(tmp_path, 1)


def test_bad_inputs_that_fail_or_are_skipped_are_told(tmp_path: Path) -> None:
    from faults import outcomes

    name = "test_bad_input_ends_in_one_sentence_and_leaves_nothing"
    (tmp_path / "report.xml").write_text(
        f'<testsuites><testsuite><testcase name="{name}[a]"/><testcase name="{name}[b]"><failure/></testcase>'
        f'<testcase name="{name}[c]"><skipped/></testcase><testcase name="another"/></testsuite></testsuites>'
    )
    assert outcomes(tmp_path / "report.xml") == {"cases": 3, "held": 1, "wrong": ["b", "c"]}
