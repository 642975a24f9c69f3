"""Tab completion, as bash drives it: through an environment variable, in a process a key."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent


def press_tab(words: str, **environment: str) -> subprocess.CompletedProcess[str]:
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
        env={**os.environ, "PATH": path, **environment},
    )


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pyramidions summarize --min-len 3 --le", ["--length-penalty"]),
        ("pyramidions summarize model --long ", ["truncate", "chunk", "merge", "sections", "extract", "rewrite"]),
        # click asks for the completion of files that bash has itself.
        ("pyramidions summarize model -o pa", ["[-o default]"]),
    ],
)
def test_names_of_options_and_choices_are_completed(words: str, offered: list[str]) -> None:
    done = press_tab(words)
    assert [line for line in done.stdout.splitlines() if line] == offered
    assert done.stderr == ""


def test_all_commands_are_offered_and_nothing_heavy_is_imported() -> None:
    done = press_tab("pyramidions ", PYTHONPROFILEIMPORTTIME="1")
    assert {"average", "prepare", "summarize", "user-dir"} <= set(done.stdout.split())
    options = press_tab("pyramidions summarize --", PYTHONPROFILEIMPORTTIME="1")
    imported = set(re.findall(r"\| +(\S+)$", done.stderr + options.stderr, re.MULTILINE))
    assert "click" in imported
    assert not {"torch", "fairseq", "pandas", "matplotlib", "datasets", "transformers"} & imported
