from collections.abc import Callable
from typing import Literal

import pytest

from pyramidions.base.parts import MissingPartError
from pyramidions.base.registry import Registry


class Part:
    def __init__(self, width: int, depth: int = 2, scale: float | None = 1.0) -> None:
        self.width, self.depth, self.scale = width, depth, scale


class Bare:
    pass


class Wide(Bare):
    def __init__(
        self, widths: list[int], scales: list[float] | None = None, way: Literal["soft", "hard"] = "soft"
    ) -> None:
        self.widths, self.scales, self.way = widths, scales, way


def twice(width: int, times: int = 2) -> Wide:
    return Wide([width] * times)


# Parts of this package have no other name before their own.
for maker in (Part, Bare, Wide, twice):
    maker.__module__ = "pyramidions.some_parts"


def registry() -> Registry[object]:
    parts: Registry[object] = Registry("axis")
    parts.register("wide")(Wide)
    parts.register("part")(Part)
    parts.register("bare")(Bare)
    assert parts.register("twice")(twice).__name__ == "twice"
    return parts


def test_what_the_model_knows_goes_to_those_who_name_it() -> None:
    part = registry().build("part", {"depth": 5, "scale": 2}, width=3, height=9)
    assert part.__dict__ == {"width": 3, "depth": 5, "scale": 2}
    assert registry().build("part", {"scale": None}, width=3).__dict__["scale"] is None
    assert isinstance(registry().build("bare", {}, width=3), Bare)
    assert registry().names == ("bare", "part", "twice", "wide")


def test_an_option_may_be_a_list_or_one_of_some_words() -> None:
    parts = registry()
    made = parts.build("wide", {"widths": [3, 4], "scales": [1, 0.5], "way": "hard"})
    assert made.__dict__ == {"widths": [3, 4], "scales": [1, 0.5], "way": "hard"}
    empty = {"widths": [], "scales": None, "way": "soft"}
    assert parts.build("wide", empty).__dict__ == empty


def test_a_function_makes_the_part_that_it_says() -> None:
    parts = registry()
    assert parts["twice"] is parts["wide"] is Wide
    assert parts.build("twice", {"times": 3}, width=5, height=9).__dict__["widths"] == [5, 5, 5]
    assert [*parts.arguments("twice")] == ["width", "times"] and "widths" in parts.arguments("wide")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda parts: parts["pert"], "axis must be one of bare, part, twice, wide, but is 'pert'."),
        (lambda parts: parts.arguments("pert"), "axis must be one of bare, part, twice, wide, but is 'pert'."),
        (lambda parts: parts.build("pert", {}), "axis must be one of bare, part, twice, wide, but is 'pert'."),
        (lambda parts: parts.build("part", {}), "Part (axis 'part') needs the option 'width'."),
        (lambda parts: parts.register("part")(Bare), "axis 'part' is registered twice."),
        *(
            (lambda parts, name=name, options=options: parts.build(name, options, width=3), sentence)
            for name, options, sentence in (
                ("part", {"deph": 1}, "Part (axis 'part') has no option 'deph'; it knows depth, scale."),
                ("part", {"width": 1}, "Part (axis 'part') has no option 'width'; it knows depth, scale."),
                ("part", {"depth": "5"}, "`depth` must be a whole number, but is '5'."),
                ("bare", {"x": 1}, "Bare (axis 'bare') has no option 'x'; it knows none."),
                ("twice", {"widths": [1]}, "twice (axis 'twice') has no option 'widths'; it knows times."),
                ("wide", {"widths": {"0": 3}}, "`widths` must be a list of whole numbers, but is a dict."),
                ("wide", {"widths": [3, "4"]}, "`widths[1]` must be a whole number, but is '4'."),
                ("wide", {"widths": [], "way": "firm"}, "`way` must be one of soft, hard, but is 'firm'."),
            )
        ),
    ],
)
def test_a_wrong_name_or_option_is_named(call: Callable[[Registry[object]], object], sentence: str) -> None:
    with pytest.raises(ValueError) as error:
        call(registry())
    assert str(error.value) == sentence


def test_a_part_of_another_package_has_its_name_before_its_own() -> None:
    class Other(Part):
        pass

    Other.__module__ = "my_parts.some"
    parts = registry()
    parts.register("part")(Other)
    assert parts["my_parts.part"] is Other and parts["part"] is Part
    with pytest.raises(MissingPartError, match=r"^`axis` is 'yours.part', a part of the module yours, .* --user-dir"):
        parts.require("yours.part", "`axis`")
