"""`pyramidions segments`."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.cli.inputs import check_model
from pyramidions.cli.outputs import PATH, check_page
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.files.progress import counted

if TYPE_CHECKING:
    from pyramidions.inference.segmenter import SegmentedText, Segmenter

_MARK = "|"
#: the most frequent segments that are told
_TOLD = 10
#: characters outside the alphabet that are told by name
_NAMED = 8
_VISIBLE = str.maketrans(" \n", "␣␤")


@click.command(short_help="Show the segments that a language model draws in texts.")
@click.argument("model", type=PATH)
@click.argument("files", nargs=-1, type=PATH)
@click.option(
    "--page",
    metavar="PAGE.html",
    type=PATH,
    help="Write a page with each text, its characters shaded by the probability of a boundary.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per text.")
@click.option("--field", help="Field with the text, in .jsonl files.  [default: text, article or article_text]")
@click.option("--id-field", help="Field with the id, in .jsonl files.  [default: as in prepare, else the position]")
@click.option("--device", help="Device, such as cpu or cuda:1.  [default: a GPU if there is one]")
def segments(
    model: Path,
    files: tuple[Path, ...],
    page: Path | None,
    as_json: bool,
    field: str | None,
    id_field: str | None,
    device: str | None,
) -> int:
    """Show where a language model of characters ends segments.

    MODEL is a checkpoint of --task character_language_modeling and --arch hourglass_..., or a folder of them (the best
    is taken). FILES end in .txt, .md, .html, .pdf, .docx or .jsonl (or .jsonl.gz, .jsonl.xz), or are folders of such
    files; without any, standard input is one text. Texts are cleaned as by `pyramidions prepare --characters`; what is
    outside the model's alphabet is counted on standard error. Segments end at bars, which NO_COLOR leaves plain. Below
    a text stand its shortening factor, how often boundaries meet spaces, and its most frequent segments.

    \b
    Example:
      pyramidions segments checkpoints paper.txt --page page.html
      echo "the tumour cells were incubated" | pyramidions segments checkpoints
      pyramidions segments checkpoints papers.jsonl --json > segments.jsonl
    """
    # Before what needs torch.
    check_model(model, "segments")
    from pyramidions.cli.naming import naming_options
    from pyramidions.cli.summary_lines import SummaryIds
    from pyramidions.errors import UserError
    from pyramidions.files.atomic import write_file
    from pyramidions.inference.document_page import full
    from pyramidions.inference.documents import list_files, read_files
    from pyramidions.inference.segment_page import MOST_CHARACTERS, SegmentPage
    from pyramidions.inference.segmenter import Segmenter

    paths, skipped = list_files(files)
    check_page("--page", page, paths, [])
    with closing(ReadingReport(paths, "segmenting")) as report:
        with naming_options("device"):
            segmenter = Segmenter.from_pretrained(model, device)
        report.skip(skipped)
        made = None if page is None else SegmentPage(_settings(model, segmenter))
        ids, any_found = SummaryIds(paths), False
        for document in read_files(paths, field, id_field, refuse=report.fail):
            origin, size = document.origin, document.size
            try:
                report.add(size)
                found = segmenter.segment(document.text, origin.name, partial(_add_share, report, size))
            except UserError as error:
                report.fail(error)
                continue
            any_found = True
            if found.outside:
                report.note(_cleaned(origin.name, found, segmenter.model.alphabet.language))
            with report.bar_aside():
                if as_json:
                    about = {"id": ids.of(origin), "name": origin.name, **found.to_dict()}
                    click.echo(json.dumps(about, ensure_ascii=False))
                else:
                    click.echo(_shown(origin.name, found), color=_is_coloured())
            if made is not None:
                made.add(origin.name, found)
        # Without any text, an older page stays.
        if page is not None and made is not None and any_found:
            write_file(page, made.html().encode())
            if made.left_out:
                report.fail(full(page, made.left_out, f"{MOST_CHARACTERS:,} characters"))
    return 1 if report.failed else 0


def _add_share(report: ReadingReport, size: int, share: float) -> None:
    report.add(share * size)


def _settings(path: Path, segmenter: "Segmenter") -> dict[str, str]:
    model, config = segmenter.model, segmenter.model.config
    parameters = sum(weight.numel() for weight in model.network.parameters())
    return {
        "model": "/".join(path.resolve().parts[-2:]) if path.is_file() else path.resolve().name,
        "boundaries": f"{config.boundaries} {config.boundaries_args}".removesuffix(" {}"),
        "layers": config.layers,
        "width": str(config.embed_dim),
        "parameters": f"{parameters:,}",
        "alphabet": model.alphabet.language,
        "window": f"{model.window:,} characters",
    }


def _is_coloured() -> bool:
    """Return whether standard output is a terminal whose user wants colours (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _cleaned(name: str, found: "SegmentedText", language: str) -> str:
    count = counted(sum(found.outside.values()), "character")
    named = ", ".join(f"“{each}” {times:,}" for each, times in found.outside.most_common(_NAMED))
    more = ", …" if len(found.outside) > _NAMED else ""
    return f"{name}: {count} outside the alphabet {language!r} became spaces: {named}{more}."


def _shown(name: str, found: "SegmentedText") -> str:
    """Return a text with a bar after each segment, and its figures."""
    mark = click.style(_MARK, fg="magenta", bold=True)
    # Only a terminal has a width.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = ["".join(f"{part}{mark}" for part in line) for line in _lines(found.segments, width)]
    lines = [*lines[:-1], lines[-1] + found.rest] if lines else [found.rest]
    return "\n".join([click.style(f"{name}:", bold=True), *lines, *_figures(found), ""])


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
