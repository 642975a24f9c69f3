"""What several tests share: a prepared data folder of real papers, and a trained model."""

import lzma
import signal
import sys
from contextlib import redirect_stderr
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from covering import NIGHTLY, ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browser import Opener
    from hub_stand_in import Hub
    from selenium import webdriver

    from pyramidions.data.folder import DataFolder

TESTS = Path(__file__).parent
SAMPLE = TESTS.parent / "data" / "sample"
#: Folders of the side of the package that needs no torch; with the rest they are the two jobs of a whole run.
ABOVE_THE_SEAM = ("base", "data", "documents", "extract", "files", "pages", "scoring", "text")
SIDES = ("above-the-seam", "rest")


def pytest_configure() -> None:
    """Take interrupts as usual: a shell ignores them for what it starts in the background, and children inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # rouge-score, which tests compare with, brings absl. Its log keeps the standard error of whoever imports it first,
    # and closes that when submitit sets up logging anew: it must not be a test's.
    if find_spec("absl"):
        with redirect_stderr(sys.__stderr__):
            import_module("absl.logging")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the device on which contract tests of `pyramidions.nn` run, the choice of whole products, and of a side."""
    parser.addoption("--device", default="cpu", help="of the files that tests/nn/conftest.py names: cpu or cuda")
    parser.addoption("--all", action="store_true", help="run whole products of parts and what else is nightly")
    parser.addoption("--side", choices=SIDES, help="run the tests of one side of the package, and those of the budget")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the other side; None lets other rules decide."""
    side = config.getoption("--side")
    if side is None or TESTS not in collection_path.parents or collection_path.name == "test_budget.py":
        return None
    is_above = collection_path.relative_to(TESTS).parts[0] in ABOVE_THE_SEAM
    return is_above == (side == "rest") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `--all` runs, and count the rest."""
    if not config.getoption("--all"):
        left_out = [item for item in items if item.get_closest_marker(NIGHTLY)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker(NIGHTLY)]
    config.stash[ROWS] = len(items)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> "DataFolder":
    """Return a folder with 24 training, 6 validation and 10 test papers of the sample."""
    return _prepare(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def labelled_data(tmp_path_factory: pytest.TempPathFactory) -> "DataFolder":
    """Return the same papers with the labels of their sentences."""
    return _prepare(tmp_path_factory.mktemp("labelled"), "--labels")


@pytest.fixture(scope="session")
def marked_data(tmp_path_factory: pytest.TempPathFactory) -> "DataFolder":
    """Return the same papers with a marker before each sentence."""
    return _prepare(tmp_path_factory.mktemp("marked"), "--sentence-markers")


def _prepare(root: Path, *flags: str) -> "DataFolder":
    # Imported here: tests of `pyramidions.nn` need torch alone.
    from fairseq_commands import finish

    from pyramidions.data.folder import DataFolder

    for split, count in (("train", 24), ("valid", 6), ("test", 10)):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers, (root / f"{split}.jsonl").open("w") as few:
            few.writelines(line for _, line in zip(range(count), papers, strict=False))
    finish("pyramidions", "prepare", root, "--out", root / "data", "--vocab-size", 800, *flags)
    return DataFolder(root / "data")


@pytest.fixture(scope="session")
def checkpoint(data: "DataFolder", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny deep_pyramidion, trained for a few updates."""
    from fairseq_commands import train

    save_dir = tmp_path_factory.mktemp("trained")
    quiet = ("--disable-validation", "--no-epoch-checkpoints")
    train(data, save_dir, "--max-update", "100", "--lr", "0.01", "--clip-norm", "1", *quiet)
    return save_dir / "checkpoint_last.pt"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "Iterator[Hub]":
    """Return a stand-in of the hub, with a cache of its own."""
    from hub_stand_in import patched_hub

    with patched_hub(monkeypatch, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> "Iterator[webdriver.Chrome]":
    from browser import chromium

    with chromium() as driver:
        yield driver


@pytest.fixture
def opened(browser: "webdriver.Chrome", tmp_path: Path) -> "Iterator[Opener]":
    """Open pages; at the end, no script may have failed and no request have been refused."""
    from browser import Opener

    yield Opener(browser, tmp_path)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_log("browser") == []
