"""`pyramidions prepare`."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pyramidions.base.errors import UserError
from pyramidions.cli.character_options import CharacterOptions, character_options, prepare_characters
from pyramidions.cli.inputs import find_inputs
from pyramidions.cli.options import PATH, PLACE, corpus_options, naming_options, option, user_dir_option
from pyramidions.cli.pairing_options import PairingOptions, pairing_options
from pyramidions.data.folder import DataFolder
from pyramidions.data.vocabulary import MODEL_TYPES, Settings
from pyramidions.files.parallel import available_cores
from pyramidions.files.progress import counted
from pyramidions.text.tokenizer import Tokenizer


def _file(name: str) -> Any:
    return click.option(
        f"--{name}", metavar="FILE", type=PLACE, help=f"Documents of the {name} split; overrides INPUT."
    )


def _setting(name: str, meaning: str, **more: Any) -> Any:
    """Return the option of a setting of the vocabulary, with its default."""
    more.setdefault("show_default", "is_flag" not in more)
    return click.option(option(name), default=getattr(Settings, name), help=meaning or None, **more)


@click.command()
@click.argument("input", required=False, type=PLACE)
@_file("train")
@_file("valid")
@_file("test")
@click.option(
    "--release",
    type=PATH,
    help="Files of a known corpus on this machine, a folder or a .zip file, instead of those on the hub.",
)
@click.option(
    "--aspects",
    is_flag=True,
    help="With govreport: one document for each part of GAO's highlights. Its title, such as What GAO Found, is the "
    "query.",
)
@click.option("--out", required=True, type=PATH, help="Data folder to make.")
@_setting("vocab_size", "Number of pieces, with the four special ones.")
@_setting("model_type", "", type=click.Choice(MODEL_TYPES))
@_setting("character_coverage", "Share of characters covered by the vocabulary; the others become <unk>.")
@_setting("sentence_markers", "Put <sentence> before each sentence.", is_flag=True)
@_setting(
    "turn_markers",
    "Put <turn> before each line instead, such as the turns of a meeting, and </name> behind its speaker.",
    is_flag=True,
)
@_setting(
    "fold_case",
    "Read capitals as small letters, for a corpus without capitals; summaries get those of their document.",
    is_flag=True,
)
@_setting("sentences", "Most sentences of the train split that the vocabulary is trained on.")
@_setting("seed", "Seed of the choice of these sentences.")
@click.option(
    "--tokenizer",
    type=PATH,
    help="Reuse the tokenizer of a model (a checkpoint or an export), a sentencepiece.model, or a tokenizer.json "
    "(byte-level BPE) instead of training one; excludes the options of the vocabulary above.",
)
@click.option(
    "--labels",
    is_flag=True,
    help="Label the sentences to extract; implies --sentence-markers and reads sections of records.",
)
@click.option(
    "--tags",
    metavar="MODEL",
    help="Tag the words of documents with parts of speech and entities, by a spaCy pipeline on this machine.",
)
@click.option(
    "--keep-aligned",
    is_flag=True,
    help="Leave out train and valid documents whose summary shares no more words with them than with unrelated "
    "documents. The threshold is found in the first train documents.",
)
@pairing_options
@corpus_options
@character_options
@user_dir_option
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes that encode.  [default: all cores]")
@click.option("--overwrite", is_flag=True, help="Replace a data folder that holds something else.")
@click.pass_context
def prepare(
    ctx: click.Context,
    /,
    input: str | None,
    train: str | None,
    valid: str | None,
    test: str | None,
    release: Path | None,
    aspects: bool,
    out: Path,
    tokenizer: Path | None,
    labels: bool,
    tags: str | None,
    keep_aligned: bool,
    pairing: PairingOptions,
    characters: CharacterOptions,
    workers: int | None,
    overwrite: bool,
    **options: Any,
) -> None:
    """Turn documents into a data folder for fairseq.

    INPUT is a folder with train, valid and test files, a Hugging Face dataset, by name or as a folder, or a known
    corpus: arxiv, pubmed, govreport, billsum, bigpatent, qmsum, booksum, booksum_books, summscreen, ami, icsi,
    mediasum, samsum, dialogsum, cnn_dailymail, xsum, newsroom, multi_news or scisummnet. The source, licence and size
    of a known corpus are shown before anything is fetched. With --release, its files are read from this machine.

    Files end in .jsonl, .jsonl.gz, .jsonl.xz or .parquet. JSON lines in .txt files are read too, and val.* is the valid
    split, as in the arXiv and PubMed release. INPUT may also be a folder of papers in JATS or TEI (.xml, .nxml), or in
    LaTeX (.tex, or arXiv's .tar.gz), whose abstracts are the summaries; one of 20 is for validation, one for testing.
    The data folder holds the tokenizer, the dictionary, the documents as token ids, the raw summaries, and a manifest
    with counts and hashes. It appears whole or not at all. Run the command again to continue after an interruption; a
    finished folder is kept.

    With --divide sections, each section of a train or valid document becomes a document of its own, paired with the
    sentences of the summary that match it best; with --divide sentences, the sentences that match those of the summary
    best. With --select, documents become their most important sentences.
    The summaries of the test split never decide about its documents: --divide leaves them whole.

    With --characters, the text becomes a stream of lower-case letters and single spaces, or of bytes, for a language
    model of characters; digits are spelled out. INPUT is a plain text, or a file of records with the field `text` (else
    --source-field), whose end becomes valid and test; a dataset; or a known text: text8, enwik8, wiki40b or cc100,
    read only as far as needed.

    \b
    Examples:
      pyramidions prepare data/sample --out prepared --vocab-size 4000
      pyramidions prepare --train a.jsonl --valid b.jsonl --test c.jsonl.gz --out prepared
      pyramidions prepare govreport --out prepared
      pyramidions prepare govreport --aspects --out prepared
      pyramidions prepare bigpatent --config d --out prepared
      pyramidions prepare qmsum --release QMSum --out prepared
      pyramidions prepare owner/dataset --source-field text --target-field summary --out prepared
      pyramidions prepare data/sample --out sections --vocab-size 4000 --divide sections
      pyramidions prepare data/sample --out selected --vocab-size 4000 --select hiporank --budget 1024
      pyramidions prepare text8 --characters en --pieces 10000 --out text8
      pyramidions prepare cc100 --characters fi --pieces 200 --out cc100-fi
      pyramidions prepare --train a.txt.xz --test b.txt --characters vi --out characters
    """
    from pyramidions.data.prepare import prepare as prepare_folder

    characters.check(ctx)
    files = {split: name for split, name in (("train", train), ("valid", valid), ("test", test)) if name is not None}
    workers = workers or available_cores()
    if characters.characters is not None:
        read = {"config": options["config"], "field": options["source_field"]}
        done = prepare_characters(out, input, files, characters, **read, workers=workers, overwrite=overwrite)
        click.echo(done)
        return
    if aspects:
        if input != "govreport":
            raise UserError(f"--aspects is an option of govreport, but INPUT is {input or 'not given'}.")
        input = "govreport_aspects"
    vocabulary = {field.name: options.pop(field.name) for field in fields(Settings) if field.name in options}
    inputs = find_inputs(input, files, release, **options)
    pairings = pairing.pairings(list(inputs.corpora))
    if labels and (pairing.divide or pairing.select):
        raise UserError(f"--labels excludes {'--divide' if pairing.divide else '--select'}.")
    # `pyramidions extract` reads the sections of a record, so an extractor is trained on them.
    corpora = {split: make(sections=labels or split in pairings) for split, make in inputs.corpora.items()}
    if tokenizer is not None:
        _refuse_vocabulary_options(ctx, vocabulary)
    with naming_options("keep_aligned", *vocabulary):
        made = prepare_folder(
            out,
            corpora,
            Settings(**vocabulary) if tokenizer is None else None,
            tokenizer=None if tokenizer is None else _tokenizer(tokenizer),
            labels=labels,
            pairings=pairings,
            tags=tags,
            keep_aligned=keep_aligned,
            workers=workers,
            overwrite=overwrite,
            about=inputs.about,
        )
    click.echo(_report(out) if made else f"{out} is up to date: same documents, same settings.")


def _tokenizer(path: Path) -> Tokenizer | Path:
    """Return the tokenizer of a model, or the file of a tokenizer as it is."""
    from pyramidions.files.hub import hub_name
    from pyramidions.pretrained.bundle import read_bundle
    from pyramidions.pretrained.model_kinds import EXTRACTOR, SUMMARIZER
    from pyramidions.pretrained.places import place_of

    is_model = path.suffix == ".pt" or hub_name(path) or (path.is_dir() and place_of(path).kind != "other")
    if not is_model:
        return path
    tokenizer = read_bundle(path, SUMMARIZER, EXTRACTOR).tokenizer
    assert tokenizer is not None  # models of documents have one
    return tokenizer


def _refuse_vocabulary_options(ctx: click.Context, vocabulary: Iterable[str]) -> None:
    for name in vocabulary:
        if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise UserError(f"{option(name)} is an option of training a vocabulary; --tokenizer excludes it.")


def _report(out: Path) -> str:
    manifest = DataFolder(out).manifest
    lines = [f"{out}: {manifest['vocab_size']:,} pieces"]
    for split, numbers in manifest["splits"].items():
        source, target = numbers["source_tokens"], numbers["target_tokens"]
        skipped, chosen = manifest["inputs"][split]["skipped"], numbers.get("chosen_sentences")
        queries = numbers.get("query_tokens")
        lines.append(
            f"  {split}: {_made(numbers)}, on average {source['mean']:,.0f} tokens to "
            f"{target['mean']:,.0f}, at most {source['max']:,} to {target['max']:,}"
            + (f"; {chosen['mean']:,.1f} sentences chosen of {numbers['sentences']['mean']:,.0f}" if chosen else "")
            + (f"; queries of {queries['mean']:,.0f} tokens, at most {queries['max']:,}" if queries else "")
            + (f"; {counted(skipped, 'empty one')} left out" if skipped else "")
        )
    return "\n".join(lines)


def _made(numbers: dict[str, Any]) -> str:
    made_of = numbers.get("made_of", numbers)["documents"]
    found = counted(numbers["documents"], "document")
    return found if made_of == numbers["documents"] else f"{found} made of {made_of:,}"
