"""The language of parts."""

import pytest

from pyramidions.base.notation import Part, changed, parse_list, parse_options, parse_parts, written_parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("full", [[Part("full")]]),
        (" full ( ) ", [[Part("full")]]),
        ("lsh(num_hashes=4)", [[Part("lsh", {"num_hashes": 4})]]),
        ("a|b(x=1) | c", [[Part("a"), Part("b", {"x": 1}), Part("c")]]),
        ("a; b | c", [[Part("a")], [Part("b"), Part("c")]]),
        ("a(x=-1.5, y=True, z=None)", [[Part("a", {"x": -1.5, "y": True, "z": None})]]),
        ("a(x=[1, [2, 3]], y=(4, 5))", [[Part("a", {"x": [1, [2, 3]], "y": [4, 5]})]]),
        # Separators in texts and brackets separate nothing.
        ("a(x='|;)', y=\"'\") | b", [[Part("a", {"x": "|;)", "y": "'"}), Part("b")]]),
        ("a(x='\\'|')", [[Part("a", {"x": "'|"})]]),
        ("a(\n  x=1,\n  y=2,\n)\n| b", [[Part("a", {"x": 1, "y": 2}), Part("b")]]),
    ],
)
def test_texts_are_parts(text: str, parts: list[list[Part]]) -> None:
    assert parse_parts("field", text) == parts
    assert parse_parts("field", written_parts(parts)) == parts


def test_each_part_can_be_changed() -> None:
    doubled = changed("field", "a(x=1) | b; a", lambda part: Part(part.kind, {"y": 2}) if part.kind == "a" else part)
    assert doubled == "a(y=2) | b; a(y=2)"
    assert changed("field", "a (x = 1)", lambda part: part) == "a (x = 1)"


def test_lists_and_options_are_written_alike() -> None:
    assert parse_list("field", "a, b(x='1,2') ") == [Part("a"), Part("b", {"x": "1,2"})]
    assert parse_options("field", "x=1, y='a)'") == {"x": 1, "y": "a)"}
    assert parse_options("field", "") == {}
