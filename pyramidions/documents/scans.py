"""Pages of a PDF file that are pictures, read by optical character recognition (OCR); needs the extra "ocr"."""

import multiprocessing
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.base.optional import what_brings
from pyramidions.documents.pdf_page import PdfLine, Run, lines_of
from pyramidions.files.bounded import MEBIBYTE, printable
from pyramidions.files.parallel import available_cores, in_limits
from pyramidions.files.progress import counted, progress_bar

#: Most pictures that are read of a file, and the processor time in seconds and memory in MiB that each may take.
MOST, SECONDS, MEMORY = 500, 240, 4096
#: Dots per inch of pictures, and most pixels of their longer sides: the library shrinks larger ones.
_DPI, _SIDE = 200, 2000
# Each takes memory of its own.
_MOST_THREADS = 4
#: Type is other type from this ratio to most of a text on. The height of a line depends on its letters, too.
_OTHER = 1.3
#: Least certainty of the letters and digits of a page, and their least share of its characters. Straight pages have a
#: certainty of 0.99, turned ones of 0.6; of scripts that it does not know, the library makes spaces, dots and zeros.
_CERTAIN, _LETTERS = 0.8, 0.1


class PicturesError(UserError):
    """Pages of a file are pictures, which are not read yet.

    Attributes:
        numbers: of the pages, from 0.
        alone: no other page holds text.
    """

    def __init__(self, path: Path, numbers: Sequence[int], alone: bool) -> None:
        super().__init__(path, numbers, alone)
        self.numbers = numbers
        self.alone = alone

    def __str__(self) -> str:
        return f"{printable(self.args[0])} has pages that are pictures: {len(self.numbers):,}."


def recognised(path: Path, pictures: PicturesError) -> dict[int, list[PdfLine]]:
    """Return the lines of pages that are pictures, by the numbers of the pages; pages that cannot be read have none.

    Notes say how many were read, and how many were not.

    Raises:
        UserError: nothing else is in the file, and the library is missing; or they are too many or damaged, or take too
            much time or memory.
    """
    name, count = printable(path), counted(len(pictures.numbers), "scanned page")
    verb = "was" if len(pictures.numbers) == 1 else "were"
    try:
        found = _recognised(path, name, pictures.numbers)
    except UserError as error:
        if pictures.alone:
            raise
        note(f"{name}: {count} {verb} left out. {error}")
        return {}
    if found:
        count, verb = counted(len(found), "scanned page"), "was" if len(found) == 1 else "were"
        told = f"{name}: {count} {verb} read by optical character recognition, which makes mistakes."
        note(told)
    if left := len(pictures.numbers) - len(found):
        verb = "was" if left == 1 else "were"
        told = f"{name}: {counted(left, 'scanned page')} {verb} left out: no Latin, Chinese or Japanese was recognised."
        note(told)
    return found


def _recognised(path: Path, name: str, numbers: Sequence[int]) -> dict[int, list[PdfLine]]:
    if find_spec("rapidocr") is None or find_spec("onnxruntime") is None:
        raise UserError(
            f"{name} has scanned pages, and optical character recognition (OCR) is not installed: "
            f"{what_brings('rapidocr', 'ocr')}."
        )
    if len(numbers) > MOST:
        raise UserError(f"{name} must have at most {MOST} scanned pages, but has {len(numbers):,}.")
    # It takes long to import, so that is not done for each file anew.
    import_module("rapidocr")
    done = multiprocessing.get_context("fork").Value("i", 0)
    with progress_bar(f"reading pictures of {name}", len(numbers), "pages") as bar:
        return in_limits(
            partial(_read, path, numbers, done),
            name=f"The scanned pages of {name}",
            seconds=SECONDS * len(numbers),
            memory=MEMORY * MEBIBYTE,
            waiting=lambda: bar.update(done.value - bar.n),
            interval=1.0,
        )


def _read(path: Path, numbers: Sequence[int], done: Any) -> dict[int, list[PdfLine]]:
    pages: dict[int, list[Run]] = {}
    errors: list[Exception] = []
    for number, runs in zip(numbers, _pages(path, numbers), strict=True):
        if isinstance(runs, Exception):
            errors.append(runs)
        elif runs is not None:
            pages[number] = runs
        done.value += 1
    if errors and len(errors) == len(numbers):
        raise UserError(f"The scanned pages of {printable(path)} cannot be read ({type(errors[0]).__name__}).")
    usual = median([run.size for runs in pages.values() for run in runs for _ in run.text] or [0.0])
    return {number: lines_of(_rows([_sized(run, usual) for run in runs])) for number, runs in pages.items()}


def _pages(path: Path, numbers: Sequence[int]) -> Iterator[list[Run] | Exception | None]:
    """Yield what stands on each page, straight or turned by quarters; None or an error where it is not recognised."""
    import pypdfium2
    from rapidocr import RapidOCR

    threads = min(available_cores(), _MOST_THREADS)
    reader = RapidOCR(
        params={
            "Global.log_level": "critical",
            # Whole pages are turned, not single lines.
            "Global.use_cls": False,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    with pypdfium2.PdfDocument(path) as document:
        for number in numbers:
            try:
                page = document[number]
                scale = min(_DPI / 72, _SIDE / max(page.get_size()))
                picture = page.render(scale=scale).to_numpy()
                page.close()
                runs: list[Run] | Exception | None = _upright(reader, picture, scale)
            except MemoryError:
                raise
            except Exception as error:
                # A damaged picture can make the libraries raise any error; the other pages can be read.
                runs = error
            yield runs


def _upright(reader: Any, picture: Any, scale: float) -> list[Run] | None:
    """Return what stands on a page: on that of its four sides on which its lines lie, or else on one that is read."""
    import numpy as np

    read: list[Run] | None = None
    for quarters in (0, 1, 3, 2):
        turned = np.ascontiguousarray(np.rot90(picture, quarters))
        found: Any = reader(turned)
        texts = found.txts or ()
        if not _is_read(texts, found.scores or ()):
            continue
        height, width = (side / scale for side in turned.shape[:2])
        boxes = (found.boxes / scale).tolist() if texts else []
        runs = [_run(text, box, height) for text, box in zip(texts, boxes, strict=True)]
        # The library turns boxes that are higher than wide by itself.
        if 2 * sum(len(run.text) * (run.right - run.left < run.size) for run in runs) <= sum(map(len, texts)):
            return runs
        if read is None:
            # Lines of Chinese may run down, from right to left: as if the page lay on its side.
            lying = [[(y, width - x) for x, y in box] for box in boxes]
            read = [_run(text, box, width) for text, box in zip(texts, lying, strict=True)]
    return read


def _is_read(texts: Sequence[str], scores: Sequence[float]) -> bool:
    """Whether what was recognised of a page is its text; also where that is nothing.

    Args:
        texts: of its boxes.
        scores: how certain each is, from 0 to 1.
    """
    # Zeros are what is made of unknown letters.
    letters = [sum(each.isalnum() and each != "0" for each in text) for text in texts]
    certain = sum(score * count for score, count in zip(scores, letters, strict=True))
    return sum(letters) >= _LETTERS * sum(map(len, texts)) and certain >= _CERTAIN * sum(letters)


def _run(text: str, box: Sequence[Sequence[float]], height: float) -> Run:
    """Return what stands in a box, whose corners are in points from the top left of a page."""
    left, right = min(x for x, _ in box), max(x for x, _ in box)
    top, bottom = min(y for _, y in box), max(y for _, y in box)
    # A fifth of it hangs below the baseline.
    return Run(text.strip(), left, right, height - bottom + 0.2 * (bottom - top), bottom - top)


def _sized(run: Run, usual: float) -> Run:
    return run if run.size > _OTHER * usual or run.size * _OTHER < usual else run._replace(size=usual)


def _rows(runs: list[Run]) -> list[list[Run]]:
    """Return what stands side by side as rows, from top to bottom."""
    rows: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: -run.y):
        if rows and rows[-1][0].y - run.y < 0.5 * min(run.size, rows[-1][0].size):
            rows[-1].append(run)
        else:
            rows.append([run])
    return [sorted(row, key=lambda run: run.left) for row in rows]
