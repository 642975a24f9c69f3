"""Hooks of mkdocs: pages link to files of the repository as on GitHub, and examples in the help of commands are code.

A file outside docs/ that a page links to lies under `repository/` in the site: pages of Markdown as pages, others as
they are.
"""

import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pyramidions.cli import main

ROOT = Path(__file__).parent.parent
#: Programs that print the tables at the end of pages.
TABLES = {"corpora.md": "docs.corpora_table", "flags.md": "docs.training_flags"}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]*)([^)\s]*)(?=\))")


def _linked(page: Path) -> set[Path]:
    """Return the files of the repository that a page links to."""
    targets = {(page.parent / link).resolve() for link, _ in LINK.findall(page.read_text(encoding="utf-8")) if link}
    return {target / "README.md" if target.is_dir() else target for target in targets}


def _place(path: Path) -> str:
    """Return where a file lies in the site, as mkdocs names its sources."""
    within = path.relative_to(ROOT).as_posix()
    return within.removeprefix("docs/") if within.startswith("docs/") else f"repository/{within}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to, and what that links to."""
    new = {ROOT / "docs" / file.src_uri for file in files.documentation_pages()}
    known: set[Path] = set()
    while new:
        path = new.pop()
        known.add(path)
        if path.is_file() and files.get_file_from_path(_place(path)) is None:
            files.append(File.generated(config, _place(path), abs_src_path=str(path)))
        if path.suffix == ".md" and path.is_file():
            new |= _linked(path) - known
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between files of the site, and add what is generated."""
    here = ROOT / page.file.src_uri.removeprefix("repository/")
    if not page.file.src_uri.startswith("repository/"):
        here = ROOT / "docs" / page.file.src_uri

    def moved(found: re.Match[str]) -> str:
        target = (here.parent / found[1]).resolve() if found[1] else here
        target = target / "README.md" if target.is_dir() else target
        return os.path.relpath(_place(target), Path(page.file.src_uri).parent) + found[2]

    program = TABLES.get(page.file.src_uri)
    return LINK.sub(moved, markdown) + (_printed(program) if program else "")


def _printed(program: str) -> str:
    """Return what a program prints: in a process of its own, since fairseq changes what is logged."""
    command = [sys.executable, "-m", program]
    return "\n" + subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def on_pre_build(config: MkDocsConfig) -> None:
    """Turn what click prints as it stands, lines of examples behind a \\b, into blocks of code."""
    for name in main.list_commands(click.Context(main)):
        command: Any = main.get_command(click.Context(main), name)
        command.help = re.sub(r"\x08\n(.*:)\n((?: .*\n?)+)", _example, inspect.cleandoc(command.help))


def _example(found: re.Match[str]) -> str:
    code = textwrap.dedent(found[2]).rstrip()
    return f"**{found[1]}**\n\n```bash\n{code}\n```\n"
