"""A part outside of the checkout, as docs/adding-a-part.md has it: each command finds it, or says what is missing."""

import re
import shlex
from pathlib import Path

import pytest
from fairseq_commands import TINY, finish, run, start

from pyramidions.data.folder import DataFolder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-part.md").read_text(encoding="utf-8")
#: what the page leaves to its reader, and what makes it short; later flags win
FLAGS = [*TINY, "--cpu", "--max-update", "2", "--disable-validation", "--num-workers", "0", "--log-format", "simple"]


def block(language: str, start: str = "") -> str:
    """Return the first block of the page in a language that begins so, without that line."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(each for each in found if each.startswith(start)).removeprefix(start)


#: of the page: training, and what reads the model
COMMANDS = [shlex.split(line) for line in block("sh").replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def project(data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the part of the page, a paper, and a model that the page's first command trained."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "my_parts").mkdir()
    (folder / "my_parts" / "__init__.py").write_text(block("python", "# my_parts/__init__.py\n"))
    pooler = block("python", "# pyramidions/nn/pooling/gated_topk.py\n")
    (folder / "my_parts" / "gated_topk.py").write_text(pooler)
    (folder / "prepared").symlink_to(data.path)
    (folder / "paper.txt").write_text("We study pooling of long documents. It takes less time than reading all.\n")
    # In a process that has imported nothing before.
    training = start(*COMMANDS[0], *FLAGS, folder=folder)
    log, _ = training.communicate()
    assert training.returncode == 0, log
    return folder


def test_a_folder_of_parts_does_for_all_commands_and_without_it_they_name_it(project: Path) -> None:
    for words in COMMANDS[1:]:
        finish(*words, folder=project)
    sentence = " ".join(block("text", "Error:").split())
    for words in COMMANDS[1:]:
        done = run(*words[:-2], folder=project)
        assert done.returncode == 1 and done.stdout.count("\n") == 1
        place = "my-summarizer" if words[1] == "summarize" else "checkpoints/checkpoint_last.pt"
        assert done.stdout.strip() == f"Error: {sentence.replace('my-summarizer', place)}"


MAKES = """\
import pickle, pyramidions
pyramidions.load_parts("my_parts")
pickle.dump(pyramidions.SummarizerMap("checkpoints", max_len=4), open("map", "wb"))
"""
MAPS = 'import pickle; print(pickle.load(open("map", "rb"))({"text": ["A paper."]}).keys())'


@pytest.mark.slow
def test_other_processes_import_the_folder_as_well(project: Path) -> None:
    words = ["pyramidions", *"summarize checkpoints paper.txt --user-dir my_parts --max-len 4 -o".split()]
    here = run(*words, "here.txt", folder=project)
    on_ray = start(*words, "ray.txt", "--engine", "ray", folder=project)
    printed, _ = on_ray.communicate()
    assert (here.returncode, on_ray.returncode) == (0, 0), printed
    assert (project / "here.txt").read_bytes() == (project / "ray.txt").read_bytes()
    # The second process knows the folder by what the first has pickled.
    for code in (MAKES, MAPS):
        printed = finish("python", "-c", code, folder=project, PYTHONPATH=str(ROOT))
    assert "summary" in printed
