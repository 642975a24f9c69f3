"""`prepare --label-model`: labels by a language model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_encoders import save_gpt2
from small_language_models import saved
from tables import for_each

from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.extract.grounding import Likelihood, grounding
from pyramidions.inference.character_likelihood import CharacterLikelihood
from pyramidions.scoring.encoders.raters import ContinuationRater
from pyramidions.text.normalization import split_sentences
from pyramidions.text.outline import outline

RECORDS = [
    {"article": "Bees fly over roses. A fox reads. Dogs bark at night.", "abstract": "Dogs bark. Bees fly."},
    {"article": "Numbers count. Letters spell. Words mean.", "abstract": "Words mean much. Letters. A fox reads it."},
]


def gpt2(folder: Path) -> tuple[Path, Likelihood]:
    place = save_gpt2(folder / "gpt2", length=80)
    rater = ContinuationRater.of(place, "cpu")
    return Path(place), lambda pairs: rater.rated(pairs).values


def characters(folder: Path) -> tuple[Path, Likelihood]:
    path = saved(folder, "vanilla")
    return path, CharacterLikelihood.from_pretrained(path)


@for_each("make", [gpt2, characters])
def test_labels_are_the_sentences_that_ground_the_summary(
    make: Callable[[Path], tuple[Path, Likelihood]], run: Any, tmp_path: Path
) -> None:
    path, likelihood = make(tmp_path)
    data = tmp_path / make.__name__ / "data"
    file = tmp_path / "train.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS * 3))
    arguments = ("prepare", "--train", file, "--labels", "--out", data, "--vocab-size", 40, "--workers", 2)
    done = run(*arguments, "--label-model", path)
    assert done.exit_code == 0, done.output
    labels = IndexedReader(DataFolder(data).prefix("train", "labels"))
    found = 0
    for number, record in enumerate(RECORDS):
        texts = [unit.text for unit in outline(record["article"]).units]
        chosen = grounding(texts, split_sentences(record["abstract"]), likelihood)
        found += len(chosen)
        assert labels[number] == [1 + (place in chosen) for place in range(3)]
    assert found
    # A folder that was labelled otherwise is another one.
    assert "same documents, same settings" in run(*arguments, "--label-model", path).output
    other = run(*arguments)
    assert other.exit_code == 1 and "holds other documents or settings" in other.output


def test_the_manifest_names_the_model(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS * 3))
    arguments = ("--labels", "--label-model", saved(tmp_path, "vanilla"), "--vocab-size", 40)
    assert run("prepare", "--train", file, "--out", tmp_path / "data", *arguments).exit_code == 0
    found = DataFolder(tmp_path / "data").manifest["settings"]["labels"]
    assert found["model"].startswith("characters sha256:")
