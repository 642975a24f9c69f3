"""The names that users import, as people, programs and type checkers see them."""

import subprocess
import sys
from pathlib import Path

import pytest

import pyramidions
from pyramidions import Extractor, UserError

ROOT = Path(__file__).parent.parent


def test_each_public_name_can_be_imported_and_is_listed() -> None:
    assert all(getattr(pyramidions, name).__name__ == name for name in pyramidions.__all__)
    assert {*pyramidions.__all__, "__version__"} <= {*dir(pyramidions)}
    with pytest.raises(UserError, match="words"):
        Extractor().extract("A text of one sentence.", words=0)
    with pytest.raises(AttributeError, match="Extracter"):
        pyramidions.Extracter  # type: ignore[attr-defined] # noqa: B018


RIGHT = """\
import pyramidions
from pyramidions import Extractor, Segmenter, Summarizer, UserError

try:
    words: int = len(Extractor("lead").extract("A text.", words=220).sentences[0].text)
    score: float = Summarizer.from_pretrained("model").summarize(["A text."])[0].score
    factor: float | None = Segmenter.from_pretrained("model").segment("A text").shortening_factor
except UserError as error:
    print(error, pyramidions.__version__)
"""
WRONG = {
    "from pyramidions import Extracter": 'Module "pyramidions" has no attribute "Extracter"',
    "Extractor().extract('A text.').sentences[0].txt": '"Extract" has no attribute "txt"',
    "Extractor().extract('A text.', word=220)": 'Unexpected keyword argument "word" for "extract" of "Extractor"',
    "Extractor().extract('A text.', words='220')": 'Argument "words" to "extract" of "Extractor" has incompatible type',
    "Summarizer.from_pretrained('model').summarize(['A text.'])[0].scores": '"Summary" has no attribute "scores"',
    "Segmenter.from_pretrained('model').segment('A text').factor": '"SegmentedText" has no attribute "factor"',
}


def test_a_type_checker_finds_each_mistake_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text("\n".join(["from pyramidions import Extractor, Segmenter, Summarizer", *WRONG]))
    command = [sys.executable, "-m", "mypy", "--no-pretty", tmp_path / "right.py", tmp_path / "wrong.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = [line.partition("wrong.py:")[2] for line in done.stdout.splitlines() if "error:" in line]
    assert len(found) == len(WRONG), done.stdout
    for number, (line, said) in enumerate(zip(found, WRONG.values(), strict=True), 2):
        assert line.startswith(f"{number}: error: {said}")
