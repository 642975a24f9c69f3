import csv
import sys

import pytest

TRAIN = "train_inner | epoch 001: {n:5d} / 50 loss={loss}, sharpness_2={s}, sharpness_3=0.25, num_updates={n}, wall=0\n"
VALID = "valid | epoch 001 | valid on 'valid' subset | loss {loss} | rouge1 30 | rouge2 {rouge} | num_updates {n}\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two runs as `reproduce` leaves them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    pooled = [
        *(TRAIN.format(n=500, loss=9.5, s=0.5), VALID.format(n=500, loss=9.25, rouge=4.5)),
        *(TRAIN.format(n=1000, loss=8.5, s=0.75), VALID.format(n=1000, loss=8.25, rouge=4.25)),
    ]
    plain = [line.replace("sharpness_", "ppl_") for line in pooled[:1]] + ["train_inner | epoch 001:  6"]
    for name, lines in (("pooled", pooled), ("plain", plain)):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "train.log").write_text("".join(lines))
        (tmp_path / "out" / name / "score.log").write_text("$ pyramidions score\n")
    return tmp_path


def test_it_draws_runs_and_says_how_they_stand(run, here):
    result = run("plot", "out/pooled", "out/plain/train.log")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "wrote training.png",
        "",
        "run     updates  last loss                 best ROUGE          last sharpness",
        "pooled    1,000  train 8.500, valid 8.250  rouge2 4.50 at 500  layer 2: 0.750, layer 3: 0.250",
        "plain       500  train 9.500               -                   -",
    ]
    assert (here / "training.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in here.iterdir()) == ["out", "training.png"]


def test_the_ending_says_the_format(run, fail, here):
    assert run("plot", "out/pooled", "-o", "curves.SVG").exit_code == 0
    assert b"<svg" in (here / "curves.SVG").read_bytes()
    assert fail("plot", "out/pooled", "-o", "curves.pdf") == "--out must end in .png or .svg, but is curves.pdf."
    assert fail("plot", "out/pooled", "-o", "no/curves.png") == (
        "--out must be a file in a folder that exists, but is no/curves.png."
    )


def test_the_points_are_written_as_csv(run, here):
    result = run("plot", "out/pooled", "out/plain", "--csv", "points.csv")
    assert result.stdout.splitlines()[:2] == ["wrote training.png", "wrote points.csv"]
    rows = list(csv.reader((here / "points.csv").open()))
    assert rows[:3] == [
        ["run", "split", "measure", "updates", "value"],
        ["pooled", "train", "loss", "500", "9.5"],
        ["pooled", "train", "loss", "1000", "8.5"],
    ]
    assert ["pooled", "valid", "rouge2", "1000", "4.25"] in rows
    assert rows[-1] == ["plain", "train", "loss", "500", "9.5"]


def test_numbers_that_are_left_out_are_said(run, fail, here):
    log = here / "out" / "pooled" / "train.log"
    with log.open("a") as file:
        file.write(TRAIN.format(n=1500, loss="nan", s=0.5) + TRAIN.format(n=2000, loss="inf", s="nan"))
    lines = run("plot", "out/pooled").stdout.splitlines()
    assert lines[-2:] == [
        "pooled: left out 2 values of loss that are nan or infinite",
        "pooled: left out 1 value of sharpness_2 that is nan or infinite",
    ]
    log.write_text(VALID.format(n=5, loss="nan", rouge="nan").replace("rouge1 30", "rouge1 nan"))
    assert fail("plot", "out/pooled").startswith("RUN must hold at least one finite number, but ")


def test_bad_input_is_one_sentence(run, fail, here):
    assert fail("plot", "out").startswith("RUN must hold one log of a training, but out holds 2: choose among out/pl")
    assert fail("plot", "nothing") == (
        "RUN must be a log of fairseq-train or a folder with one, but nothing does not exist."
    )
    twice = fail("plot", "out/pooled", "out/pooled/train.log")
    assert twice == "Each RUN must be another log, but out/pooled/train.log is given twice."
    assert fail("plot", "out/pooled", "--csv", "out/pooled/train.log") == (
        "--csv must not replace one of the inputs, but is out/pooled/train.log."
    )
    assert (
        fail("plot", "out/pooled", "-o", "a.svg", "--csv", "a.svg")
        == "--csv must not replace another output, but is a.svg."
    )
    assert "loss=9.5" in (here / "out" / "pooled" / "train.log").read_text()
    assert run("plot").exit_code == 2
    assert not (here / "training.png").exists()


def test_without_matplotlib_it_says_what_to_install(fail, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert fail("plot", "out/pooled") == "matplotlib is not installed: `pip install matplotlib` brings it."


def test_help_has_an_example_and_the_list_names_the_command(run):
    assert "Example:\n    pyramidions plot train.log\n" in run("plot", "--help").output
    assert "\n  plot " in run().output
