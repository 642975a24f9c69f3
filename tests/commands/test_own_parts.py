"""A part outside of the checkout, as docs/adding-a-part.md has it: each command finds it, or says what is missing."""

import re
import shlex
from pathlib import Path

import pytest
from fairseq_commands import TINY, run, start

from pyramidions.data.folder import DataFolder

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-part.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## In a folder of your own\n")[2].partition("\n## ")[0]
#: what the page leaves to its reader, and what makes it short; later flags win
FLAGS = [*TINY, "--cpu", "--max-update", "2", "--disable-validation", "--num-workers", "0", "--log-format", "simple"]


def block(language: str, start: str = "") -> str:
    """Return the first block of the page in a language that begins so, without that line."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(each for each in found if each.startswith(start)).removeprefix(start)


@pytest.fixture
def project(data: DataFolder, tmp_path: Path) -> Path:
    """Return a folder with the part of the page, data and a paper."""
    (tmp_path / "my_parts").mkdir()
    (tmp_path / "my_parts" / "__init__.py").write_text(block("python", "# my_parts/__init__.py\n"))
    pooler = block("python", "# pyramidions/nn/pooling/gated_topk.py\n")
    (tmp_path / "my_parts" / "gated_topk.py").write_text(pooler)
    (tmp_path / "prepared").symlink_to(data.path)
    (tmp_path / "paper.txt").write_text("We study pooling of long documents. It takes less time than reading all.\n")
    return tmp_path


def test_a_folder_of_parts_does_for_all_commands_and_without_it_they_name_it(project: Path) -> None:
    train, *ours = [shlex.split(line) for line in block("sh").replace("\\\n", " ").splitlines()]
    # In a process that has imported nothing before.
    training = start(*train, *FLAGS, folder=project)
    log, _ = training.communicate()
    assert training.returncode == 0, log
    for words in ours:
        done = run(*words, folder=project)
        assert done.returncode == 0, done.stdout
    sentence = " ".join(block("text", "Error:").split())
    for words in ours:
        done = run(*words[:-2], folder=project)
        assert done.returncode == 1 and done.stdout.count("\n") == 1
        place = "my-summarizer" if words[1] == "summarize" else "checkpoints/checkpoint_last.pt"
        assert done.stdout.strip() == f"Error: {sentence.replace('my-summarizer', place)}"
