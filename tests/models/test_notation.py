"""The language of parts."""

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models.notation import changed, parse_part, parse_parts, written_parts
from pyramidions.models.spec import Part


@for_each(
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


@for_each(
    ("text", "sentence"),
    [
        ("a(", "`field` has a '(' that is not closed: 'a('."),
        ("a)", "`field` has a ')' that closes nothing: 'a)'."),
        ("a(x=[1)]", "`field` has a ')' that closes nothing: 'a(x=[1)]'."),
        ("a(x='1)", '`field` has a "\'" that is not closed: "a(x=\'1)".'),
        ("a(x=1) b", "`field` must be like kind(option=value), but is 'a(x=1) b'."),
        ("a(x=1)(y=2)", "`field` must be like kind(option=value), but is 'a(x=1)(y=2)'."),
        ("a(x=1, x=2)", "`field` must name each option once, but is 'a(x=1, x=2)'."),
        ("a(x 1)", "`field` must be like kind(option=value), but is 'a(x 1)'."),
        ("a(x='\n')", "`field` must be like kind(option=value), but is"),
        ("a(1)", "`field` must name each option, as in a(option=value), but is 'a(1)'."),
        ("a(**{'x': 1})", "`field` must name each option, as in a(option=value), but is \"a(**{'x': 1})\"."),
        ("a(x=y)", "The option 'x' in `field` must be a number, a text in quotes, True, False, None, or a list of"),
        ("a(x=open('f'))", "The option 'x' in `field` must be a number"),
        ("a(x=1e999)", "The option 'x' in `field` must be a number"),
        ("a(x=2j)", "The option 'x' in `field` must be a number"),
        ("a(x=b'1')", "The option 'x' in `field` must be a number"),
        (f"a(x={10**18})", "The option 'x' in `field` must be a number"),
        (f"a(x={'9' * 5000})", "`field` must be like kind(option=value), but is 'a(x=999"),
        (f"a(x={'[' * 5000}{']' * 5000})", "`field` must be like kind(option=value), but is 'a(x=[[["),
        ("a(x=1\0)", "`field` must be like kind(option=value), but is 'a(x=1"),
        ("a" * 100_001, "`field` must have at most 100,000 characters, but has 100,001."),
    ],
)
def test_other_texts_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_parts("field", text)
    assert str(refusal.value).startswith(sentence)


def test_a_field_of_one_part_holds_one() -> None:
    assert parse_part("field", "a(x=1)") == Part("a", {"x": 1})
    for several in ("a | b", "a; b"):
        with pytest.raises(UserError, match="^`field` must be one part, but is 'a. b'"):
            parse_part("field", several.replace(" | ", "| "))


def test_each_part_can_be_changed() -> None:
    doubled = changed("field", "a(x=1) | b; a", lambda part: Part(part.kind, {"y": 2}) if part.kind == "a" else part)
    assert doubled == "a(y=2) | b; a(y=2)"
    assert changed("field", "a (x = 1)", lambda part: part) == "a (x = 1)"
