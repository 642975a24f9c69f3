"""The bar of a training, from lines as fairseq-train wrote them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyramidions.runs.progress import NewLines, Progress, Record, TrainingBar, begun, read_record

LOG = """\
2026-11-21 18:07:21 | INFO | fairseq.trainer | begin training epoch 1
2026-11-21 18:07:28 | INFO | train_inner | {"epoch": 1, "update": 0.08, "loss": "12.995", "nll_loss": "12.995", \
"ppl": "8166", "wps": "1000", "num_updates": "2", "lr": "8e-05", "gnorm": "2.1", "wall": "9"}
2026-11-21 18:07:35 | INFO | train_inner | {"epoch": 1, "update": 0.16, "loss": "12.31", "nll_loss": "12.31", \
"ppl": "5078", "wps": "1000", "num_updates": "4", "lr": "0.00016", "gnorm": "2.1", "wall": "16"}
2026-11-21 18:08:28 | INFO | valid | {"epoch": 1, "valid_loss": "10.397", "valid_rouge2": "1.5", \
"valid_num_updates": "4"}
2026-11-21 18:08:28 | INFO | train | {"epoch": 1, "train_loss": "11.795", "train_nll_loss": "11.795", \
"train_num_updates": "4", "train_lr": "0.00092", "train_train_wall": "70", "train_wall": "75"}
2026-11-21 18:09:28 | INFO | valid | {"epoch": 2, "valid_loss": "10.5", "valid_rouge2": "1.25", \
"valid_num_updates": "8", "valid_best_loss": "10.397"}
2026-11-21 18:09:29 | INFO | fairseq_cli.train | done training in 73.3 seconds
"""


def read(progress: Progress) -> Progress:
    for line in LOG.splitlines():
        progress.read(line)
    return progress


def test_updates_loss_and_the_best_validation_are_read() -> None:
    found = read(Progress())
    assert (found.updates, found.loss, found.best) == (8, 11.795, 10.397)
    assert str(found) == "loss 11.79, best validation loss 10.40"
    assert read(Progress("rouge2", highest=True)).best == 1.5
    assert read(Progress("rouge2", highest=False)).best == 1.25
    # Before the first validation, the loss is all there is.
    progress = Progress()
    progress.read(LOG.splitlines()[1])
    assert str(progress) in ("loss 12.99", "loss 13.00")


def test_each_line_is_read_once_as_soon_as_it_has_ended(tmp_path: Path) -> None:
    path, found = tmp_path / "generate-test.txt", []
    written = NewLines(path)
    assert written.read() == []
    with path.open("w") as file:
        for text in ("S-0 one\nS-1 t", "", "wo\nH-1", "\n"):
            file.write(text)
            file.flush()
            found.append(written.read())
    written.close()
    assert found == [["S-0 one"], [], ["S-1 two"], ["H-1"]]


def test_a_validation_on_the_training_documents_is_no_training() -> None:
    progress = Progress()
    for numbers in ('"train_loss": "9.0", "train_wall": "3"', '"train_loss": "5.0"'):
        progress.read(f'{{"epoch": 1, {numbers}, "train_num_updates": "10"}}')
    assert (progress.loss, progress.best) == (9.0, 5.0)


def test_a_million_updates_are_printed_rounded() -> None:
    line = '{"epoch": 1, "valid_loss": "2", "valid_num_updates": "1.23457e+06"}'
    assert read_record(line) == Record(False, 1234570, {"loss": 2.0, "epoch": 1.0})


lines = st.sampled_from(
    [
        *LOG.encode().splitlines(),
        b'{"epoch": 1, "update": 0.5, "loss": null, "rouge1": [1], "num_updates": 7}',
        b'{"epoch": 1, "valid_loss": 1' + b"0" * 400 + b', "valid_num_updates": 1e400}',
        b'{"epoch": 1, "loss": ' + b"9" * 5000 + b', "num_updates": 3}',
        b'{"epoch": ' + b"[" * 5000,
    ]
)
damaged = st.builds(
    lambda line, start, end, more: line[:start] + more + line[end:],
    *(lines, st.integers(0, 150), st.integers(0, 150), st.binary(max_size=8)),
)


@settings(max_examples=200, deadline=None)
@given(line=st.one_of(lines, damaged, st.binary()))
def test_no_line_raises(line: bytes) -> None:
    record = read_record(line.decode(errors="replace"))
    assert record is None or record.update >= 0


def test_lines_that_tell_no_numbers_are_passed_over() -> None:
    for line in ("", "num_updates", '{"epoch": 1, "num_updates": "x"}', "Traceback"):
        assert read_record(line) is None


def test_the_metric_is_that_of_the_command(tmp_path: Path) -> None:
    words = ("fairseq-train", "--best-checkpoint-metric", "rouge2", "--maximize-best-checkpoint-metric")
    assert begun(words, tmp_path / "none.pt") == (Progress("rouge2", highest=True), 0.0)
    assert begun(("fairseq-train",), tmp_path / "none.pt") == (Progress(), 0.0)


def test_a_bar_passes_over_the_old_log_and_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG)
    with TrainingBar(log, Progress(), 500, None) as bar, log.open("a") as file:
        bar.show()
        assert bar.progress.updates == 0
        file.write(LOG[:150])
        file.flush()
        bar.show()
        assert bar.progress.updates == 0
        file.write(LOG[150:])
        file.flush()
        bar.show()
        assert bar.progress.updates == 8


def test_with_an_hour_limit_the_bar_ends_where_the_time_will(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "train.log"
    log.touch()
    now = iter([100.0, 160.0, 160.0])
    monkeypatch.setattr("pyramidions.runs.progress.time.monotonic", lambda: next(now))
    with TrainingBar(log, Progress(updates=4), 500, 0.1) as bar:
        log.write_text(LOG)
        bar.show()
        # 4 updates in a minute make 24 in the 6 minutes, after those before.
        assert bar._bar.total == 28


def test_the_time_left_is_forecast_from_the_first_updates_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, said = tmp_path / "train.log", list[str]()
    log.touch()
    # The program takes 50 seconds to begin, and an update takes 15.
    now = iter([0.0, 50.0, 65.0, 95.0, 155.0])
    monkeypatch.setattr("pyramidions.runs.progress.time.monotonic", lambda: next(now))
    monkeypatch.setattr("pyramidions.runs.progress.note", said.append)
    line = next(each for each in LOG.splitlines() if "train_inner" in each)
    with TrainingBar(log, Progress(), 45, None) as bar, log.open("a") as file:
        for update in (1, 2, 4, 8):
            file.write(line.replace('"num_updates": "2"', f'"num_updates": "{update}"') + "\n")
            file.flush()
            bar.show()
    assert said == ["Measured: 15 seconds an update, so about 10 minutes more beside validation."]
