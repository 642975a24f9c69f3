"""`pyramidions join`."""

from pathlib import Path

import click

from pyramidions.cli.outputs import PATH, check_output

NAMED = 20  # shards that are named


@click.command()
@click.argument("out", type=PATH)
@click.argument("shards", nargs=-1, required=True, type=PATH)
def join(out: Path, shards: tuple[Path, ...]) -> None:
    """Join the shards that summarize --shard or extract --shard wrote.

    OUT is a .jsonl file, the same to the byte as that of a run that reads all documents; it is written whole or not at
    all. SHARDS are the files of all shards, or folders of them. They must come from the same model, settings and
    documents.

    \b
    Example:
      pyramidions summarize my-summarizer corpus.jsonl --shard 1/2 -o shards
      pyramidions summarize my-summarizer corpus.jsonl --shard 2/2 -o shards
      pyramidions join summaries.jsonl shards
    """
    from pyramidions.errors import UserError
    from pyramidions.files.atomic import atomic_file
    from pyramidions.files.progress import counted, listed, note
    from pyramidions.inference.shard_files import JoinedShards, find_shards

    if out.suffix.lower() != ".jsonl":
        raise UserError(f"OUT must end in .jsonl, but is {out}.")
    paths = find_shards(shards)
    check_output("OUT", out, "an older file of summaries", paths)
    joined = JoinedShards(paths)
    summaries = 0
    with atomic_file(out) as file:
        for line in joined.lines():
            file.write(line)
            summaries += 1
        if not summaries:
            raise UserError("The shards must hold a summary, but hold none.")
    note(f"{out} holds {counted(summaries, 'summary')} of {counted(len(paths), 'shard')}.")
    if joined.failed:
        named = listed(joined.failed, NAMED)
        note(f"Some inputs could not be read and are missing; the runs of these shards named them: {named}.")
