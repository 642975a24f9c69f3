"""How well are scanned pages read? Pages of real PDF files as pictures, beside the text that the files hold.

    python lab/benchmarks/reading.py documents --collect
    python lab/benchmarks/scans.py documents --out lab/benchmarks/results/scans

A page of each PDF file is made a gray picture (JPEG), sharp, or with blur and noise. Its words are compared with those
that `pyramidions` reads in the page itself. There it knows figures, formulas and captions by what a picture does not
tell, and leaves them out; in the picture they count as wrong words.
"""

import argparse
import json
import os
import re
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter
from reading import checked, read, share

from pyramidions.base.environment import commit, versions
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library

_WORD = re.compile(r"[^\W_]+")
#: dots an inch, how far the lens blurs in dots, and the deviation of the paper's brightness, of 256
QUALITIES = {"300 dpi": (300, 0.0, 0.0), "150 dpi": (150, 0.0, 0.0), "150 dpi, blurred, noisy": (150, 0.8, 20.0)}


def words(path: Path) -> Counter[str]:
    """Count the words of a file; none where it holds no text."""
    try:
        text = " ".join(unit.text for unit in read(path).units)
    except UserError as error:
        if "text" not in str(error):
            raise
        return Counter()
    return Counter(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def seconds() -> float:
    """Return the processor's seconds of this process and of those that it waited for."""
    took = os.times()
    return took.user + took.system + took.children_user + took.children_system


def one_page(path: Path, to: Path) -> None:
    """Write the second page of a PDF file, the first if it has one."""
    with pypdfium2.PdfDocument(path) as whole, pypdfium2.PdfDocument.new() as page:
        page.import_pages(whole, [min(1, len(whole) - 1)])
        page.save(to)


def scan(page: Path, to: Path, dots: int, blur: float, noise: float) -> None:
    """Write a page as a picture."""
    with pypdfium2.PdfDocument(page) as opened:
        picture = opened[0].render(scale=dots / 72).to_pil().convert("L").filter(ImageFilter.GaussianBlur(blur))
    gray = np.asarray(picture) + np.random.default_rng(1).normal(0, noise, picture.size[::-1])
    Image.fromarray(gray.clip(0, 255).astype(np.uint8)).save(to, "pdf", resolution=dots)


def measure(path: Path, work: Path) -> dict[str, Any]:
    """Return how many words a page has, and how many of them are read from its pictures."""
    one_page(path, work / "page.pdf")
    theirs = words(work / "page.pdf")
    found: dict[str, Any] = {"words": theirs.total()}
    for name, quality in QUALITIES.items() if theirs else ():
        scan(work / "page.pdf", work / "scan.pdf", *quality)
        begin = seconds()
        ours = words(work / "scan.pdf")
        found[name] = {"read": ours.total(), "right": (ours & theirs).total(), "seconds": seconds() - begin}
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures of all pages in markdown."""
    made = ["| picture | words found | words right | processor seconds a page |", "|---|---|---|---|"]
    for name in QUALITIES:
        right, found, took = (sum(row[name][part] for row in rows) for part in ("right", "read", "seconds"))
        whole = sum(row["words"] for row in rows)
        made.append(f"| {name} | {share(right, whole)} | {share(right, found)} | {took / max(1, len(rows)):.1f} |")
    return "\n".join(made) + "\n"


def main() -> None:
    """Read pages and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the documents")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the documents (default: all PDF files)")
    parser.add_argument("--out", type=Path, help="write PATH.json and PATH.md")
    given = parser.parse_args()
    optional_library("rapidocr", "A benchmark of scans", extra="ocr")
    rows = []
    for each in checked(given.folder):
        if each.format != "pdf" or (given.only and each.name not in given.only):
            continue
        with tempfile.TemporaryDirectory() as work:
            row = {"name": each.name, "language": each.language, **measure(given.folder / each.file, Path(work))}
        print(json.dumps(row), flush=True)
        if row["words"]:
            rows.append(row)
    print(table(rows))
    if given.out:
        about = {"command": "python lab/benchmarks/scans.py", "commit": commit(), "versions": versions()}
        given.out.with_suffix(".json").write_text(json.dumps({**about, "pages": rows}, indent=1) + "\n")
        given.out.with_suffix(".md").write_text(table(rows))


if __name__ == "__main__":
    main()
