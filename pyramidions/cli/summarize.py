"""`pyramidions summarize`."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyramidions.inference import Summarizer, Summary
    from pyramidions.inference.documents import Document


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--field", default="text", show_default=True, help="Of the objects in .jsonl files.")
@click.option(
    "--long",
    "long",
    type=click.Choice(["truncate", "chunk"]),
    default="truncate",
    show_default=True,
    help="A document longer than the model reads loses its end, or is summarized piece by piece.",
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object a document.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write to this file.")
@click.option("--beam", type=click.IntRange(1), help="Hypotheses of a document.  [default: the model's]")
@click.option("--min-len", type=click.IntRange(0), help="Fewest tokens of a summary.  [default: the model's]")
@click.option("--max-len", type=click.IntRange(1), help="Most tokens of a summary.  [default: the model's]")
@click.option("--length-penalty", type=float, help="Above 1 favours long summaries.  [default: the model's]")
@click.option("--no-repeat-ngram", type=click.IntRange(0), default=0, help="No n-gram of this n comes twice.")
@click.option("--batch-size", type=click.IntRange(1), default=8, show_default=True, help="Texts read at once.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a GPU if there is one]")
def summarize(
    model: Path,
    files: tuple[Path, ...],
    field: str,
    long: str,
    as_json: bool,
    out: Path | None,
    batch_size: int,
    device: str | None,
    **decoding: Any,
) -> int:
    """Summarize documents.

    MODEL is a checkpoint of fairseq-train, a folder of them (the best is taken), or a folder made by `pyramidions
    export`. FILES end in .txt, .md, .html, .pdf or .jsonl, or are folders of such files; without any, the text on
    standard input is one document. A file that cannot be read is named, and the others are summarized: the exit status
    is then 1.

    \b
    Example:
      pyramidions summarize my-summarizer paper.pdf notes/ --long chunk
      pyramidions summarize checkpoints corpus.jsonl --field article --json -o summaries.jsonl
    """
    from pyramidions.data.atomic import atomic_file
    from pyramidions.inference import Summarizer

    summarizer = Summarizer.from_pretrained(model, device)
    documents, failures = _documents(files, field)
    for failure in failures:
        click.echo(f"Error: {failure}", err=True)
    if documents:
        results = _results(summarizer, documents, long == "chunk", batch_size, decoding)
        lines = (_line(*result, as_json, len(documents) > 1) for result in results)
        if out is None:
            for line in lines:
                click.echo(line)
        else:
            with atomic_file(out) as file:
                for line in lines:
                    file.write(f"{line}\n".encode())
    return 1 if failures else 0


def _documents(files: tuple[Path, ...], field: str) -> tuple[list["Document"], list[str]]:
    """Return what can be read, and a sentence for each file that cannot."""
    from pyramidions.data.text import normalize
    from pyramidions.errors import UserError
    from pyramidions.inference.documents import ENDINGS, Document, read_documents

    if not files:
        files = (Path("-"),)
    found, failures = [], []
    for given in files:
        inside = sorted(p for p in given.rglob("*") if p.suffix.lower() in ENDINGS) if given.is_dir() else [given]
        if not inside:
            failures.append(f"{given} holds no file that ends in {', '.join(ENDINGS)}.")
        for path in inside:
            try:
                if str(path) == "-":
                    new = [Document("standard input", sys.stdin.buffer.read().decode("utf-8-sig"))]
                else:
                    new = list(read_documents(path, field))
                for document in new:
                    if not normalize(document.text):
                        raise UserError(f"{document.name} holds no text.")
                found += new
            except UserError as error:
                failures.append(str(error))
            except UnicodeDecodeError as error:
                failures.append(f"Standard input must be UTF-8, but is not at byte {error.start}.")
            except OSError as error:
                failures.append(f"{path}: {error.strerror}.")
    return found, failures


def _results(
    summarizer: "Summarizer", documents: list["Document"], in_pieces: bool, batch_size: int, decoding: dict[str, Any]
) -> Iterator[tuple["Document", list["Summary"]]]:
    """Yield each document with the summaries of its pieces."""
    from pyramidions.data.progress import progress_bar
    from pyramidions.inference.chunking import pieces

    tokenizer, most = summarizer.model.tokenizer, summarizer.model.max_source_positions
    many = len(documents) > 1
    with progress_bar("summarizing", len(documents), "documents") if many else nullcontext() as bar:
        for start in range(0, len(documents), batch_size):
            group = documents[start : start + batch_size]
            parts = [pieces(document.text, tokenizer, most) if in_pieces else [document.text] for document in group]
            flat = [part for of_document in parts for part in of_document]
            found = iter(summarizer.summarize(flat, **decoding, batch_size=batch_size))
            for document, of_document in zip(group, parts, strict=True):
                yield document, [next(found) for _ in of_document]
            if bar is not None:
                bar.update(len(group))


def _line(document: "Document", summaries: list["Summary"], as_json: bool, named: bool) -> str:
    """Return what is written about a document: a JSON object, or its summary and what was left out or cut."""
    text = " ".join(summary.text for summary in summaries)
    read, whole = (sum(getattr(summary, name) for summary in summaries) for name in ("read_tokens", "document_tokens"))
    if as_json:
        about = {
            "name": document.name,
            "summary": text,
            "pieces": len(summaries),
            "scores": [s.score for s in summaries],
        }
        return json.dumps({**about, "document_tokens": whole, "read_tokens": read}, ensure_ascii=False)
    notes = []
    if len(summaries) > 1:
        notes.append(f"in {len(summaries)} pieces, summarized one by one")
    if read < whole:
        notes.append(f"only the first {read:,} of {whole:,} tokens were read")
    note = f" ({'; '.join(notes)})" if notes else ""
    head = f"{document.name}{note}:\n" if named or note else ""
    return f"{head}{text}{chr(10) if named else ''}"
