"""Which headings of documents in LaTeX are found? Those that the reader returns, against the commands in the sources.

    python lab/benchmarks/latex_headings.py SOURCES --out lab/benchmarks/results/latex-headings

SOURCES is a folder with a folder for each repository, whose .tex files lie in it. The commands are counted by a regular
expression in a document and in what it includes, without comments and without what stands in an environment `comment`.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from pyramidions.base.environment import commit, versions
from pyramidions.base.errors import UserError
from pyramidions.documents.latex import may_be_document, read_latex

_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_LEFT_OUT = re.compile(r"\\begin\{comment\}.*?\\end\{comment\}", re.DOTALL)
_INCLUDED = re.compile(r"\\(?:input|include|subfile)\{([^{}]*)\}")
_HEADING = re.compile(r"\\(?:part|chapter|section|(?:sub){1,2}section|(?:sub)?paragraph)\*?\s*(?:\[[^\]]*\])?\s*\{")
_DEEPEST = 6


def source_of(path: Path, folder: Path, depth: int = 0) -> str:
    """Return a source with what it includes in place of the commands."""

    def included(match: re.Match[str]) -> str:
        for name in (match[1], f"{match[1]}.tex"):
            if (folder / name).is_file() and depth < _DEEPEST:
                return source_of(folder / name, folder, depth + 1)
        return ""

    return _INCLUDED.sub(included, _COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace")))


def counted(path: Path) -> dict[str, Any]:
    """Return what is found of a document."""
    body = source_of(path, path.parent).partition("\\begin{document}")[2].partition("\\end{document}")[0]
    wanted = len(_HEADING.findall(_LEFT_OUT.sub("", body)))
    try:
        paper = read_latex(path)
    except UserError as error:
        return {"commands": wanted, "headings": 0, "error": str(error).replace(str(path), path.name)}
    words = sum(len(text.split()) for level, text in paper.body if not level)
    headings = sum(level > 0 for level, _ in paper.body)
    return {"commands": wanted, "headings": headings, "words": words, "title": bool(paper.title)}


def main(arguments: list[str] | None = None) -> int:
    """Count, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources", type=Path, help="folder with a folder for each repository")
    parser.add_argument("--out", type=Path, help="write OUT.json")
    asked = parser.parse_args(arguments)
    files = [path for path in sorted(asked.sources.rglob("*.tex")) if may_be_document(path)]
    rows = {str(path.relative_to(asked.sources)): counted(path) for path in files}
    for name, row in rows.items():
        print(f"{row['headings']:5} of {row['commands']:4}  {name}")
    found = sum(min(row["headings"], row["commands"]) for row in rows.values())
    print(f"{found:,} of {sum(row['commands'] for row in rows.values()):,} headings of {len(rows)} documents")
    if asked.out is not None:
        about = {"command": "python lab/benchmarks/latex_headings.py", "commit": commit(), "versions": versions()}
        asked.out.with_suffix(".json").write_text(json.dumps(about | {"documents": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
