"""`pyramidions compress`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.language_option import READ_AS, language_option
from pyramidions.cli.one_text import read_text
from pyramidions.cli.outputs import PATH, check_output

if TYPE_CHECKING:
    from pyramidions.inference.compression import CountTokens


@click.command(short_help="Shorten a document for the prompt of a language model.")
@click.argument("file", type=PATH, default="-")
@click.option("--budget", type=click.IntRange(1), required=True, help="Most tokens of what is kept.")
@click.option(
    "--tokenizer",
    metavar="MODEL",
    help="Count by the tokenizer.json of this model: a file, a folder, or OWNER/NAME on the hub.  [default: one token "
    "for four characters]",
)
@click.option(
    "--method", default="hiporank", help="As in `extract`, except oracle.  [default: hiporank]", show_default=False
)
@click.option("--query", help="What the reader wants to know, for models of concepts.")
@click.option(
    "--device", help="Device of a trained extractor, such as cpu or cuda:1.  [default: a GPU if there is one]"
)
@language_option
@click.option("-o", "--out", type=PATH, help="Write the text to this file: .txt or .md.")
def compress(
    file: Path,
    budget: int,
    tokenizer: str | None,
    method: str,
    query: str | None,
    device: str | None,
    language: str | None,
    out: Path | None,
) -> None:
    """Shorten a document to a budget of tokens, for the prompt of a language model.

    FILE is a file as `extract` reads it, except JSON lines; without it, or as -, it is standard input, which is plain
    text. The output has the most important sentences in their order, below their headings; [...] stands for what is
    left out. A document that fits is printed whole, but for tables and listings of code, which `extract` does not read.

    \b
    Example:
      pyramidions compress report.pdf --budget 4000
      pyramidions compress meeting.txt --budget 2000 --method meetings --query "Why is the remote control yellow?"
      pyramidions compress report.pdf --budget 4000 --tokenizer Qwen/Qwen3-8B -o prompt.md
    """
    from pyramidions.base.notes import note
    from pyramidions.cli.naming import naming_options
    from pyramidions.extract.methods import find_method
    from pyramidions.files.atomic import write_file
    from pyramidions.files.progress import counted
    from pyramidions.inference.compression import as_markdown
    from pyramidions.inference.compression import compress as compressed
    from pyramidions.inference.extractor import Extractor

    check_output("--out", out, "a text", [file])
    if out is not None and out.suffix.lower() not in ("", ".txt", ".md"):
        raise UserError(f"--out must end in .txt or .md, or have no ending, but is {out}.")
    with naming_options("method", "query", "device", "tokenizer", "budget"):
        # Without the oracle, which chooses by a reference summary.
        find_method(method, "method")
        count, said = _counting(tokenizer)
        extractor = Extractor(method, device=device, language=language)
        extractor.check_query(query)
        document = read_text(file)
        text, kept, remark = as_markdown(document.text), "The document fits.", None
        (whole,) = count([text])
        if whole > budget:
            found = compressed(document.text, extractor, budget, count, query)
            sentences = len(found.extraction.sentences), counted(len(found.extraction.scores), "sentence")
            text = found.text
            remark = READ_AS.get(found.extraction.outline.language) if language is None else None
            kept = f"Kept {found.tokens:,} of {whole:,} tokens{said}: {sentences[0]:,} of {sentences[1]}."
    if out is None:
        sys.stdout.write(f"{text}\n")
    else:
        write_file(out, f"{text}\n".encode())
    note(kept)
    if remark is not None:
        note(f"The document {remark}")


def _counting(tokenizer: str | None) -> "tuple[CountTokens, str]":
    from pyramidions.inference.compression import CHARACTERS, estimate_tokens, tokens_of

    if tokenizer is None:
        return estimate_tokens, f" (estimated, {CHARACTERS} characters each)"
    return tokens_of(tokenizer), ""
