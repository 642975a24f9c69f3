"""The table of known corpora agrees with itself, with docs/corpora.md and with the recipes."""

import re
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.data.corpora import KNOWN, KnownCorpus, data_size
from pyramidions.data.folder import SPLITS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "corpora.md").read_text()
CORPORA = pytest.mark.parametrize("corpus", KNOWN.values(), ids=list(KNOWN))


def rows(first: str) -> dict[str, list[str]]:
    """Return the cells of a table of the page by their row's name."""
    table = PAGE[PAGE.index(f"| corpus | {first} |") :].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {line[0].strip("`"): line[1:] for line in cells}


@CORPORA
def test_an_entry_is_whole(corpus: KnownCorpus) -> None:
    assert corpus.paper and corpus.licence and corpus.home.startswith("https://")
    assert (corpus.hub is None) == (corpus.download == 0)
    for config, sizes in corpus.sizes.items():
        assert "train" in sizes and set(sizes) <= set(SPLITS), config
        assert ("valid" in sizes) != bool(corpus.held_out)
    for form in corpus.forms:
        assert ("{split}" in form.files or list(form.splits) == ["train"]) and set(form.splits) <= set(SPLITS)
        assert set(form.configs) <= set(corpus.configs)
        assert len(corpus.configs) < 2 or "{config}" in form.files or len(form.configs) == 1


@CORPORA
def test_the_page_says_where_a_corpus_comes_from(corpus: KnownCorpus) -> None:
    place, licence, size = rows("from")[corpus.name]
    assert (corpus.hub or corpus.home) in place
    assert licence == corpus.licence
    assert size == (data_size(corpus.download) if corpus.hub else "–")


@CORPORA
def test_the_page_says_what_a_corpus_holds(corpus: KnownCorpus) -> None:
    source, target, query, *counts = rows("document")[corpus.name]
    fields = corpus.forms[0].fields
    names = (fields.source, fields.target, fields.query)
    if not corpus.forms[0].documents:
        assert (source, target, query) == tuple("–" if name is None else f"`{name}`" for name in names)
    sizes = next(iter(corpus.sizes.values()))
    others = {"train": "", "valid": f"{corpus.held_out:.0%} of train", "test": "–"}
    assert counts == [f"{sizes[split]:,}" if split in sizes else others[split] for split in SPLITS]


@CORPORA
def test_the_page_names_each_configuration(corpus: KnownCorpus) -> None:
    listed = re.findall(rf"^- `{corpus.name} --config (\w+)`", PAGE, re.MULTILINE)
    assert listed == (corpus.configs if len(corpus.configs) > 1 else [])


@for_each("path", sorted((ROOT / "configs" / "corpus").glob("*.yaml")))
def test_a_recipe_names_the_documents_of_its_corpus(path: Path) -> None:
    corpus = KNOWN[path.stem]
    assert f"{next(iter(corpus.sizes.values()))['train']:,} " in path.read_text().splitlines()[1]
