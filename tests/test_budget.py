"""What the code may weigh. A commit that lowers a count lowers its limit; one that raises a limit says why below.

Raised since eec1c4ca (package 62,661 lines, lab 12,889, tests 60,448, 13,532 rows, 21 commands):

- Package, 174 lines: powers, fractions and roots are read alike from every format, and people read a document's own
  characters (`documents/formulas.py`, `text/normalization.py`). Tests, 224 lines and 55 rows: of these, and this file.
- Package, 204 lines: parts of a user's own come from a folder or an installed module (`base/parts.py`, `--user-dir`);
  LaTeX in which definitions begin environments.
- Scripts, 386 lines: `upgrade.py` has what the package needed for models of older releases, and puts the state of an
  optimizer in today's order.
- Rest, 3 rows: sentences about summaries and damage, which two tests held, are bad inputs; `score --lead` of parts.
- Tests, 220 lines and 34 rows: tokenizers of any kind, folders of any family, parts of one's own.
- Rest, 747 rows: each case of bad_input is a test of its own, and was a part of one before.
- Lab, 560 lines: `pooling` measures what is read through a pooling, with controls (`lab/pooling.py`); the 15 configs
  that it replaces were no code.
- Lab, 82 lines: what a run was made on is found in `lab/environment.py`, and no longer in the package.
- Above the seam, 257 rows: tests of readers stand beside the readers, and were below the seam. 313 rows: numbers in 11
  written forms, sentence ends in 39 languages, headings in 20, boxes beside the text of pages.
- Package, 2,130 lines, tests, 1,700 lines, rows, 270: what faults of reading, of models from the hub and of
  hostile input cost: formulas and sentence joins of one kind for every format, quantities of `check`, one deadline of
  `--writer`, work of `serve` in a process, searches that end as transformers' do, types at public borders; running text
  of PDF without tables, Word's fields, the main block of a page.
- Package, 92 lines, tests, 82 lines, rows, 9: `--method auto` takes the method that suits a document
  (`suited`).
- Lab, 60 lines, package, 11, tests, 87 lines and 5 rows: rows of `pooling` whose pointer finds a token only through the
  vector that it is in (`lab/members.py`).
- Package, 210 lines, tests, 129 lines, rows, 15; `summarize`, 1 option: steps whose tensors stay in their places, which
  a GPU can replay without Python (`nn/decoder/static.py`).
- Lab, 6 lines: a GPU's benchmark counts kernels and writes with graphs.
- Package, 45 lines: patterns of notices are tried where a word of theirs stands; a policy's tests of what does not
  change are made once for a document.
- `extract`, 2 options: `--tokens` and `--tokenizer` stand for the command `compress`.
- Package, 86 lines, tests, 75 lines, rows, 7: the call of the pipeline "summarization", which transformers removed
  (`inference/summarization_pipeline.py`).
- Package, 8 lines, tests, 24 lines, rows, 4: configs of exports say what CTranslate2 reads, prepared folders say their
  release of stop-words, and an error names the extra that brings transformers.
- Package, 6 lines, tests, 3 lines, rows, 2: `auto` takes a few sentences for no paper, and `--explain` replaces no page
  of others.
- Package, 7 lines, tests, 9 lines, rows, 3: an extract has nothing of the terms around a book of Project Gutenberg, and
  neither beginnings nor entries of the lists of a law.
- Package, 61 lines, tests, 28 lines, rows, 4: a training step starts fewer kernels on a GPU: layers that read the same
  rows are one product, and top-k has one backward pass.
- Package, 4 lines, tests, 5 lines, rows, 1: sentences end in paragraphs that begin with "(1)" or "(a)".
- Package, 306 lines, tests, 137 lines, rows, 7: concepts know what stands around them, which gains 0.2 ROUGE
  (`extract/concepts/context.py`, `runs/contexts.py`).
- Package, 5 lines, tests, 4 lines, rows, 1: letters beyond U+FFFF of PDF files.
- Package, 150 lines, tests, 76 lines, rows, 22: what newcomers met: letters lost their first sentence and kept their
  signature, pages of meetings had no speakers, a pooling that never pools was silent; sooner tests of sentences.
- Package, 193 lines, lab, 5 lines, tests, 174 lines, rows, 25; `summarize`, 1 option: windows by FlexAttention
  (`nn/functional/flex.py`).
- Package, 5 lines, tests, 13 lines, rows, 5: `auto` knows papers of any field, and shown commands have few quotes.
- Package, 39 lines, tests, 41 lines, rows, 6: pretrained models and `--writer` read what the method that suits a
  document selects, and a query of stop words alone does not stop them.
- Package, 17 lines, tests, 12 lines, rows, 4: ligatures of TeX in PDF files of macOS, menus in a page's own elements,
  and PDF files of which most is garbled are refused.
- Package, 1 line, tests, 2 lines: `extract --json` says which method `auto` took (`selected_by`).
- Package, 18 lines, tests, 12 lines: the stemmer is loaded without the rest of nltk, which took 2.5 s of each extract.
- Package, 24 lines, tests, 36 lines, rows, 7: `fairseq-train` refuses what it would ignore or break at: another
  schedule or window of a resumed run, a checkpoint that is missing, `--store-ema`.
"""

from pathlib import Path

import click
import pytest
from covering import ROWS as COUNTED

from pyramidions.cli import main

ROOT = Path(__file__).parent.parent
#: Lines of .py, .js, .css and .html files.
LINES = {"pyramidions": 55_580, "lab": 6_721, "scripts": 386, "tests": 45_286}
#: Tests of each side of the package, with each row of their tables counted by itself.
ROWS = {"above-the-seam": 2_001, "rest": 5_022}
COMMANDS = 15
#: Options of commands, without --help. --user-dir is one of each command that builds or loads a model.
OPTIONS = {"extract": 25, "prepare": 40, "score": 26, "summarize": 37, "train": 17}
#: How far a limit may stand above its count.
SLACK = 0.01


def within(limit: int, count: int) -> bool:
    """Return whether a count keeps its limit, and the limit follows the count."""
    return count <= limit <= count * (1 + SLACK) + 1


@pytest.mark.parametrize("folder", LINES)
def test_a_folder_has_no_more_lines_than_its_limit(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".js", ".css", ".html")]
    lines = sum(len(path.read_bytes().splitlines()) for path in files)
    assert within(LINES[folder], lines), f"{folder} has {lines:,} lines, and its limit is {LINES[folder]:,}"


def test_a_side_has_no_more_rows_of_tests_than_its_limit(request: pytest.FixtureRequest) -> None:
    config = request.config
    side = config.getoption("--side")
    if side is None or config.args != config.getini("testpaths") or config.option.keyword or config.getoption("--all"):
        pytest.skip("this counts what a push runs")
    rows = config.stash[COUNTED]
    assert within(ROWS[side], rows), f"{side} has {rows:,} rows, and its limit is {ROWS[side]:,}"


def test_there_are_no_more_commands_than_their_limit() -> None:
    assert len(main.list_commands(click.Context(main))) == COMMANDS


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_has_no_more_options_than_its_limit(command: str) -> None:
    found = main.get_command(click.Context(main), command)
    assert found is not None
    assert sum(isinstance(each, click.Option) for each in found.params) == OPTIONS[command]
