"""What Ray computes is, to the byte, what one process does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from invoking import run
from refusals import refused
from small_exports import extractor as exported
from small_language_models import saved

from pyramidions.base.errors import UserError
from pyramidions.cli.engines import TRIES, OnRay, Source
from pyramidions.cli.worker import Report, Worker
from pyramidions.cli.worker import Result as Made
from pyramidions.documents.source import Fields, InputText

WORDS = "bees fly fast a bee with ruler".split()
ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def running() -> Iterator[None]:
    """Start Ray once for all tests; commands use what runs already."""
    import ray.data

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture
def corpus(tmp_path: Path) -> list[Path]:
    """Return inputs of which some cannot be read, with ids that come twice."""
    lines = []
    for number in range(45):
        text = " ".join(WORDS[(number * step) % 7] for step in range(1, 4 + number % 9))
        lines.append(json.dumps({"text": f"{text}. {text[::-1]}.\n\n" * (1 + number % 5), "id": f"id {number % 30}"}))
    for number, bad in ((1, ""), (9, "no JSON"), (40, '{"text": " "}'), (41, '{"body": "x"}')):
        lines.insert(number, bad)
    (tmp_path / "b.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "a.txt").write_text("A bee flies. It flies fast.")
    (tmp_path / "refused.jsonl").write_text('no JSON\n{"text": "Never read."}\n')
    (tmp_path / "c.md").write_text("# A bee\n\nIt flies with a ruler.")
    return [tmp_path / name for name in ("a.txt", "b.jsonl", "refused.jsonl", "c.md")]


@pytest.mark.slow
def test_ray_writes_the_same_bytes(whole_models: dict[str, Path], corpus: list[Path], tmp_path: Path) -> None:
    command = ["summarize", whole_models["plain"], *corpus, "--max-len", 5, "--batch-size", 2, "-o"]
    one = run(*command, tmp_path / "one.jsonl")
    words = [*command, tmp_path / "several.jsonl", "--engine", "ray"]
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    program = Path(sys.executable).with_name("pyramidions")
    several = subprocess.run(
        [program, *map(str, words)], env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert (one.exit_code, several.returncode) == (1, 1), several.stderr
    assert (tmp_path / "several.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    # Without a warning; a slow machine may show a bar, and Ray says how much it says.
    said = [line for line in several.stderr.splitlines() if "summarizing:" not in line and "log level" not in line]
    assert sorted(said) == sorted(one.stderr.splitlines())


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["hiporank", "extractor", "segmenter"])
def test_other_commands_do_so_as_well(kind: str, running: None, corpus: list[Path], tmp_path: Path) -> None:
    command = {
        "hiporank": lambda: ["extract", *corpus, "--sentences", 2],
        "extractor": lambda: ["extract", *corpus, "--method", exported(tmp_path / "model"), "--sentences", 2],
        "segmenter": lambda: ["segments", saved(tmp_path, "gumbel"), *corpus],
    }[kind]()
    one = run(*command, "-o", tmp_path / "one.jsonl")
    several = run(*command, "-o", tmp_path / "several.jsonl", "--engine", "ray")
    assert (one.exit_code, several.exit_code) == (1, 1), several.output
    assert (tmp_path / "several.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    assert sorted(several.stderr.splitlines()) == sorted(one.stderr.splitlines())


class Fragile(Worker):
    """Dies of a document."""

    def __init__(self, marks: Path) -> None:
        self._marks = marks

    def results(self, documents: Iterable[InputText], report: Report) -> Iterator[Made]:
        """Yield each text."""
        for document in documents:
            mark = self._marks / document.text
            if "bomb" in document.text or ("once" in document.text and not mark.exists()):
                mark.touch()
                os._exit(1)
            yield Made(document.origin, document.text)


class Silent:
    """Hears nothing."""

    def add(self, size: float) -> None: ...

    def fail(self, error: UserError) -> None: ...

    def note(self, message: str) -> None: ...


def results(tmp_path: Path, *texts: str) -> list[Any]:
    # The processes of Ray do not know this module.
    ray.cloudpickle.register_pickle_by_value(sys.modules[Fragile.__module__])
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    source = Source([tmp_path / "a.jsonl"], Fields(), together=2)
    engine = OnRay(source, partial(Fragile, tmp_path), Silent())
    return [result.body for group in engine.groups() for result in group]


@pytest.mark.slow
def test_a_group_whose_worker_dies_is_computed_again_or_named(running: None, tmp_path: Path) -> None:
    texts = ["one", "two", "once", "three", "four"]
    assert results(tmp_path, *texts) == texts
    path = tmp_path / "a.jsonl"
    with refused(f"{TRIES} times over {path}:3 to {path}:4"):
        results(tmp_path, "one", "two", "three", "bomb", "four")
