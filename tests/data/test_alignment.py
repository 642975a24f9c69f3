"""Documents that do not belong to their summaries."""

import json
from itertools import permutations
from pathlib import Path

import pytest
from texts_in_languages import PAPERS

from pyramidions.base.errors import UserError
from pyramidions.data.alignment import alignment, least_alignment
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.data.vocabulary import Settings

TOPICS = ("mice", "cells", "genes", "plants", "yeast", "virus", "water", "stones")


def test_alignment_is_the_share_of_the_stems_of_a_summary() -> None:
    assert alignment("The mice were growing in water.", "A mouse, mice and cells grew in the waters.") == 2 / 5
    assert alignment("Words.", "It is.") == 1
    assert alignment(PAPERS["de"].text, PAPERS["de"].summary) == 1


def test_the_threshold_is_a_percentile_of_what_other_documents_cover() -> None:
    pairs = [(f"{topic} only", f"{topic} {other}") for topic in TOPICS for other in TOPICS[:4]]
    away = len(pairs) // 2
    others = [alignment(pairs[(place + away) % len(pairs)][0], pairs[place][1]) for place in range(len(pairs))]
    assert least_alignment(pairs) == sorted(others)[-1] == 0.5
    one_other = [("water", "mice cells")] * 30
    assert least_alignment([*one_other, ("mice", "mice cells")]) == 0
    with pytest.raises(UserError):
        least_alignment([("water", "water")] * 20)
    with pytest.raises(UserError):
        least_alignment(pairs[:19])


def test_wrong_pairs_are_left_out_of_all_but_the_test_split(tmp_path: Path) -> None:
    pairs = list(permutations(TOPICS, 2))
    rows = [{"article": f"We saw {a} and {b}.", "abstract": f"There are {a} and {b}."} for a, b in pairs]
    rows[5]["abstract"] = rows[9]["abstract"] = "Correction notice."
    corpora = {}
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        corpora[split] = Corpus(str(tmp_path / f"{split}.jsonl"), split)
    given = {"keep_aligned": True, "workers": 1}
    assert prepare(tmp_path / "out", corpora, Settings(vocab_size=36), **given)
    folder = DataFolder(tmp_path / "out")
    kept = {split: folder.manifest["splits"][split]["documents"] for split in corpora}
    assert kept == {"train": 54, "valid": 54, "test": 56}
    assert folder.manifest["settings"]["keep_aligned"] == 0.5
    ids = [json.loads(line)["id"] for line in (tmp_path / "out" / "train.references.jsonl").read_text().splitlines()]
    assert "6" not in ids and "10" not in ids and ids[5] == "7"
    assert len(list(corpora["train"])) == 56
    assert not prepare(tmp_path / "out", corpora, Settings(vocab_size=36), **given)
