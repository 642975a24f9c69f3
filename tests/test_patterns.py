"""No regular expression of the package backtracks over a long text, whatever the text is."""

import ast
import builtins
import re
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
# Where patterns stand in a table that a loop reads.
TABLES: dict[str, Any] = {
    "pyramidions.plugin.models.pyramidion": lambda module: [pattern for pattern, _ in module._RENAMED]
}
ANCHORED = {"match", "fullmatch"}
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


class Anything(str):
    """A text whose attributes are the text as well."""

    def __getattr__(self, name: str) -> "Anything":
        return self


class Names(dict[str, Any]):
    """The names of a module; a local one stands for a text."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Anything("x"))


def patterns(module: ModuleType) -> Iterator[tuple["re.Pattern[Any]", str]]:
    """Yield the patterns of a module, each with what finds it: `match`, `fullmatch`, or `finditer` for all else."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    names = Names(vars(module))
    used: dict[str, set[str]] = {}
    held: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
        if isinstance(node, ast.Attribute):
            held[node.value] = node.attr
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            held[node.value] = node.targets[0].id
    for node in ast.walk(tree):
        call = node.func if isinstance(node, ast.Call) else None
        if not (isinstance(call, ast.Attribute) and ast.unparse(call.value) == "re" and call.attr != "escape"):
            continue
        pattern, *others = [*node.args, *(word.value for word in node.keywords)]
        if isinstance(pattern, ast.Name | ast.Subscript) and ast.unparse(pattern) not in names:
            texts = TABLES[module.__name__](module)
        else:
            texts = [value(pattern, names)]
        flags = [flag for each in others if isinstance(flag := value(each, names), re.RegexFlag)]
        methods = {call.attr} if call.attr != "compile" else {held.get(node, "")}
        methods = used.get(methods.copy().pop(), methods)
        for text in texts:
            yield re.compile(text, *flags), methods.pop() if len(methods) == 1 and methods <= ANCHORED else "finditer"


def value(node: ast.expr, names: Names) -> Any:
    try:
        return eval(ast.unparse(node), {}, names)  # noqa: S307, an expression of the package itself
    except Exception:
        return None


def sample(items: Any) -> str:
    """Return a short text that matches a parsed pattern, but for what it looks at before and behind."""
    return "".join(found[0] for kind, about in items for found in [texts(kind, about)] if found)


def texts(kind: Any, about: Any) -> list[str]:
    """Return short texts that match a part of a pattern."""
    if kind in (op.LITERAL, op.RANGE):
        return [chr(about)] if kind is op.LITERAL else [chr(about[0])]
    if kind is op.NOT_LITERAL:
        return ["a" if about != ord("a") else "b"]
    if kind is op.ANY:
        return ["a"]
    if kind is op.CATEGORY:
        return [{op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " "}.get(about, "a" if "NOT" not in str(about) else "!")]
    if kind is op.IN:
        if about[0][0] is op.NEGATE:
            barred = {text for each in about[1:] for text in texts(*each)}
            return [text for text in "a1 !" if text not in barred]
        return [text for each in about for text in texts(*each)]
    if kind is op.BRANCH:
        return [sample(branch) for branch in about[1]]
    if kind is op.SUBPATTERN:
        return [sample(about[-1])]
    if kind is op.ATOMIC_GROUP:
        return [sample(about)]
    if kind in REPEATS:
        return [sample(about[2]) * max(about[0], 1)]
    return []


def inside(items: Any) -> Iterator[tuple[str, Any]]:
    """Yield each part of a pattern, at any depth, with a text that brings a match to it."""
    for place, (kind, about) in enumerate(items):
        before = sample(items[:place])
        yield before, (kind, about)
        nested: list[Any] = []
        if kind is op.BRANCH:
            nested = about[1]
        elif kind in (op.SUBPATTERN, op.ASSERT, op.ASSERT_NOT, *REPEATS):
            nested = [about[-1]]
        elif kind is op.ATOMIC_GROUP:
            nested = [about]
        for each in nested:
            yield from ((before + inner, part) for inner, part in inside(each))


class Hostile(NamedTuple):
    """Much of the same, behind what brings a match there and before what ends it."""

    before: str
    body: str

    def text(self, size: int) -> str:
        return self.before + self.body * (size // len(self.body)) + "\0"


def hostile(pattern: "re.Pattern[Any]") -> list[Hostile]:
    """Return texts made of the pieces of a pattern."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parts = list(inside(parser.parse(text, pattern.flags)))
    found = {each for _, part in parts for each in texts(*part)[:3] if each}
    pieces = sorted(found, key=len)[:8] + ["a", "1", " ", "\n"]
    # Only what may be repeated without end can take long.
    befores = {before for before, (kind, about) in parts if kind in REPEATS and about[1] >= op.MAXREPEAT}
    bodies = {"".join(pair) for pair in product(pieces, [*pieces, *befores])} | found | befores - {""}
    return [Hostile(before, body) for before in befores for body in bodies]


def seconds(pattern: "re.Pattern[Any]", method: str, text: str, times: int) -> float:
    given = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    taken = []
    for _ in range(times):
        start = time.process_time_ns()
        if method == "finditer":
            for _ in pattern.finditer(given):
                pass
        else:
            getattr(pattern, method)(given)
        taken.append(time.process_time_ns() - start)
    return max(min(taken), 1000) / 1e9


def grows(pattern: "re.Pattern[Any]", method: str, given: Hostile, size: int, times: int) -> float:
    """Return how many times as long a text takes that is eight times as long."""
    short, long = given.text(size), given.text(8 * size)
    return seconds(pattern, method, long, times) / seconds(pattern, method, short, times)


def too_slow(pattern: "re.Pattern[Any]", method: str) -> Hostile | None:
    """Return a text over which a pattern backtracks; None if there is none."""
    for given in hostile(pattern):
        # 8 times as long if linear, 64 times if quadratic. Something else may have had the processor: look again.
        if grows(pattern, method, given, 3, 1) > 500 or all(
            grows(pattern, method, given, size, times) > 24 for size, times in ((200, 1), (200, 3), (400, 5))
        ):
            return given
    return None


MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "pyramidions").rglob("*.py"))
    if re.search(r"\bre\.", path.read_text())
]


@pytest.mark.parametrize("room", sorted({name.split(".")[1] for name in MODULES}))
def test_no_pattern_takes_longer_than_in_proportion_to_the_text(room: str) -> None:
    for name in (name for name in MODULES if name.split(".")[1] == room):
        for pattern, method in patterns(import_module(name)):
            assert too_slow(pattern, method) is None, (name, pattern.pattern, method)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[ ]{0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*?)[ \t#]*$", "match"),
        (r"(?:a+)+$", "match"),
        (r"(\w+)=", "finditer"),
        (r"valid on '(.*?)' subset", "finditer"),
        (r"a*x|b", "finditer"),
        (r"\\\(((?:[^\\]|\\[^()])++)\\\)", "finditer"),
    ],
)
def test_patterns_that_backtrack_are_found(pattern: str, method: str) -> None:
    # What else runs may make short texts slow, too.
    assert any(too_slow(re.compile(pattern), method) for _ in range(3))
