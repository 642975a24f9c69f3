"""The pages of the documentation: their text, code blocks and commands."""

import itertools
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
USER_DIR = str(ROOT / "pyramidions")
PAGES = ["README.md", "lab/README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """Return the words of every shell command; no comments, variables, redirections, or ends of background jobs."""
    found = []
    for block in blocks(page, "bash"):
        for line in block.replace("\\\n", " ").replace('"$(pyramidions user-dir)"', USER_DIR).splitlines():
            words = shlex.split(line.partition(" > ")[0].removesuffix(" &"), comments=True)
            if words := list(itertools.dropwhile(lambda word: re.match(r"[A-Z_]+=", word), words)):
                found.append(words)
    return found
