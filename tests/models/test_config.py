import pytest

from pyramidions.models.config import parse_options, parse_pooling_lengths


def test_lengths_are_read_by_layer() -> None:
    assert parse_pooling_lengths("None,2048,512,None,None,None", 6) == {1: 2048, 2: 512}
    assert parse_pooling_lengths(" none, 8 ", 2) == {1: 8}
    assert parse_pooling_lengths(None, 3) == {}


@pytest.mark.parametrize(
    ("text", "layers", "message"),
    [
        ("None,512", 3, "`pooling_lengths` must have one entry per encoder layer, but has 2 for 3: 'None,512'."),
        ("2048,4096", 2, "`pooling_lengths` must not grow, but layer 2 hands on 4096 after 2048."),
        ("512,None,1024", 3, "`pooling_lengths` must not grow, but layer 3 hands on 1024 after 512."),
        ("0,None", 2, "`pooling_lengths` must be positive integers or None, but layer 1 has '0'."),
        ("-4,None", 2, "`pooling_lengths` must be positive integers or None, but layer 1 has '-4'."),
        ("a,None", 2, "`pooling_lengths` must be positive integers or None, but layer 1 has 'a'."),
    ],
)
def test_lengths_that_break_a_rule_are_named(text: str, layers: int, message: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_pooling_lengths(text, layers)
    assert str(error.value) == message


@pytest.mark.parametrize("text", ['{"base": Infinity}', '{"base": NaN}'])
def test_options_that_are_not_finite_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`pooling_args` must hold finite numbers, but holds (Infinity|NaN)."):
        parse_options(text, "pooling_args")


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_options_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`scorer_args` must be a JSON object"):
        parse_options(text, "scorer_args")
