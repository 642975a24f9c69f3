"""The training curve of lines that are means over stretches of updates."""

import time

import pytest

from pyramidions.curves.stretches import Stretch, training_curve


def line(since: int, until: int, value: float, weight: float = 1.0) -> Stretch:
    return Stretch(since, until, value, weight)


def test_the_finer_line_is_taken_where_two_tell_of_the_same() -> None:
    intervals = [line(0, 100, 8.0), line(100, 200, 6.0)]
    assert training_curve([*intervals, line(0, 200, 7.0)]) == intervals
    epochs = [line(0, 50, 9.0), line(50, 100, 7.0)]
    assert training_curve([*intervals[:1], *epochs]) == epochs


def test_what_is_left_of_a_longer_line_is_the_mean_of_the_rest() -> None:
    assert training_curve([line(0, 4, 5.0), line(0, 8, 4.0)]) == [line(0, 4, 5.0), line(4, 8, 3.0)]
    assert training_curve([line(0, 4, 5.0, 3.0), line(0, 8, 4.0, 2.0)])[1] == line(4, 8, 1.0, 1.0)


def test_a_rest_of_a_few_updates_is_told_with_those_before_it() -> None:
    # Three digits are half a thousandth off at most: over 1 update of 1,000 that would be 0.5.
    curve = training_curve([*(line(n, n + 9, 7.0) for n in range(0, 999, 9)), line(0, 1000, 7.0005)])
    assert (curve[-1].since, curve[-1].until) == (950, 1000)
    assert curve[-1].value == pytest.approx(7.01)


def test_lines_of_any_order_and_other_intervals_give_a_curve_in_order() -> None:
    lines = [line(20, 30, 3.0), line(0, 20, 5.0), line(20, 25, 4.0), line(30, 60, 2.0)]
    curve = training_curve(lines)
    assert [stretch.until for stretch in curve] == [20, 25, 30, 60]
    assert [stretch.value for stretch in curve] == [5.0, 4.0, 2.0, 2.0]


def test_a_long_log_takes_a_moment() -> None:
    lines = [line(n, n + 1, 1.0) for n in range(50_000)] + [line(n, n + 70, 1.0) for n in range(0, 50_000, 70)]
    begin = time.perf_counter()
    assert len(training_curve(lines)) >= 50_000
    assert time.perf_counter() - begin < 10
