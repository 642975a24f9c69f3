"""`pyramidions check`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.cli.options import PATH, language_option, naming_options, require
from pyramidions.cli.outputs import check_output, check_page, write_json

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText
    from pyramidions.scoring.encoders.readers import EntailmentClassifier
    from pyramidions.scoring.summary_check import CheckedSummary
    from pyramidions.text.support import SummarySentence


@click.command(short_help="Look for each sentence of a summary in its document.")
@click.argument("summary", type=PATH)
@click.argument("document", type=PATH)
@click.option(
    "--entailment",
    metavar="MODEL",
    help="Also print how likely a sentence of the document entails, or contradicts, each one of the summary. MODEL "
    "is a classifier in the transformers format: a folder, or OWNER/NAME on the hub.",
)
@click.option("--device", help="Device of the classifier, such as cpu or cuda:1.  [default: a GPU if there is one]")
@language_option
@click.option(
    "--json",
    "out",
    type=PATH,
    is_flag=False,
    flag_value=Path("-"),
    help="Write the result as JSON to this file. After the files and without a name, print the JSON.",
)
@click.option(
    "--explain",
    "page",
    metavar="PAGE.html",
    type=PATH,
    help="Write a page with both texts; a sentence shows its support.",
)
def check(
    summary: Path,
    document: Path,
    entailment: str | None,
    device: str | None,
    language: str | None,
    out: Path | None,
    page: Path | None,
) -> None:
    """Look for each sentence of a summary in its document. A person or any model may have written the summary.

    SUMMARY and DOCUMENT are files as `extract` reads them, except JSON lines; - is standard input. For each sentence
    it prints the share of word pairs that up to three sentences of the document hold, the best of these sentences,
    and the numbers and names that the document lacks. Below a quarter of its pairs, a sentence counts as without
    support. That is no proof of an error, and support is no proof of truth.

    \b
    Example:
      pyramidions check summary.txt paper.pdf
      pyramidions check answer.md report.html --entailment OWNER/NAME --explain page.html
    """
    from pyramidions.files.progress import progress_bar
    from pyramidions.scoring.summary_check import check_summary, checked_page
    from pyramidions.text.support import THRESHOLD

    inputs = [each for each in (summary, document) if str(each) != "-"]
    if not inputs:
        raise UserError("Of SUMMARY and DOCUMENT, one must be a file, but both are -.")
    require("--entailment", entailment, {"--device": device})
    prints_json = out == Path("-")
    out = None if prints_json else out
    check_output("--json", out, "an older file of checks", inputs)
    check_page("--explain", page, inputs, [out] if out else [])
    texts = _read(summary), _read(document)
    with naming_options("device", "entailment"):
        classifier = None if entailment is None else _classifier(entailment, device)
        total = len(texts[0].text.split())
        with progress_bar("checking", total, "words") as bar:
            found = check_summary(
                texts[0].text, texts[1].text, language, classifier, lambda text: bar.update(len(text.split()))
            )
    if not found.sentences:
        raise UserError(f"{texts[0].origin.name} must hold a sentence, but holds none.")
    about = {
        "checked": summary.name,
        "document": document.name,
        "language": found.document.language,
        "threshold": THRESHOLD,
        "entailment_model": None if classifier is None else classifier.signature(),
    }
    values = {**about, "sentences": found.to_dicts()}
    told = ["\n".join(_told(number, sentence, found)) for number, sentence in enumerate(found.sentences, 1)]
    click.echo(as_json_bytes(values).decode() if prints_json else "\n".join([*told, found.told]), nl=not prints_json)
    write_json(out, values)
    if page is not None:
        from pyramidions.files.atomic import write_file

        write_file(page, checked_page(found, texts[1].origin.name, entailment).encode())


def _read(path: Path) -> "InputText":
    """Return the one text of a file of any format except records; - is standard input."""
    from pyramidions.documents.file_formats import holds_records
    from pyramidions.documents.source import read_file

    if path.is_dir():
        raise UserError(f"{path} must be a file, but is a folder.")
    if holds_records(path):
        raise UserError(f"{path} must hold one text, but its name is that of records.")
    return read_file(path)


def _classifier(model: str, device: str | None) -> "EntailmentClassifier":
    from pyramidions.base.device import found_device
    from pyramidions.scoring.encoders.readers import EntailmentClassifier

    return EntailmentClassifier(model, str(found_device(device)))


def _told(number: int, sentence: "SummarySentence", found: "CheckedSummary") -> list[str]:
    """Return the lines on a sentence."""
    lines = [f"{number}. [{sentence.told}] {sentence.text}"]
    if sentence.missing:
        lines.append(f"   not in the document: {', '.join(sentence.missing)}")
    if sentence.entailment and sentence.contradiction:
        lines.append(f"   entailed {sentence.entailment.share:.0%}, contradicted {sentence.contradiction.share:.0%}")
    for best in sentence.by_words[:1]:
        heading = found.heading(best.start)
        lines.append(f"   > [{best.share:.0%}] {best.text}" + (f" ({heading})" if heading else ""))
    return lines
