"""Every output of a command is an input of the next one, as it is; and `pyramidions export`."""

import json
import lzma
from pathlib import Path

from conftest import SAMPLE
from invoking import run, succeed
from small_language_models import saved

from pyramidions.data.folder import DataFolder
from pyramidions.inference import Summarizer

SHORT = ["--beam", 1, "--min-len", 1, "--max-len", 3]
MEANS = {key: {"mean": 24.81, "low": 23.5, "high": 26.04} for key in ("rouge1", "rouge2", "rougeL", "rougeLsum")}


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_summaries_are_scored_and_summarized_again(checkpoint: Path, data: DataFolder, tmp_path: Path) -> None:
    names = ("test.jsonl", "summaries.jsonl", "shuffled.jsonl", "scores.json", "again.jsonl")
    corpus, summaries, shuffled, scores, again = (tmp_path / name for name in names)
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        corpus.write_text("".join(line for _, line in zip(range(10), papers, strict=False)))
    # A file that ends in .jsonl gets JSON.
    succeed("summarize", checkpoint, corpus, "--field", "article", *SHORT, "-o", summaries)
    assert [row["id"] for row in rows(summaries)] == [reference.id for reference in data.references("test")]
    assert [row["name"] for row in rows(summaries)] == [f"{corpus}:{number}" for number in range(1, 11)]
    shuffled.write_text("\n".join(reversed(summaries.read_text().splitlines())) + "\n")
    for given in (["--data", data.path], ["--references", data.references_path("test")]):
        succeed("score", summaries, *given, "--baseline", shuffled, "--json", scores, "--workers", 1)
        # Both are matched by id, so that the order makes no difference.
        systems = list(json.loads(scores.read_text())["systems"].values())
        assert systems[0] == systems[1]
    succeed("export", checkpoint, tmp_path / "model", "--scores", scores)
    succeed("summarize", tmp_path / "model", summaries, "--field", "summary", *SHORT, "-o", again)
    assert [row["id"] for row in rows(again)] == [row["id"] for row in rows(summaries)]
    succeed("score", again, "--references", summaries, "--workers", 1)


def test_ids_are_those_of_records_their_places_or_names_and_unique(checkpoint: Path, tmp_path: Path) -> None:
    folder, out, references = tmp_path / "in", tmp_path / "out.jsonl", tmp_path / "references.txt"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "One.", "key": "q", "id": 1}\n' * 2 + '{"text": "Two.", "key": "p"}\n')
    (folder / "b.txt").write_text("Three.")
    succeed("summarize", checkpoint, folder, *SHORT, "-o", out)
    assert [row["id"] for row in rows(out)] == ["1", "1#2", f"{folder}/a.jsonl:3", f"{folder}/b.txt"]
    succeed("summarize", checkpoint, folder, *SHORT, "--id-field", "key", "-o", out)
    assert [row["id"] for row in rows(out)] == ["q", "q#2", "p", f"{folder}/b.txt"]
    (folder / "a.jsonl").write_text('{"text": "One word."}\n\n{"text": "Two words."}\n')
    succeed("summarize", checkpoint, folder / "a.jsonl", *SHORT, "-o", out)
    assert [row["id"] for row in rows(out)] == ["1", "3"]
    references.write_text("One.\nTwo.\n")
    succeed("score", out, "--references", references, "--workers", 1)


def test_an_export_holds_plain_files_and_a_card(data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({"signature": "rouge-score 0.1.2 | n=10", "systems": {"ours": MEANS}}))
    flags = ["--data", data.path, "--scores", scores, "--license", "CC BY 4.0"]
    succeed("export", checkpoint, tmp_path / "model")
    assert (tmp_path / "model" / "README.md").read_text().count("Not said.") == 3
    # An older export is replaced.
    done = succeed("export", checkpoint.parent, tmp_path / "model", *flags)
    names = "README.md, config.json, generation_config.json, model.safetensors, modeling_pyramidions.py"
    assert done.stdout.endswith(f"model: {names}, sentencepiece.model, tokenizer_config.json\n")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# model\n" in card and "## Licence\n\nCC BY 4.0\n" in card
    assert "| pooling | soft_topk: 64 vectors after layer 2, 16 vectors after layer 3 |" in card
    assert "| longest document | 256 tokens; the rest is cut off its end |" in card
    assert "| train | 24 | " in card and data.manifest["inputs"]["train"]["sha256"] in card
    assert card.count("24.81 [23.50, 26.04]") == 4 and "rouge-score 0.1.2 | n=10" in card
    assert Summarizer.from_pretrained(tmp_path / "model").summarize(["A word."], min_len=1, max_len=2)[0].tokens <= 3


def test_a_language_model_is_exported_with_its_alphabet_and_a_card(tmp_path: Path) -> None:
    data, flags = tmp_path / "data", ["--valid-characters", "20", "--test-characters", "20"]
    (tmp_path / "text.txt").write_text("the cat sat on the mat " * 20)
    path = saved(tmp_path, "gumbel", alphabet="en-lines")
    succeed("prepare", tmp_path / "text.txt", "--characters", "en", "--out", data, *flags)
    done = run("export", path, tmp_path / "mine", "--data", data, "--license", "MIT")
    assert done.stdout.endswith("mine: README.md, config.json, model.safetensors\n"), done.output
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "\nlanguage:\n- en\n" in card and "\nlicense: mit\n" in card
    assert "pyramidions segments mine paper.txt" in card
    assert "| alphabet | en, 26 letters, the space, the line end |" in card and "| train | " in card
    succeed("segments", tmp_path / "mine", text="the cat")
