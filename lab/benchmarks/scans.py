"""How well are scanned pages read? Pages of real PDF files as pictures, beside the text that the files hold.

    python lab/benchmarks/reading.py documents --collect
    python lab/benchmarks/scans.py documents --out lab/benchmarks/results/scans

A page of each PDF file is made a gray picture, sharp, or with blur and noise. Its words are those that
`pyramidions` reads: figures, formulas and running headers are left out on both sides, so that the difference is
recognition.
"""

import argparse
import json
import re
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter
from reading import checked, read, share

from pyramidions.base.environment import commit, versions
from pyramidions.base.errors import UserError

_WORD = re.compile(r"[^\W_]+")
#: dots an inch, how far the lens blurs in dots, and the deviation of the paper's brightness, of 256
QUALITIES = {"300 dpi": (300, 0.0, 0.0), "150 dpi": (150, 0.0, 0.0), "150 dpi, blurred, noisy": (150, 0.8, 20.0)}


def words(path: Path) -> Counter[str]:
    """Count the words of a file; none where it holds no text."""
    try:
        text = " ".join(unit.text for unit in read(path).units)
    except UserError:
        return Counter()
    return Counter(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def one_page(path: Path, to: Path) -> pypdfium2.PdfDocument:
    """Write the second page of a PDF file, the first if it has one."""
    with pypdfium2.PdfDocument(path) as whole:
        page = pypdfium2.PdfDocument.new()
        page.import_pages(whole, [min(1, len(whole) - 1)])
        page.save(to)
    return page


def scanned(page: pypdfium2.PdfDocument, to: Path, dots: int, blur: float, noise: float) -> None:
    """Write a page as a picture."""
    picture = page[0].render(scale=dots / 72).to_pil().convert("L").filter(ImageFilter.GaussianBlur(blur))
    gray = np.asarray(picture) + np.random.default_rng(1).normal(0, noise, picture.size[::-1])
    Image.fromarray(gray.clip(0, 255).astype(np.uint8)).save(to, "pdf", resolution=dots)


def measure(path: Path, work: Path) -> dict[str, Any]:
    """Return how many words a page has, and how many of them are read from its pictures."""
    page = one_page(path, work / "page.pdf")
    theirs = words(work / "page.pdf")
    found: dict[str, Any] = {"words": theirs.total()}
    for name, quality in QUALITIES.items():
        scanned(page, work / "scan.pdf", *quality)
        begin = process_time()
        ours = words(work / "scan.pdf")
        found[name] = {"read": ours.total(), "right": (ours & theirs).total(), "seconds": process_time() - begin}
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures of all pages in markdown."""
    made = ["| picture | words found | words right | processor seconds a page |", "|---|---|---|---|"]
    for name in QUALITIES:
        right, read, whole = (
            sum(row[name]["right"] for row in rows),
            sum(row[name]["read"] for row in rows),
            sum(row["words"] for row in rows),
        )
        seconds = sum(row[name]["seconds"] for row in rows) / len(rows)
        made.append(f"| {name} | {share(right, whole)} | {share(right, read)} | {seconds:.1f} |")
    return "\n".join(made) + "\n"


def main() -> None:
    """Read pages and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the documents")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the documents (default: all PDF files)")
    parser.add_argument("--out", type=Path, help="write PATH.json and PATH.md")
    given = parser.parse_args()
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
