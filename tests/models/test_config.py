from typing import Any

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_options
from pyramidions.models.config import PyramidionConfig, check_lengths, config_as
from pyramidions.models.fields import parse_pooling_lengths


def test_lengths_are_read_by_layer() -> None:
    assert parse_pooling_lengths("None,2048,512,None,None,None", 6) == {1: 2048, 2: 512}
    assert parse_pooling_lengths(" none, 8 ", 2) == {1: 8}
    assert parse_pooling_lengths(None, 3) == {}


@for_each(
    ("text", "layers", "message"),
    [
        ("None,512", 3, "`pooling_lengths` must have one entry per encoder layer, but has 2 for 3: 'None,512'."),
        ("2048,4096", 2, "`pooling_lengths` must not grow, but layer 2 hands on 4096 after 2048."),
        ("512,None,1024", 3, "`pooling_lengths` must not grow, but layer 3 hands on 1024 after 512."),
        ("0,None", 2, "`pooling_lengths` must be positive integers up to 16,777,216 or None, but layer 1 has '0'."),
        ("-4,None", 2, "`pooling_lengths` must be positive integers up to 16,777,216 or None, but layer 1 has '-4'."),
        (
            "9999999999,None",
            2,
            "`pooling_lengths` must be positive integers up to 16,777,216 or None, but layer 1 has '9999999999'.",
        ),
        ("a,None", 2, "`pooling_lengths` must be positive integers up to 16,777,216 or None, but layer 1 has 'a'."),
    ],
)
def test_lengths_that_break_a_rule_are_named(text: str, layers: int, message: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_pooling_lengths(text, layers)
    assert str(error.value) == message


@for_each(
    ("text", "reason"),
    [
        ('{"base": Infinity}', "it holds Infinity, and numbers must be finite"),
        ('{"base": NaN}', "it holds NaN, and numbers must be finite"),
        ('{"base": 1e999}', "it holds 1e999, and numbers must be finite"),
        ('{"k": 1000000000000000000000}', "it holds a whole number of more than 18 digits"),
        ('{"k": ' + 5000 * "1" + "}", "it holds a whole number of more than 18 digits"),
        (100_000 * "[", "its brackets are nested too deeply"),
        ("{", "it is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
    ],
)
def test_options_that_are_no_finite_json_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UserError) as error:
        parse_options(text, "pooling_args")
    assert str(error.value).startswith(f"`pooling_args` must be a JSON object, but {reason}: '{text[:3]}")
    assert len(str(error.value)) < 250


@pytest.mark.parametrize("text", ["[1]", "3"])
def test_options_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="`scorer_args` must be a JSON object, but is "):
        parse_options(text, "scorer_args")


@for_each(
    ("values", "sentence"),
    [
        ({"embed_dim": "64"}, "`embed_dim` must be a whole number, but is '64'."),
        ({"embed_dim": True}, "`embed_dim` must be a whole number, but is True."),
        ({"embed_dim": None}, "`embed_dim` must be a whole number, but is None."),
        ({"dropout": [0.1]}, "`dropout` must be a number, but is a list."),
        ({"pooling_lengths": 512}, "`pooling_lengths` must be a text or None, but is 512."),
        ({"ffn_dim": 8}, "The model has no field 'ffn_dim'; did you mean 'ffn_embed_dim'?"),
        ({7: 8}, "The model has no field 7."),
    ],
)
def test_values_from_outside_have_the_fields_types(values: dict[Any, Any], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_as(PyramidionConfig, values)
    assert str(error.value) == sentence


def test_a_whole_number_is_a_float_and_null_is_a_value_where_there_may_be_none() -> None:
    assert config_as(PyramidionConfig, {"dropout": 0, "pooling_lengths": None}).dropout == 0


@for_each("length", [1, 0, -4, 10**15, True, None, 8.5, "8", float("nan")])
def test_lengths_of_texts_are_bounded(length: Any) -> None:
    check_lengths(2, 2**24)
    for lengths, name in (((length, 8), "max_source_positions"), ((8, length), "max_target_positions")):
        with pytest.raises(UserError) as error:
            check_lengths(*lengths)
        assert str(error.value) == f"`{name}` must be a whole number from 2 to 16,777,216, but is {length!r}."
