from collections.abc import Callable
from typing import Literal

import pytest
from tables import for_each

from pyramidions.base.registry import Registry


class Part:
    def __init__(self, width: int, depth: int = 2, scale: float | None = 1.0) -> None:
        self.width, self.depth, self.scale = width, depth, scale


class Bare:
    pass


class Wide(Bare):
    def __init__(self, widths: list[int], scales: list[float] | None = None) -> None:
        self.widths, self.scales = widths, scales


def twice(width: int, times: int = 2) -> Wide:
    return Wide([width] * times)


def registry() -> Registry[object]:
    parts: Registry[object] = Registry("axis")
    parts.register("part")(Part)
    parts.register("bare")(Bare)
    return parts


def test_what_the_model_knows_goes_to_those_who_name_it() -> None:
    part = registry().build("part", {"depth": 5, "scale": 2}, width=3, height=9)
    assert part.__dict__ == {"width": 3, "depth": 5, "scale": 2}
    assert registry().build("part", {"scale": None}, width=3).__dict__["scale"] is None
    assert isinstance(registry().build("bare", {}, width=3), Bare)


def test_names_are_listed_in_order() -> None:
    assert registry().names == ("bare", "part")


def test_an_option_may_be_a_list() -> None:
    parts: Registry[Bare] = Registry("axis")
    parts.register("wide")(Wide)
    made = parts.build("wide", {"widths": [3, 4], "scales": [1, 0.5]})
    assert made.__dict__ == {"widths": [3, 4], "scales": [1, 0.5]}
    assert parts.build("wide", {"widths": [], "scales": None}).__dict__ == {"widths": [], "scales": None}
    for wrong in (3, {"0": 3}, None):
        with pytest.raises(ValueError, match="`widths` must be a list of whole numbers, but is"):
            parts.build("wide", {"widths": wrong})
    for wrong in ([3, "4"], [3, True], [1, 2.5]):
        with pytest.raises(ValueError, match=r"`widths\[1\]` must be a whole number, but is"):
            parts.build("wide", {"widths": wrong})
    with pytest.raises(ValueError, match=r"`scales\[0\]` must be a number, but is None."):
        parts.build("wide", {"widths": [], "scales": [None]})


def test_a_function_makes_the_part_that_it_says() -> None:
    parts: Registry[Bare] = Registry("axis")
    assert parts.register("twice")(twice).__name__ == "twice"
    parts.register("wide")(Wide)
    assert parts["twice"] is parts["wide"] is Wide
    assert parts.build("twice", {"times": 3}, width=5, height=9).__dict__["widths"] == [5, 5, 5]
    assert [*parts.arguments("twice")] == ["width", "times"] and "widths" in parts.arguments("wide")
    for options, message in (
        ({"widths": [1]}, r"twice \(axis 'twice'\) has no option 'widths'; it knows times."),
        ({"times": 1.5}, "`times` must be a whole number, but is 1.5."),
    ):
        with pytest.raises(ValueError, match=message):
            parts.build("twice", options, width=5)


@pytest.mark.parametrize("ask", [lambda parts: parts["pert"], lambda parts: parts.arguments("pert")])
def test_an_unknown_name_is_named_whatever_is_asked(ask: Callable[[Registry[object]], object]) -> None:
    with pytest.raises(ValueError, match="axis must be one of bare, part, but is 'pert'."):
        ask(registry())


@for_each(
    ("name", "options", "message"),
    [
        ("pert", {}, "axis must be one of bare, part, but is 'pert'."),
        ("part", {"deph": 1}, r"Part \(axis 'part'\) has no option 'deph'; it knows depth, scale."),
        ("part", {"width": 1}, r"Part \(axis 'part'\) has no option 'width'; it knows depth, scale."),
        ("part", {"depth": "5"}, "`depth` must be a whole number, but is '5'."),
        ("part", {"depth": 2.5}, r"must be a whole number, but is 2.5."),
        ("part", {"depth": True}, r"must be a whole number, but is True."),
        ("part", {"scale": "x"}, r"must be a number or None, but is 'x'."),
        ("bare", {"x": 1}, r"Bare \(axis 'bare'\) has no option 'x'; it knows none."),
    ],
)
def test_a_wrong_name_or_option_is_named(name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry().build(name, options, width=3)


def test_a_missing_option_is_named() -> None:
    with pytest.raises(ValueError, match=r"Part \(axis 'part'\) needs the option 'width'."):
        registry().build("part", {})


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="axis 'part' is registered twice."):
        registry().register("part")(Bare)


def test_an_option_may_be_one_of_some_words() -> None:
    registry: Registry[object] = Registry("axis")

    @registry.register("worded")
    class Worded:
        def __init__(self, way: Literal["soft", "hard"] = "soft") -> None:
            self.way = way

    assert registry.build("worded", {"way": "hard"}).way == "hard"
    with pytest.raises(ValueError, match="must be one of soft, hard, but is 'firm'."):
        registry.build("worded", {"way": "firm"})
