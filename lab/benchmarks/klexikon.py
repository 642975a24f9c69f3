"""Make a corpus of Klexikon: articles of the German Wikipedia, and those of an encyclopedia for children.

    git clone https://github.com/dennlinger/klexikon
    python lab/benchmarks/klexikon.py klexikon --out german
    python lab/benchmarks/extraction.py german/test.jsonl --language de --words 400 --only lead textrank hiporank

Aumiller and Gertz 2022, "Klexikon: A German Dataset for Joint Summarization and Simplification". Their splits are kept;
the texts are licensed CC BY-SA.
"""

import argparse
import json
import re
from pathlib import Path

_SPLITS = {"train": "train", "validation": "valid", "test": "test"}
_HEADING = re.compile(r"^(=+) (.*)$", re.MULTILINE)


def record(article: Path, summary: Path) -> dict[str, str]:
    """Return a pair; the article has headings in markdown, the summary has none."""
    text = _HEADING.sub(lambda heading: f"{'#' * len(heading[1])} {heading[2]}", article.read_text())
    return {"id": article.stem, "article": text, "abstract": _HEADING.sub("", summary.read_text())}


def main() -> None:
    """Write a file for each split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="clone of the repository")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for theirs, ours in _SPLITS.items():
        folder = given.clone / "data" / "splits" / theirs
        rows = [record(path, folder / "klexikon" / path.name) for path in sorted((folder / "wiki").glob("*.txt"))]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (given.out / f"{ours}.jsonl").write_text("".join(lines))
        print(f"{ours}: {len(rows)} pairs")


if __name__ == "__main__":
    main()
