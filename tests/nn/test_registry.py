import pytest

from pyramidions.nn.registry import Registry


class Part:
    def __init__(self, width: int, depth: int = 2, scale: float | None = 1.0) -> None:
        self.width, self.depth, self.scale = width, depth, scale


class Bare:
    pass


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


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pert", {}, "axis must be one of bare, part, but is 'pert'."),
        ("part", {"deph": 1}, r"Part \(axis 'part'\) has no option 'deph'; it knows depth, scale."),
        ("part", {"width": 1}, r"Part \(axis 'part'\) has no option 'width'; it knows depth, scale."),
        ("part", {"depth": "5"}, r"The option 'depth' of Part \(axis 'part'\) must be of type int, but is '5'."),
        ("part", {"depth": 2.5}, r"must be of type int, but is 2.5."),
        ("part", {"depth": True}, r"must be of type int, but is True."),
        ("part", {"scale": "x"}, r"must be of type float or null, but is 'x'."),
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
