import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyramidions.curves.training_log import TrainingLog, is_training_log, read_training_log

STAMP = "2026-11-20 08:57:46 | INFO | "
INNER = "epoch 001:  {n:5d} / 50 loss={loss}, nll_loss=9, sharpness_2=0.9, ppl=8, num_updates={n}, lr=0.001, wall=0\n"
VALID = "epoch 001 | valid on 'valid' subset | loss {loss} | rouge1 30.5 | rouge2 {rouge} | wps 3 | num_updates {n}\n"
SIMPLE = (
    STAMP + "fairseq_cli.train | {'_name': None, 'optimization': {'max_update': 20}}\n"
    f"{STAMP}train_inner | {INNER.format(n=5, loss=11.5)}"
    f"{STAMP}train_inner | {INNER.format(n=10, loss=11.25)}"
    f"{STAMP}valid | {VALID.format(n=10, loss=10.5, rouge=9.25)}"
    f"{STAMP}train | epoch 001 | loss 11.387 | nll_loss 11.387 | sharpness_2 0.874 | num_updates 10 | wall 75\n"
)


@pytest.fixture
def read(tmp_path):
    def written(text: str | bytes) -> TrainingLog:
        path = tmp_path / "train.log"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_training_log(path)

    return written


def points(log: TrainingLog, split: str, measure: str) -> list[tuple[int, float]]:
    return next((list(c.points) for c in log.curves if (c.split, c.measure) == (split, measure)), [])


def inner(*updates: int, loss: float = 7.0) -> str:
    return "".join(INNER.format(n=n, loss=loss) for n in updates)


def test_simple_lines_give_the_training_curve_and_validation(read):
    log = read(SIMPLE)
    assert [(curve.split, curve.measure) for curve in log.curves] == [
        ("train", "loss"),
        ("train", "sharpness_2"),
        ("valid", "loss"),
        ("valid", "rouge1"),
        ("valid", "rouge2"),
    ]
    assert points(log, "train", "loss") == [(5, 11.5), (10, 11.25)]
    assert points(log, "train", "sharpness_2") == [(5, 0.9), (10, 0.9)]
    assert points(log, "valid", "rouge2") == [(10, 9.25)]
    assert (log.updates, log.left_out) == (10, {})


def test_hydras_lines_without_stamps_give_the_same(read):
    assert read(SIMPLE.replace(STAMP, "").replace("train_inner | ", "").replace("valid | epoch", "epoch")) == read(
        SIMPLE
    )
    assert read(SIMPLE.replace(STAMP, "[2026-11-20 08:57:46,123][x][INFO] - ")) == read(SIMPLE)


def test_json_lines_give_the_same(read):
    ends = {"valid_loss": "10.5", "valid_rouge1": "30.5", "valid_rouge2": "9.25", "valid_best_rouge2": "9.25"}
    lines = [
        ("train_inner", {"update": 0.1, "loss": "11.5", "sharpness_2": "0.9", "num_updates": "5", "wall": "0"}),
        ("train_inner", {"update": 0.2, "loss": "11.25", "sharpness_2": "0.9", "num_updates": "10", "train_wall": "1"}),
        ("valid", {**ends, "valid_num_updates": "10"}),
        (
            "train",
            {"train_loss": "11.387", "train_sharpness_2": "0.874", "train_num_updates": "10", "train_wall": "75"},
        ),
    ]
    text = "".join(f"{STAMP}{tag} | {json.dumps({'epoch': 1, **stats})}\n" for tag, stats in lines)
    assert read(text) == read(SIMPLE)


def test_the_states_of_a_progress_bar_are_lines(read):
    bar = (
        "\repoch 001:  {p}%|## | {n}/50 [00:01<00:04,  3.5it/s, loss={loss}, sharpness_2=0.9, num_updates={n}, wall=3]"
    )
    text = "\repoch 001:   0%|   | 0/50 [00:00<?, ?it/s]" + "".join(
        bar.format(p=2 * n, n=n, loss=loss) for n, loss in ((5, 11.5), (10, 11.25), (10, 11.25))
    )
    assert points(read(text + "\n"), "train", "loss") == [(5, 11.5), (10, 11.25)]


def test_a_progress_bar_cut_by_a_narrow_terminal_counts_for_nothing(read):
    bar = "\repoch 001:  24%|## | 12/50 [00:01<00:04,  3.5it/s, loss=7.0, num_updates=1"
    assert read(inner(5) + bar + "\r\n" + inner(15)) == read(inner(5, 15))


def test_where_nothing_was_logged_within_epochs_their_ends_are_the_curve(read):
    log = read("".join(f"epoch 00{e} | loss {9 - e} | num_updates {e * 25} | wall 5\n" for e in (1, 2)))
    assert points(log, "train", "loss") == [(25, 8.0), (50, 7.0)]


def ends(*lines: tuple[int, float], epoch: int = 1) -> str:
    return "".join(f"epoch 00{epoch} | loss {loss} | wpb 10 | bsz 4 | num_updates {n} | wall 5\n" for n, loss in lines)


def test_where_epochs_are_shorter_than_intervals_they_are_the_curve(read):
    log = read(ends((40, 9.0), (80, 8.0)) + inner(100, loss=8.4) + ends((120, 7.0)))
    assert points(log, "train", "loss") == [(40, 9.0), (80, 8.0), (120, 7.0)]


def test_a_validation_on_the_training_documents_is_no_training_curve(read):
    text = VALID.replace("'valid'", "'train'").format(n=10, loss=5, rouge=1) + ends((10, 9.0))
    log = read(text)
    assert points(log, "train", "loss") == [(10, 9.0)] and points(log, "train (validation)", "loss") == [(10, 5.0)]
    stats = {"epoch": 1, "train_loss": "5", "train_num_updates": "10"}
    assert points(read(json.dumps(stats)), "train (validation)", "loss") == [(10, 5.0)]
    assert points(read(json.dumps({**stats, "train_wall": "3"})), "train", "loss") == [(10, 5.0)]


def test_nll_loss_takes_the_place_of_a_loss_that_is_not_there(read):
    log = read("epoch 001 | valid on 'valid' subset | nll_loss 3 | num_updates 5\n")
    assert [curve.measure for curve in log.of("loss", "nll_loss")] == ["nll_loss"]


def test_each_validation_subset_is_a_split(read):
    log = read(VALID.format(n=5, loss=8, rouge=1) + VALID.replace("'valid'", "'dev b'").format(n=5, loss=9, rouge=2))
    assert points(log, "valid", "loss") == [(5, 8.0)] and points(log, "dev b", "loss") == [(5, 9.0)]


def test_a_million_updates_are_printed_rounded(read):
    assert read(INNER.replace("num_updates={n}", "num_updates=1.23457e+06").format(n=1, loss=2)).updates == 1234570


def test_after_a_resume_what_was_lost_is_gone_and_what_was_repeated_is_the_later(read):
    first = inner(5, 10) + VALID.format(n=10, loss=6, rouge=1) + inner(15, 20) + VALID.format(n=20, loss=5, rouge=2)
    second = "Loaded checkpoint c/checkpoint_last.pt (epoch 1 @ 12 updates)\n" + inner(15, loss=3.0)
    log = read(first + second)
    assert points(log, "train", "loss") == [(5, 7.0), (10, 7.0), (15, 3.0)]
    assert points(log, "valid", "loss") == [(10, 6.0)]


def test_a_training_that_began_again_without_a_checkpoint_replaces_the_first(read):
    log = read(inner(5, 10, 15) + "No existing checkpoint found checkpoints/checkpoint_last.pt\n" + inner(6, loss=1.0))
    assert points(log, "train", "loss") == [(6, 1.0)]


def test_a_start_that_trained_nothing_drops_nothing(read):
    text = inner(5, 10) + "No existing checkpoint found checkpoints/checkpoint_last.pt\n"
    assert points(read(text), "train", "loss") == [(5, 7.0), (10, 7.0)]


def test_updates_that_go_back_are_a_resume_without_its_message_too(read):
    log = read(inner(5, 10, 15, 20) + inner(10, loss=3.0))
    assert points(log, "train", "loss") == [(5, 7.0), (10, 3.0)]


def test_numbers_that_are_not_finite_are_counted_and_left_out(read):
    log = read(inner(5) + inner(10, loss=math.nan) + inner(15, loss=math.inf) + inner(20))
    assert points(log, "train", "loss") == [(5, 7.0), (20, 7.0)]
    assert log.left_out == {"loss": 2}


def test_one_that_a_resume_repeated_is_not_counted(read):
    assert read(inner(5) + inner(10, loss=math.nan) + inner(10)).left_out == {}


@pytest.mark.parametrize(
    "torn",
    [
        "epoch 001:      7 / 50 loss=7.6, nll_lo",
        "epoch 001:      7 / 50 loss=7.6, num_updates=1",
        "epoch 001 | valid on 'valid' subset | loss 7.6 | num_updates 1",
        'valid | {"epoch": 1, "valid_loss": "7.6", "valid_num_updates": "1',
    ],
)
def test_a_line_torn_by_a_kill_counts_for_nothing(read, torn):
    assert points(read(inner(5, 12) + torn), "train", "loss") == [(5, 7.0), (12, 7.0)]
    for start in (STAMP + "fairseq_cli.train | {'_name': None}\n", "$ fairseq-hydra-train\n", "{'_name': None}\n"):
        assert read(inner(5, 12) + torn + start) == read(inner(5, 12))


def test_a_whole_line_at_the_end_needs_no_newline_where_its_update_is_whole(read):
    assert read(inner(5, 12).rstrip("\n")).updates == 12


def test_bytes_that_are_no_text_cost_only_their_line(read):
    assert points(read(inner(5).encode() + b"\xff\xfe num_updates \x00\n" + inner(10).encode()), "train", "loss") == [
        (5, 7.0),
        (10, 7.0),
    ]


def test_a_log_without_training_is_told_apart(tmp_path):
    path = tmp_path / "x.log"
    path.write_text("$ fairseq-train\n2026 | INFO | num_updates: 3\n")
    assert not is_training_log(path) and read_training_log(path) == TrainingLog((), {})
    path.write_text(SIMPLE)
    assert is_training_log(path)


real = st.sampled_from(
    [
        *SIMPLE.encode().splitlines(),
        b"Loaded checkpoint x (epoch 1 @ 7 updates)",
        b'{"epoch": 1, "update": 0.5, "loss": null, "rouge1": [1], "num_updates": 7}',
        b'{"epoch": 1, "valid_loss": 1' + b"0" * 400 + b', "valid_num_updates": 1e400}',
        b'{"epoch": ' + b"[" * 5000 + b' "num_updates"',
        b'{"epoch": 1, "loss": ' + b"9" * 5000 + b', "num_updates": 3}',
    ]
)
damaged = st.builds(
    lambda line, start, end, more: line[:start] + more + line[end:],
    *(real, st.integers(0, 150), st.integers(0, 150), st.binary(max_size=8)),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.one_of(real, damaged, st.binary()), max_size=12))
def test_no_line_raises_and_curves_stay_in_order(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "any.log"
    path.write_bytes(b"\n".join(lines))
    for curve in read_training_log(path).curves:
        updates = [update for update, _ in curve.points]
        assert updates and updates == sorted(set(updates))
        assert all(math.isfinite(value) for _, value in curve.points)
