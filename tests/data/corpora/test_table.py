"""The table of known corpora agrees with itself, with docs/corpora.md and with the recipes."""

import re
import runpy
from pathlib import Path

import pytest

from pyramidions.data.corpora.table import KNOWN
from pyramidions.data.folder import SPLITS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "corpora.md").read_text()


def test_an_entry_is_whole() -> None:
    for name, corpus in KNOWN.items():
        assert corpus.paper and corpus.licence and corpus.home.startswith("https://"), name
        assert (corpus.hub is None) == (corpus.download == 0), name
        for config, sizes in corpus.sizes.items():
            assert "train" in sizes and set(sizes) <= set(SPLITS), (name, config)
            assert ("valid" in sizes) != bool(corpus.held_out), (name, config)
        for form in corpus.forms:
            assert set(form.splits) <= set(SPLITS), name
            assert list(form.splits) == ["train"] or all("{split}" in pattern for pattern in form.files), name
            assert set(form.configs) <= set(corpus.configs), name
            assert len(corpus.configs) < 2 or "{config}" in form.files[0] or len(form.configs) == 1, name


def test_the_page_names_each_corpus_and_configuration() -> None:
    shown = runpy.run_path(str(ROOT / "docs" / "corpora_table.py"))["table"]()
    several = [corpus for corpus in KNOWN.values() if len(corpus.configs) > 1]
    for named in (PAGE, shown):
        assert set(KNOWN) <= set(re.findall(r"`(\w+)`", named))
    asked = [f"`{each.name} --config {name}`" for each in several for name in each.configs]
    assert asked and [words for words in asked if words not in shown] == []
    assert "| `billsum` (Kornilova and Eidelman 2019) |" in shown and "| 18,949 | 5% of train | 3,269 |" in shown
    assert len([line for line in shown.splitlines() if line.count("|") == 8]) == len(KNOWN) + 2


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "corpus").glob("*.yaml")))
def test_a_recipe_names_the_documents_of_its_corpus(path: Path) -> None:
    corpus = KNOWN[path.stem]
    assert f"{next(iter(corpus.sizes.values()))['train']:,} " in path.read_text().splitlines()[1]
