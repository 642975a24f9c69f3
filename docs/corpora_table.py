"""The table of known corpora; corpora.md shows it.

python docs/corpora_table.py
"""

from pyramidions.data.corpora.table import KNOWN, KnownCorpus, data_size
from pyramidions.data.folder import SPLITS

HEAD = "| corpus | from | licence | download | train | valid | test |\n|---|---|---|---|---|---|---|"


def table() -> str:
    """Return in Markdown a row for each corpus, then the configurations of those that have several."""
    rows = [f"| {' | '.join(_cells(corpus))} |" for corpus in KNOWN.values()]
    several = [_configurations(corpus) for corpus in KNOWN.values() if len(corpus.configs) > 1]
    return "\n\n".join(["## All corpora", "\n".join([HEAD, *rows]), *several]) + "\n"


def _cells(corpus: KnownCorpus) -> list[str]:
    sizes = next(iter(corpus.sizes.values()))
    others = {"valid": f"{corpus.held_out:.0%} of train", "test": "–"}
    counts = [f"{sizes[split]:,}" if split in sizes else others[split] for split in SPLITS]
    if corpus.counted != "documents":
        counts[0] += f" {corpus.counted}"
    place = f"https://huggingface.co/datasets/{corpus.hub}" if corpus.hub else corpus.home
    download = data_size(corpus.download) if corpus.hub else "–"
    return [f"`{corpus.name}` ({corpus.paper})", place, corpus.licence, download, *counts]


def _configurations(corpus: KnownCorpus) -> str:
    rows = [
        f"- `{corpus.name} --config {name}`: {sizes['train']:,} to train with" for name, sizes in corpus.sizes.items()
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
