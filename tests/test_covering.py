from itertools import product

from covering import covering


def chosen(cases: list[tuple[str, ...]], strength: int = 2) -> list[tuple[str, ...]]:
    return [param.values for param in covering(cases, strength) if not param.marks]  # type: ignore[attr-defined]


def test_all_pairs_are_covered_by_fewer_cases_than_the_product() -> None:
    cases = list(product("abc", "xyz", "12"))
    few = chosen(cases)
    assert len(few) < len(cases) / 1.5
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert {(case[one], case[other]) for case in few} == {(case[one], case[other]) for case in cases}


def test_each_choice_is_covered_once() -> None:
    assert len(chosen(list(product("abc", "xyz")), strength=1)) == 3


def test_a_pair_that_only_one_case_has_is_always_chosen() -> None:
    assert ("c", "z") in chosen([("a", "x"), ("a", "z"), ("c", "z")])
