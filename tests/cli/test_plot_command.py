import sys

import pandas as pd
import pytest

TRAIN = '{{"epoch": 1, "loss": "{loss}", "sharpness_2": "{s}", "sharpness_3": "0.25", "num_updates": "{n}"}}\n'
VALID = '{{"epoch": 1, "valid_loss": "{loss}", "valid_rouge2": "{rouge}", "valid_num_updates": "{n}"}}\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two runs as the lab leaves them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    pooled = [
        *(TRAIN.format(n=500, loss=9.5, s=0.5), VALID.format(n=500, loss=9.25, rouge=4.5)),
        *(TRAIN.format(n=1000, loss=8.5, s=0.75), VALID.format(n=1000, loss=8.25, rouge=4.25)),
    ]
    plain = [pooled[0].replace("sharpness_", "ppl_"), '{"epoch": 1, "lo']
    for name, lines in (("pooled", pooled), ("plain", plain)):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "train.log").write_text("".join(lines))
        (tmp_path / "out" / name / "score.log").write_text("$ pyramidions score\n")
    return tmp_path


def test_it_draws_runs_and_says_how_they_stand(run, here):
    result = run("plot", "out/pooled", "out/plain/train.log")
    assert result.exit_code == 0, result.output
    first, _, head, *lines = result.stdout.splitlines()
    assert first == "wrote training.png" and head.split() == "run split measure updates last low high".split()
    assert [line.split() for line in lines][:2] == [
        ["pooled", "train", "loss", "1000", "8.50", "8.50", "9.50"],
        ["pooled", "train", "sharpness_2", "1000", "0.75", "0.50", "0.75"],
    ]
    assert lines[-1].split() == ["plain", "train", "loss", "500", "9.50", "9.50", "9.50"]
    assert (here / "training.png").read_bytes().startswith(b"\x89PNG")


def test_the_ending_says_the_format(run, fail, here):
    assert run("plot", "out/pooled", "-o", "curves.SVG").exit_code == 0
    assert b"<svg" in (here / "curves.SVG").read_bytes()
    assert fail("plot", "out/pooled", "-o", "curves.pdf") == "--out must end in .png or .svg, but is curves.pdf."


def test_the_points_are_written_as_csv(run, here):
    result = run("plot", "out/pooled", "out/plain", "--csv", "points.csv")
    assert result.stdout.splitlines()[:2] == ["wrote training.png", "wrote points.csv"]
    rows = pd.read_csv(here / "points.csv")
    assert list(rows) == ["run", "split", "measure", "updates", "value"]
    assert rows.values.tolist()[0] == ["pooled", "train", "loss", 500, 9.5]
    assert ["pooled", "valid", "rouge2", 1000, 4.25] in rows.values.tolist()


def test_numbers_that_are_left_out_are_counted(run, fail, here):
    log = here / "out" / "pooled" / "train.log"
    with log.open("a") as file:
        file.write(TRAIN.format(n=1500, loss="nan", s=0.5) + TRAIN.format(n=2000, loss="inf", s="nan"))
    assert run("plot", "out/pooled").stdout.splitlines()[-1] == "Left out: 3 values that are nan or infinite."
    log.write_text(VALID.format(n=5, loss="nan", rouge="nan"))
    assert fail("plot", "out/pooled") == "RUN must hold at least one finite number, but out/pooled holds none."


def test_bad_input_is_one_sentence(run, fail, here):
    assert fail("plot", "out").startswith(
        "RUN must be or hold one log of fairseq-train, but out holds 2: choose among "
    )
    twice = fail("plot", "out/pooled", "out/pooled/train.log")
    assert twice == "Each RUN must be another log, but out/pooled/train.log is given twice."
    written = fail("plot", "out/pooled", "--csv", "out/pooled/train.log")
    assert written.endswith("but out/pooled/train.log is not a CSV file with our columns.")
    assert run("plot").exit_code == 2 and not (here / "training.png").exists()


def test_without_matplotlib_it_says_what_to_install(fail, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert fail("plot", "out/pooled") == "matplotlib is not installed: `pip install matplotlib` brings it."
