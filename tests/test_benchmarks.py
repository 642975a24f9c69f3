"""The programs in lab/benchmarks/: the tables of their pages say what made them; nightly, they run in a small size."""

import argparse
import contextlib
import csv
import hashlib
import io
import json
import re
import runpy
import shlex
from pathlib import Path

import pytest
from fairseq_commands import finish

BENCHMARKS = Path(__file__).parent.parent / "lab/benchmarks"
RESULTS = BENCHMARKS / "results"
PAGES = sorted(BENCHMARKS.glob("*.md"))
TINY = ["--tiny", "--repeats", 2]
Rows = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(autouse=True)
def with_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)


def table(program: str, folder: Path, *flags: object) -> tuple[Rows, str]:
    """Run a program; return the rows of its table by row and measure, and what it printed."""
    from figures import read

    printed = finish("python", BENCHMARKS / program, *flags, "--out", folder / "page.csv", "--table", "it")
    return read(folder / "page.csv", "it"), printed


def values(rows: Rows, measure: str) -> dict[str, float]:
    """Return one measure of the rows that have it."""
    return {row: float(each["value"]) for (row, what), each in rows.items() if what == measure}


def test_every_command_of_the_pages_parses_and_every_link_leads_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = argparse.ArgumentParser.parse_args

    def only_parse(parser: argparse.ArgumentParser) -> None:
        parse(parser)
        raise SystemExit(0)

    monkeypatch.setattr("argparse.ArgumentParser.parse_args", only_parse)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!https://)([^)#]+)[^)]*\)", text):
            assert (page.parent / link).exists(), link
        for block in re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                program = re.search(r"python (lab/benchmarks/\w+\.py)(.*)", line)
                if program and not re.search("# at [0-9a-f]{8}$", line):
                    monkeypatch.setattr("sys.argv", [program[1], *shlex.split(program[2])])
                    with pytest.raises(SystemExit) as ended:
                        runpy.run_path(str(BENCHMARKS.parent.parent / program[1]), run_name="__main__")
                    assert ended.value.code == 0, line


def test_every_table_of_the_pages_says_what_made_it() -> None:
    def cells(path: Path) -> list[dict[str, str]]:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    runs = {each["table"]: each for each in cells(RESULTS / "runs.csv")}
    pages = {
        path.stem: {each["table"] for each in cells(path)} for path in RESULTS.glob("*.csv") if path.stem != "runs"
    }
    tables = [name for page in pages.values() for name in page]
    assert sorted(tables) == sorted(runs) and len(tables) == len(set(tables))
    assert all(each["command"] and each["commit"] for each in runs.values())


def test_a_table_takes_the_place_of_the_older_one_and_others_stay(tmp_path: Path) -> None:
    from figures import Entry, read, save

    def keep(table: str | None, *entries: Entry) -> None:
        save(argparse.Namespace(out=tmp_path / "page.csv", table=table, name="speed", seed=3, device="cpu"), entries)

    keep("a", Entry("x", "seconds", 2.0, 1.5, 2.123456789, unit="s"), Entry("y", "note", "too long"))
    keep("b", Entry("x", "figure", 3.0, target=2.5))
    keep("a", Entry("z", "seconds", 4.0))
    lines = (tmp_path / "page.csv").read_text().splitlines()
    assert lines == ["table,row,measure,value,low,high,target,unit", "a,z,seconds,4,,,,", "b,x,figure,3,,,2.5,"]
    keep(None, Entry("x", "seconds", 2.0, 1.5, 2.123456789))
    assert read(tmp_path / "page.csv", "speed-cpu")["x", "seconds"]["high"] == "2.12346"
    head, *runs = csv.reader((tmp_path / "runs.csv").read_text().splitlines())
    assert head == ["table", "command", "commit", "machine", "versions", "seed"]
    assert [each[0] for each in runs] == ["a", "b", "speed-cpu"] and all(each[2] and each[5] == "3" for each in runs)


@pytest.mark.parametrize(("value", "status"), [(2.0, 0), (1.9, 1)])
def test_check_ends_with_status_1_if_a_target_is_missed(
    value: float, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from contenders import finish, parser
    from figures import figure

    args = parser("", "x").parse_args(["--check"])
    with pytest.raises(SystemExit) if status else contextlib.nullcontext():
        finish(args, [figure("speed", value, (1, 3), 2.0)], {})
    printed = capsys.readouterr().out
    assert printed.startswith(f"speed: {value:.2f}x (turns 1.00 to 3.00), asked 2x")
    assert ("MISSED" in printed) == bool(status)


def test_a_ratio_has_the_lowest_and_the_highest_of_neighbouring_turns() -> None:
    from contenders import Timed, ratio

    found = ratio("slow / fast", Timed([4.0, 6.0, 9.0], None), Timed([2.0, 2.0, 3.0], None), 2.5)
    assert (found.value, found.low, found.high, found.met) == (3.0, 2.0, 3.0, True)


def test_multiplications_of_the_papers_hourglasses_are_58_44_and_40_percent() -> None:
    from language_models import expected

    paper = argparse.Namespace(layers="2,8,2", embed_dim=512, length=2048)
    shares = [expected(factor, paper) for factor in (2.0, 4.0, 5.7)]
    assert [round(100 * share["time"]) for share in shares] == [58, 44, 40]
    assert [round(100 * share["memory"]) for share in shares] == [67, 50, 45]


# ------------------------------------------------------------------------------------------- nightly, in a small size


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "flags", "figures"),
    [
        ("topk.py", ["--batch", 2, "--n", 64, 128, "--k", 16, "--repeats", 1], {}),
        ("train_step.py", [*TINY, "--source", 64, "--target", 8, "--vocab-size", 100], {}),
        ("pointer.py", [*TINY, "--source", 64, "--tokens", 5, "--vocab-size", 100], {}),
        ("gpu.py", [*TINY, "--device", "cpu"], {}),
        (
            "language_models.py",
            ["--length", 114, "--embed-dim", 32, "--num-heads", 2, "--layers", "1,2,1", "--repeats", 2],
            {},
        ),
        # What is compared is the same.
        (
            "generate.py",
            [*TINY, "--batch", 2, "--source", 64, "--vocab-size", 100, "--steps", 3, "--slow-steps", 2]
            + ["--after", 0, 5, "--tokens", 20],
            {"documents with the same hypotheses, our decoder, memory 4": 100},
        ),
    ],
)
def test_a_program_fills_its_table(
    program: str, flags: list[object], figures: dict[str, float], tmp_path: Path
) -> None:
    rows, _ = table(program, tmp_path, *flags)
    found = values(rows, "figure")
    assert rows and {name: found[name] for name in figures} == figures


@pytest.mark.nightly
def test_kills_and_full_disks_lose_nothing(tmp_path: Path) -> None:
    rows, printed = table("faults.py", tmp_path, "--repeats", 1, "--work", tmp_path / "work", "--check")
    assert {each["value"] for each in rows.values()} == {"1"} and len(rows) == 2 * 2 * 5
    assert "10 of 10 held." in printed


@pytest.mark.nightly
def test_salient_bigrams_are_counted_up_to_each_percent(tmp_path: Path) -> None:
    ten = "Red fox. Blue whale. Green frog. Pink crab. Gray wolf."
    # Red fox ends after 2 of 10 words, blue whale after 4, gray wolf after 10; "of the" has stop words only.
    pairs = [(ten, "Red fox, blue whale."), (ten, "Gray wolf"), ("A part of the whole.", "Of the")]
    papers = tmp_path / "test.jsonl"
    papers.write_text("".join(json.dumps({"article": text, "abstract": short}) + "\n" for text, short in pairs))
    rows, _ = table("corpus_statistics.py", tmp_path, tmp_path, "--limit", 3)
    seen = {percent: float(rows[f"{tmp_path.name}, first {percent}%", "seen"]["value"]) for percent in (19, 20, 39, 99)}
    assert seen == {19: 0, 20: 0.25, 39: 0.25, 99: 0.5}
    last = [rows[f"{tmp_path.name}, first {percent}%", what]["value"] for percent, what in ((40, "new"), (41, "new"))]
    assert last == ["0.25", "0"]
    means = {what: float(each["value"]) for (row, what), each in rows.items() if row == tmp_path.name}
    assert means == {
        "documents": 3,
        "with salient bigrams": 2,
        "words": 8.33333,
        "summary words": 2.66667,
        "coverage": 0.944444,
        "density": 2.05556,
        "compression": 4.33333,
        "salient": 0.555556,
    }


@pytest.mark.nightly
def test_documents_are_read_judged_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = pytest.importorskip("reading")
    names = set(reading.documents().query("kind != 'unseen'").name)
    assert names == {each["name"] for each in reading.lines(reading.GOLD / "headings.jsonl")} and len(names) >= 60
    monkeypatch.setattr(reading, "GOLD", tmp_path)
    wings, ends = "Bees fly very fast.\n\nThey have four wings.", "Their stings hurt all animals."
    text = f"# On bees\n\n## 1. Wings\n\n{wings}\n\n## Ends\n\n{ends}"
    (tmp_path / "bees.md").write_text(text)
    row = ["bees", "bees.md", "bees", "1", "bees.md", hashlib.sha256(text.encode()).hexdigest()]
    header = "name,file,package,version,path,sha256,kind,format,language,licence,producer"
    kinds = ("book", "unseen")
    rows = [
        ",".join([name, *row[1:], kind, "text", "en", "MIT", ""])
        for name, kind in zip(("bees", "new"), kinds, strict=True)
    ]
    (tmp_path / "documents.csv").write_text("\n".join([header, *rows, ""]))
    (tmp_path / "headings.jsonl").write_text('{"name": "bees", "headings": ["Wings", "Stings"]}\n')
    (tmp_path / "judged.jsonl").write_text("")

    def printed(*flags: object) -> str:
        monkeypatch.setattr("sys.argv", ["reading.py", *map(str, (tmp_path, *flags))])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            reading.main()
        return re.sub(" +", " ", out.getvalue())

    unjudged = tmp_path / "unjudged.jsonl"
    assert "| all | 1 | none | none | none | none | 12 | 50.0% (1 of 2) | 1 |" in printed("--unjudged", unjudged)
    judged = [{**each, "noise": "fragment" * ("all" in each["sentence"])} for each in reading.lines(unjudged)]
    unjudged.write_text("".join(f"{json.dumps(each)}\n" for each in judged))
    shown = printed("--judged", unjudged)
    assert f"| all | 1 |{' 33.3% (1 of 3) |' * 4} 0 | 50.0% (1 of 2) | 1 |" in shown and shown == printed()
