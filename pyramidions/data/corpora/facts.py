"""What a user reads about a corpus before anything is fetched."""

from pathlib import Path

from pyramidions.data.corpora.core import KnownCorpus


def facts(corpus: KnownCorpus, config: str, release: Path | None) -> list[str]:
    """Return a line each for where a corpus comes from, its licence, its documents, and the size of the download."""
    named = f"{corpus.name}, configuration {config}" if len(corpus.configs) > 1 else corpus.name
    return [
        f"{named} ({corpus.paper}): from {_place(corpus, release)}",
        f"  licence: {corpus.licence}",
        f"  documents: {_documents(corpus, config, release)}",
        f"  download: {_download(corpus, release)}",
    ]


def data_size(size: int) -> str:
    """Return a number of bytes as people say it: `114 MB`, `3.6 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _place(corpus: KnownCorpus, release: Path | None) -> str:
    if release is not None:
        return str(release)
    return f"{corpus.hub} on the Hugging Face hub" if corpus.hub else corpus.home


def _documents(corpus: KnownCorpus, config: str, release: Path | None) -> str:
    sizes = corpus.sizes[config]
    here = corpus.forms[0].splits if corpus.hub and release is None else sizes
    counts = [f"{count:,} {split}" for split, count in sizes.items() if split in here]
    if corpus.held_out:
        counts[0] += f", {corpus.held_out:.0%} of which become valid by a hash of the text"
    elsewhere = [f"{count:,} {split}" for split, count in sizes.items() if split not in here]
    return "; ".join([*counts, *(f"{each} only with --release" for each in elsewhere)])


def _download(corpus: KnownCorpus, release: Path | None) -> str:
    if release is not None:
        return "none"
    if corpus.hub is None:
        return "none: --release is needed"
    return f"about {data_size(corpus.download)}, if it is not in the cache"
