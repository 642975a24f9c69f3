"""Tab completion, as bash drives it: through an environment variable, in a process a key."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tables import for_each

PROGRAMS = Path(sys.executable).parent


def press_tab(words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Source the script that click writes, call its function as bash does, and print what it offers."""
    given = shlex.split(words) + ([""] if words.endswith(" ") else [])
    script = (
        'eval "$(_PYRAMIDIONS_COMPLETE=bash_source pyramidions)"\n'
        f"COMP_WORDS=({' '.join(map(shlex.quote, given))}); COMP_CWORD={len(given) - 1}\n"
        'compopt() { echo "[$1 $2]"; }\n'
        "_pyramidions_completion pyramidions\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
    )


@for_each(
    ("words", "offered"),
    [
        ("pyramidions su", ["summarize"]),
        ("pyramidions --ver", ["--version"]),
        ("pyramidions summarize --lo", ["--long"]),
        ("pyramidions summarize --min-len 3 --le", ["--length-penalty"]),
        ("pyramidions summarize model --long ", ["truncate", "chunk", "merge", "sections", "extract", "rewrite"]),
        ("pyramidions prepare --model-type u", ["unigram"]),
    ],
)
def test_names_of_commands_options_and_choices_are_completed(words: str, offered: list[str]) -> None:
    done = press_tab(words)
    assert [line for line in done.stdout.splitlines() if line and not line.startswith("[")] == offered
    assert done.stderr == ""


def test_all_commands_are_offered_where_none_was_begun() -> None:
    assert {"average", "prepare", "summarize", "user-dir"} <= set(press_tab("pyramidions ").stdout.split())


@pytest.mark.parametrize("words", ["pyramidions summarize pa", "pyramidions summarize model -o pa"])
def test_files_are_left_to_bash(words: str) -> None:
    # click asks for the completion of files that bash has itself.
    assert "[-o default]" in press_tab(words).stdout


@for_each("words", ["pyramidions ", "pyramidions summarize --", "pyramidions cost deep"])
def test_completion_imports_nothing_heavy(words: str) -> None:
    imported = re.findall(r"\| +(\S+)$", press_tab(words, PYTHONPROFILEIMPORTTIME="1").stderr, re.MULTILINE)
    assert "click" in imported
    assert not {"torch", "fairseq", "pandas", "matplotlib", "datasets", "transformers"} & set(imported)
