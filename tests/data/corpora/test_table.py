"""The table of known corpora agrees with itself, with docs/corpora.md and with the recipes."""

import re
from pathlib import Path

import pytest

from pyramidions.data.corpora import KNOWN, KnownCorpus, data_size
from pyramidions.data.folder import SPLITS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "corpora.md").read_text()


def rows(first: str) -> dict[str, list[str]]:
    """Return the cells of a table of the page by their row's name."""
    table = PAGE[PAGE.index(f"| corpus | {first} |") :].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {line[0].strip("`"): line[1:] for line in cells}


@pytest.mark.parametrize("corpus", KNOWN.values(), ids=list(KNOWN))
def test_an_entry_is_whole(corpus: KnownCorpus) -> None:
    assert corpus.paper and corpus.licence and corpus.home.startswith("https://")
    assert (corpus.hub is None) == (corpus.download == 0)
    for config, sizes in corpus.sizes.items():
        assert "train" in sizes and set(sizes) <= set(SPLITS), config
        assert ("valid" in sizes) != bool(corpus.held_out)
    for form in corpus.forms:
        assert set(form.splits) <= set(SPLITS)
        assert list(form.splits) == ["train"] or all("{split}" in pattern for pattern in form.files)
        assert set(form.configs) <= set(corpus.configs)
        assert len(corpus.configs) < 2 or "{config}" in form.files[0] or len(form.configs) == 1


def test_the_page_says_where_each_corpus_comes_from() -> None:
    said = {name: (licence, size) for name, (_, licence, size) in rows("from").items()}
    assert said == {name: (each.licence, data_size(each.download) if each.hub else "–") for name, each in KNOWN.items()}
    places = {name: place for name, (place, _, _) in rows("from").items()}
    assert [name for name, each in KNOWN.items() if (each.hub or each.home) not in places[name]] == []


def counts(corpus: KnownCorpus) -> list[str]:
    sizes = next(iter(corpus.sizes.values()))
    others = {"train": "", "valid": f"{corpus.held_out:.0%} of train", "test": "–"}
    return [f"{sizes[split]:,}" if split in sizes else others[split] for split in SPLITS]


def columns(corpus: KnownCorpus) -> list[str]:
    fields = corpus.forms[0].fields
    return ["–" if name is None else f"`{name}`" for name in (fields.source, fields.target, fields.query)]


def test_the_page_says_what_each_corpus_holds() -> None:
    said = rows("document")
    assert {name: cells[3:] for name, cells in said.items()} == {name: counts(each) for name, each in KNOWN.items()}
    plain = {name: columns(each) for name, each in KNOWN.items() if not each.forms[0].documents}
    assert {name: said[name][:3] for name in plain} == plain


def test_the_page_names_each_configuration() -> None:
    listed = re.findall(r"^- `(\w+) --config (\w+)`", PAGE, re.MULTILINE)
    expected = [(name, config) for name, each in KNOWN.items() if len(each.configs) > 1 for config in each.configs]
    assert sorted(listed) == sorted(expected)


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "corpus").glob("*.yaml")))
def test_a_recipe_names_the_documents_of_its_corpus(path: Path) -> None:
    corpus = KNOWN[path.stem]
    assert f"{next(iter(corpus.sizes.values()))['train']:,} " in path.read_text().splitlines()[1]
