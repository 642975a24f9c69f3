from pathlib import Path

import pytest
from result_files import CATALOGUE, POOLED, write, write_topk

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def configs(tmp_path):
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "paper.csv").write_text(CATALOGUE)
    return folder


def test_it_says_what_it_wrote_and_how_much_was_run(run, tmp_path, configs):
    out = tmp_path / "out"
    write(out)
    write_topk(out)
    result = run("report", out, "--configs", configs)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"wrote {out}/report.md",
        f"wrote {out}/report.csv",
        f"wrote {out}/report-topk.png",
        "Of 5 rows 1 run, 0 partly run, 4 not run; figures 5 and 6 run.",
    ]


def test_the_page_may_lie_elsewhere_with_all_that_goes_with_it(run, tmp_path, configs):
    out, docs = tmp_path / "out", tmp_path / "docs"
    write_topk(out)
    docs.mkdir()
    assert run("report", out, "--configs", configs, "--to", docs / "ours.md").exit_code == 0
    assert sorted(path.name for path in docs.iterdir()) == [
        "ours-topk.png",
        "ours.csv",
        "ours.md",
    ]
    assert "](ours-topk.png)" in (docs / "ours.md").read_text()
    assert [path.name for path in out.iterdir()] == ["topk"]


def test_the_configs_of_the_repository_are_the_default(run, tmp_path, monkeypatch):
    monkeypatch.chdir(CONFIGS.parent)
    assert "Of 127 rows 0 run" in run("report", tmp_path).stdout


def test_a_report_that_was_killed_before_its_page_is_written_again(run, fail, tmp_path, configs):
    out, docs = tmp_path / "out", tmp_path / "docs"
    write_topk(out)
    docs.mkdir()
    command = ["report", out, "--configs", configs, "--to", docs / "ours.md"]
    assert run(*command).exit_code == 0
    written = {path.name: path.read_bytes() for path in docs.iterdir()}
    # The page comes last.
    (docs / "ours.md").unlink()
    assert run(*command).exit_code == 0
    assert {path.name: path.read_bytes() for path in docs.iterdir()} == written
    (docs / "ours.md").unlink()
    (docs / "ours.csv").write_text("of another report")
    sentence = f"--to must be a page beside which no other report's files lie, but there is {docs / 'ours.csv'}."
    assert fail(*command) == sentence and sorted(path.name for path in docs.iterdir()) == ["ours-topk.png", "ours.csv"]


def test_bad_input_is_one_sentence(fail, tmp_path, configs):
    assert fail("report", tmp_path / "no") == f"OUT must be a folder of results, but is {tmp_path / 'no'}."
    assert fail("report", tmp_path, "--configs", tmp_path).startswith("--configs must be the folder that holds paper")
    assert fail("report", tmp_path, "--configs", configs, "--to", "x.csv").startswith("--to must be a .md file")
    path = write(tmp_path, changes={"config": "other"})
    sentence = fail("report", tmp_path, "--configs", configs)
    assert sentence == f"{path}: `config` must be {POOLED}, but is 'other'."
