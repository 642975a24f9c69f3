import re

import pytest

from pyramidions.curves.picture import draw_training
from pyramidions.curves.training_log import Curve, TrainingLog


def curve(split: str, measure: str, *values: float) -> Curve:
    return Curve(split, measure, tuple((5 * number, value) for number, value in enumerate(values, 1)))


LOSS = curve("train", "loss", 9.0, 8.0, 7.5)
FULL = TrainingLog(
    (
        LOSS,
        curve("train", "sharpness_2", 0.5, 0.6, 0.7),
        curve("train", "sharpness_10", 0.3, 0.3, 0.4),
        curve("valid", "loss", 8.5, 7.0),
        curve("valid", "rouge1", 20, 25),
        curve("valid", "rouge2", 5, 7),
    ),
    {},
)


def texts(image: bytes) -> list[str]:
    """Return the text in an SVG, which matplotlib draws as outlines with the text as a comment."""
    return re.findall(r"<!-- (.*?) -->", image.decode())


@pytest.fixture
def drawn(monkeypatch):
    """Returns a function that draws, and gives the panels as matplotlib holds them."""
    from matplotlib.figure import Figure

    figures = []
    usual = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), usual(self, *a, **k))[1])

    def draw(**runs):
        draw_training(runs, "png")
        return figures[-1].axes

    return draw


def test_it_is_an_image_of_the_kind_that_was_asked_for():
    assert draw_training({"a": FULL}, "png").startswith(b"\x89PNG")
    assert b"<svg" in draw_training({"a": FULL}, "svg")


@pytest.mark.parametrize("image", ["png", "svg"])
def test_the_same_curves_give_the_same_bytes(image):
    assert draw_training({"a": FULL}, image) == draw_training({"a": FULL}, image)


def test_panels_without_data_are_left_out(drawn):
    assert [ax.get_ylabel() for ax in drawn(a=FULL)] == ["loss", "ROUGE", "sharpness"]
    assert [ax.get_ylabel() for ax in drawn(a=TrainingLog((LOSS,), {}))] == ["loss"]


def test_only_the_last_panel_says_updates_and_all_share_the_axis(drawn):
    panels = drawn(a=FULL)
    assert [ax.get_xlabel() for ax in panels] == ["", "", "updates"]
    assert len({ax.get_xlim() for ax in panels}) == 1


def test_training_is_thin_and_validation_has_markers(drawn):
    training, validation = drawn(a=FULL)[0].lines
    assert list(training.get_ydata()) == [9.0, 8.0, 7.5] and list(validation.get_xdata()) == [5, 10]
    assert training.get_linewidth() < validation.get_linewidth()
    assert (training.get_marker(), validation.get_marker()) == ("none", "o")


def test_a_training_curve_of_one_point_can_be_seen(drawn):
    assert drawn(a=TrainingLog((curve("train", "loss", 9.0),), {}))[0].lines[0].get_marker() == "."


@pytest.mark.parametrize("count", [6, 12])
def test_each_run_has_a_colour_in_all_panels(drawn, count):
    panels = drawn(**{f"run{number}": FULL for number in range(count)})
    assert all(len({line.get_color() for line in ax.lines}) == count for ax in panels)


def test_measures_and_layers_have_a_line_style_and_stand_in_their_order(drawn):
    loss, rouge, sharpness = drawn(a=FULL)
    words = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in (loss, rouge, sharpness)]
    assert words == [["training", "validation"], ["rouge1", "rouge2"], ["layer 2", "layer 10"]]
    assert rouge.lines[0].get_linestyle() != rouge.lines[1].get_linestyle()


def test_a_loss_that_falls_far_is_on_a_log_scale_with_plain_numbers(drawn):
    far, near = (TrainingLog((curve("train", "loss", *values),), {}) for values in ((12, 6, 5), (6, 5.5, 5)))
    (panel,) = drawn(a=far)
    assert (panel.get_yscale(), panel.get_ylabel()) == ("log", "loss (log scale)")
    assert {"6", "8", "10"} <= {text.get_text() for text in panel.get_yticklabels()}
    assert drawn(a=near)[0].get_yscale() == "linear"


def test_of_several_validation_subsets_the_first_is_drawn(drawn):
    log = TrainingLog((curve("valid", "loss", 8.0), curve("other", "loss", 3.0), curve("other", "rouge1", 3.0)), {})
    (panel,) = drawn(a=log)
    assert [list(line.get_ydata()) for line in panel.lines] == [[8.0]]


def test_names_are_shown_as_they_are():
    image = draw_training({"_a": FULL, "cost $1$ & <b>": FULL, "x" * 80 + "end": FULL}, "svg")
    shown = "\n".join(texts(image))
    assert "_a" in shown and "cost $1$" in shown.replace("\\", "")
    assert "xend" in shown and "x" * 60 not in shown
