"""A T5 on its way from its folder, with our parts, through training and a kill, to its summaries and transformers."""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from fairseq_commands import TASK, kill_at, run
from small_pretrained import model_of, save
from small_tokenizers import SENTENCES
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import pyramidions.hf  # registers with the Auto classes
from pyramidions.cli import main
from pyramidions.inference import Summarizer, load_model

PREFIX = "summarize: "
SHORT = {"beam": 2, "min_len": 2, "max_len": 6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a T5 that reads a prefix, documents, and what `import` and `prepare` make of them."""
    root = tmp_path_factory.mktemp("t5")
    path = save(model_of("longt5"), root / "t5")
    about = json.loads((path / "config.json").read_text())
    said = {"task_specific_params": {"summarization": {"prefix": PREFIX}}}
    (path / "config.json").write_text(json.dumps({**about, **said}))
    for split in ("train", "test"):
        pairs = [{"id": f"{split} {i}", "article": " ".join(SENTENCES[i:]), "abstract": SENTENCES[i]} for i in range(5)]
        (root / f"{split}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    return root


def pyramidions(*words: object) -> str:
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_a_t5_with_pooling_and_a_pointer_resumes_bit_for_bit_and_keeps_its_prefix(folder: Path) -> None:
    made = folder / "t5.pt"
    parts = ["--pooling-lengths", "16,8", "--output", "pointer(start=12)"]
    said = pyramidions("import", folder / "t5", "-o", made, *parts)
    pyramidions("prepare", folder, "--tokenizer", made, "--out", folder / "data", "--workers", 1)
    # The command that is printed, for fewer updates.
    words = shlex.split(said[said.index("fairseq-train") :].replace("\\\n", " "))
    words[1], words[words.index("--user-dir") + 1] = str(folder / "data"), TASK[1]
    assert words[words.index("--source-prefix") + 1] == PREFIX
    flags = ["--cpu", "--update-freq", "1", "--warmup-updates", "0", "--disable-validation", "--no-epoch-checkpoints"]
    flags += ["--log-format", "simple", "--log-interval", "1", "--save-interval-updates", "2", "--num-workers", "0"]
    command = [*words, *flags, "--max-update", "6", "--lr-scheduler", "fixed"]
    kill_at(3, [*command, "--save-dir", folder / "parts"])
    for name in ("whole", "parts"):
        done = run(*command, "--save-dir", folder / name)
        assert done.returncode == 0, done.stdout
        assert ("num_updates=1," in done.stdout) == (name == "whole")
    whole, resumed = (
        torch.load(folder / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "parts")
    )
    assert whole["task_state"]["source_prefix"] == PREFIX
    assert all(torch.equal(weight, resumed["model"][name]) for name, weight in whole["model"].items())
    trained, exported = folder / "whole" / "checkpoint_last.pt", folder / "exported"
    pyramidions("export", trained, exported)
    limits = ["--beam", "2", "--min-len", "2", "--max-len-b", "6"]
    done = run("fairseq-generate", folder / "data", *TASK, "--gen-subset", "test", "--path", trained, *limits)
    (folder / "generated.txt").write_text(done.stdout)
    generated = dict(re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.stdout, re.MULTILINE))
    texts = [json.loads(line)["article"] for line in (folder / "test.jsonl").read_text().splitlines()]
    for model in (trained, exported):
        assert load_model(model).source_prefix == PREFIX
        ours = Summarizer.from_pretrained(model, "cpu").summarize(texts, **SHORT)
        assert [summary.text for summary in ours] == [generated[str(i)] for i in range(5)]
    assert "| n=5" in pyramidions("score", folder / "generated.txt", "--data", folder / "data")
    ours = Summarizer.from_pretrained(exported, "cpu").summarize(texts, beam=1, min_len=3, max_len=12)
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    read = tokenizer(texts, return_tensors="pt", padding=True, truncation=True)
    found = model.generate(**read, num_beams=1, no_repeat_ngram_size=0, min_length=4, max_length=14)
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == [summary.text for summary in ours]
