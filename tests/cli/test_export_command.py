"""`pyramidions export`: a folder of plain files, and a card that says where the model comes from."""

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from small_language_models import saved

from pyramidions.data.folder import DataFolder
from pyramidions.inference import Summarizer

Run = Callable[..., Result]
MEANS = {key: {"mean": 24.81, "low": 23.5, "high": 26.04} for key in ("rouge1", "rouge2", "rougeL", "rougeLsum")}


def test_an_export_holds_plain_files_and_a_card(run: Run, data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({"signature": "rouge-score 0.1.2 | n=10", "systems": {"ours": MEANS}}))
    flags = ["--data", data.path, "--scores", scores, "--license", "CC BY 4.0"]
    assert run("export", checkpoint, tmp_path / "model").exit_code == 0
    assert (tmp_path / "model" / "README.md").read_text().count("Not said.") == 3
    # An older export is replaced.
    done = run("export", checkpoint.parent, tmp_path / "model", *flags)
    assert done.exit_code == 0, done.output
    names = "README.md, config.json, generation_config.json, model.safetensors, modeling_pyramidions.py"
    assert done.stdout.endswith(f"model: {names}, sentencepiece.model, tokenizer_config.json\n")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# model\n" in card and "## Licence\n\nCC BY 4.0\n" in card
    assert "| pooling | soft_topk: 64 vectors after layer 2, 16 vectors after layer 3 |" in card
    assert "| longest document | 256 tokens; the rest is cut off its end |" in card
    assert "| train | 24 | " in card and data.manifest["inputs"]["train"]["sha256"] in card
    assert card.count("24.81 [23.50, 26.04]") == 4 and "rouge-score 0.1.2 | n=10" in card
    assert Summarizer.from_pretrained(tmp_path / "model").summarize(["A word."], min_len=1, max_len=2)[0].tokens <= 3


def test_a_language_model_is_exported_with_its_alphabet_and_a_card(run: Run, tmp_path: Path) -> None:
    data, flags = tmp_path / "data", ["--valid-characters", "20", "--test-characters", "20"]
    (tmp_path / "text.txt").write_text("the cat sat on the mat " * 20)
    path = saved(tmp_path, "gumbel", alphabet="en-lines")
    made = run("prepare", tmp_path / "text.txt", "--characters", "en", "--out", data, *flags)
    assert made.exit_code == 0, made.output
    done = run("export", path, tmp_path / "mine", "--data", data, "--license", "MIT")
    assert done.stdout.endswith("mine: README.md, config.json, model.safetensors\n"), done.output
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "\nlanguage:\n- en\n" in card and "\nlicense: mit\n" in card
    assert "pyramidions segments mine paper.txt" in card
    assert "| alphabet | en, 26 letters, the space, the line end |" in card and "| train | " in card
    assert run("segments", tmp_path / "mine", text="the cat").exit_code == 0
