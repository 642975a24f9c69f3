import pytest

from pyramidions.nn.registry import Registry


class Part:
    def __init__(self, width: int, depth: int = 2) -> None:
        self.width, self.depth = width, depth


class Bare:
    pass


def registry() -> Registry[object]:
    parts: Registry[object] = Registry("axis")
    parts.register("part")(Part)
    parts.register("bare")(Bare)
    return parts


def test_what_the_model_knows_goes_to_those_who_name_it() -> None:
    assert registry().build("part", {"depth": 5}, width=3, height=9).__dict__ == {"width": 3, "depth": 5}
    assert isinstance(registry().build("bare", {}, width=3), Bare)


def test_names_are_listed_in_order() -> None:
    assert registry().names == ("bare", "part")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pert", {}, "axis must be one of bare, part, but is 'pert'."),
        ("part", {"deph": 1}, r"Part \(axis 'part'\) has no option 'deph'; it knows depth."),
        ("part", {"width": 1}, r"Part \(axis 'part'\) has no option 'width'; it knows depth."),
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
