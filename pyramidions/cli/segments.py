"""`pyramidions segments`."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.job import Job
from pyramidions.cli.job_options import Asked, check_model, job_command, reading_options, writing_options
from pyramidions.cli.options import PATH, naming_options, user_dir_option
from pyramidions.cli.worker import Layout, Report, Result, Worker
from pyramidions.files.progress import counted

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText
    from pyramidions.inference.segmenter import SegmentedText

_MARK = "|"
_TOGETHER = 16  # texts whose segments are written at once
#: how many of the most frequent segments the report lists
_TOLD = 10
#: characters at the beginning of a text whose entropies are in its object: the whole model reads them
_WITH_ENTROPIES = 2**16
#: how many characters outside the alphabet it names
_NAMED = 8
# Characters that a terminal obeys, as pictures; lines end.
_CONTROLS = {code: 0x2400 + code for code in range(32) if code != ord("\n")} | {0x7F: 0x2421}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE = {**_CONTROLS, **str.maketrans(" \n", "␣␤")}


@click.command(short_help="Show the segments that a language model draws in texts.")
@click.argument("model", type=PATH)
@click.argument("files", nargs=-1, type=PATH)
@reading_options
@writing_options()
@click.option("--device", help="Device, such as cpu or cuda:1.  [default: a GPU if there is one]")
@user_dir_option
@job_command
def segments(asked: Asked, model: Path, device: str | None) -> int:
    """Show where a language model of characters ends segments.

    MODEL is a checkpoint of --task character_language_modeling and --arch hourglass_..., or a folder of them (the best
    is taken). FILES end in .txt, .md, .html, .pdf, .docx, .pptx, .epub, .xml, .nxml, .tex, .tar.gz, .vtt, .srt
    or .jsonl (or .jsonl.gz, .jsonl.xz), or are folders of such files; without any, or for -, standard input is one
    text. Texts are cleaned as `pyramidions prepare --characters` does; characters outside the model's alphabet are
    counted on standard error. Bars mark the ends of segments; NO_COLOR turns their colour off. Below each text are its
    shortening factor, the agreement of boundaries with spaces, and its most frequent segments. With --json, each text
    has the probability of a boundary behind each character, and the entropy of the prediction of each of the first
    65,536, which takes a few times as long.

    \b
    Example:
      pyramidions segments checkpoints paper.txt
      echo "the tumour cells were incubated" | pyramidions segments checkpoints
      pyramidions segments checkpoints papers.jsonl -o segments.jsonl
    """
    # Before what needs torch.
    check_model(model, "segments")
    from pyramidions.documents.source import Fields

    fields = Fields(asked.field, asked.id_field)
    with naming_options("device"), Job(asked, "segmenting", fields, together=_TOGETHER, reads={"MODEL": model}) as job:
        make = partial(Segmenting, job.layout, model, device)
        return job.run(make, device)


class Segmenting(Worker):
    """Finds segments, by a `Segmenter`."""

    def __init__(self, layout: Layout, model: Path, device: str | None) -> None:
        from pyramidions.inference.segmenter import Segmenter

        self._segmenter = Segmenter.from_pretrained(model, device)
        self._layout = layout

    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield the segments of each text."""
        is_json = self._layout.kind == "json"
        for document in documents:
            origin, size = document.origin, document.size
            report.add(size)
            try:
                add = partial(_add_share, report, size)
                found = self._segmenter.segment(document.text, origin.name, add, _WITH_ENTROPIES if is_json else 0)
            except UserError as error:
                report.fail(error)
                continue
            if found.outside:
                report.note(_cleaned(origin.name, found, self._segmenter.model.alphabet.language))
            yield Result(origin, found.to_dict() if is_json else _shown(origin.name, found, self._layout))


def _add_share(report: Report, size: int, share: float) -> None:
    report.add(share * size)


def _cleaned(name: str, found: "SegmentedText", language: str) -> str:
    count = counted(sum(found.outside.values()), "character")
    named = ", ".join(f"“{each}” {times:,}" for each, times in found.outside.most_common(_NAMED))
    more = ", …" if len(found.outside) > _NAMED else ""
    return f"{name}: {count} outside the alphabet {language!r} became spaces: {named}{more}."


def _shown(name: str, found: "SegmentedText", layout: Layout) -> str:
    """Return a text with a bar after each segment, and its figures."""
    width = layout.width if layout.kind == "list" else None
    mark = click.style(_MARK, fg="magenta", bold=True)
    if not layout.coloured:
        mark = _MARK
    # Of bytes, all may be control characters of a terminal.
    segments = [segment.translate(_CONTROLS) for segment in found.segments]
    lines = ["".join(f"{part}{mark}" for part in line) for line in _lines(segments, width)]
    rest = found.rest.translate(_CONTROLS)
    lines = [*lines[:-1], lines[-1] + rest] if lines else [rest]
    head = click.style(f"{name}:", bold=True) if layout.coloured else f"{name}:"
    return "\n".join([head, *lines, *_figures(found), ""])


def _lines(segments: list[str], width: int | None) -> Iterator[list[str]]:
    line: list[str] = []
    used = 0
    for segment in segments:
        size = len(segment) + len(_MARK)
        if line and width is not None and used + size > width:
            yield line
            line, used = [], 0
        line.append(segment)
        used += size
    if line:
        yield line


def _figures(found: "SegmentedText") -> Iterator[str]:
    if found.shortening_factor is None:
        p = found.probabilities
        yield "  no boundary" if p is None else f"  no boundary: the highest probability is {p.max():.3f}"
        return
    yield (
        f"  {len(found.text):,} characters in {len(found.segments):,} segments: "
        f"{found.shortening_factor:.2f} characters each (shortening factor)"
    )
    met = f"  {found.boundaries_at_spaces:.1%} of boundaries stand at spaces"
    spaces = found.spaces_at_boundaries
    yield met if spaces is None else f"{met}, {spaces:.1%} of spaces are boundaries"
    counts = ", ".join(f"{segment.translate(_VISIBLE)} {count:,}" for segment, count in found.most_frequent(_TOLD))
    yield f"  most frequent: {counts}"
