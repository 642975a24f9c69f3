"""Commands of the README and of the pages in docs/ do what they say: they are run in a small size."""

import json
import lzma
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import SAMPLE
from doc_pages import ROOT, blocks, commands, text
from documents import pdf
from explanations import only_document, texts_of
from fairseq import options
from fairseq_commands import TINY, finish
from hydra import compose, initialize_config_dir
from small_pretrained import model_of, save

import pyramidions.plugin  # noqa: F401  (registers with fairseq, which may be imported later than pyramidions)
from pyramidions.cli import main
from pyramidions.pretrained.saved_model import load_model


def page_of(name: str) -> str:
    """Return the README, or a page of docs/."""
    return "README.md" if name == "README" else name if name.endswith(".md") else f"docs/{name}.md"


def command(page: str, *start: str) -> list[str]:
    """Return the first command of a page that starts so."""
    return next(words for words in commands(page_of(page)) if words[: len(start)] == list(start))


def papers(split: str, count: int) -> list[dict[str, str]]:
    with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for _, line in zip(range(count), lines, strict=False)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what a reader has: own documents, and few of them."""
    root = tmp_path_factory.mktemp("reader")
    (root / "documents").mkdir()
    (root / "configs").symlink_to(ROOT / "configs")
    for split, count in (("train", 12), ("valid", 4), ("test", 4)):
        own = [{"text": p["article"], "summary": p["abstract"]} for p in papers(split, count)]
        (root / "documents" / f"{split}.jsonl").write_text("".join(json.dumps(d) + "\n" for d in own))
    # Everyone has one line of raw text.
    (root / "documents.txt").write_text(" ".join(papers("test", 1)[0]["article"].split()) + "\n")
    return root


def run_in(folder: Path, words: list[str], *more: object) -> str:
    return finish(*words, *more, folder=folder)


def test_own_documents_from_preparation_to_scores(folder: Path) -> None:
    run_in(folder, command("tutorial", "pyramidions", "prepare"), "--vocab-size", "600")
    plan = run_in(folder, command("tutorial", "pyramidions", "train"), "--cpu")
    assert "\nfairseq-train my-summarizer.work/data --user-dir" in plan
    short = ["--cpu", "--min-len", "2", "--max-len-b", "8"]
    eval_args = ["--eval-rouge-args", "beam=1, min_len=2, max_len_b=4"]
    log = run_in(
        folder, command("tutorial", "fairseq-train", "prepared", "--user-dir"),
        "--cpu", *TINY, *eval_args, "--log-format", "json",
        "--update-freq", "1", "--max-update", "3", "--validate-interval", "1",
    )  # fmt: skip
    assert "sharpness_2" in log and "rouge2" in log
    run_in(folder, command("tutorial", "fairseq-generate", "prepared"), *short)
    run_in(folder, command("training", "pyramidions", "average"))
    ensemble = next(
        words for words in commands("docs/training.md") if "--results-path" in words and "ensemble" in words
    )
    run_in(folder, ensemble, *short)
    assert (folder / "ensemble" / "generate-test.txt").exists()
    log = run_in(folder, command("tutorial", "pyramidions", "score"), "--lead-words", "50")
    assert "ROUGE-Lsum" in log and "lead" in log and "n=4" in log
    assert json.loads((folder / "scores.json").read_text())["signature"].endswith("n=4")
    summarize = command("summarizing", "pyramidions", "summarize", "checkpoints", "documents.txt", "--max-len")
    assert "pieces, summarized one by one" in run_in(folder, ["8" if word == "300" else word for word in summarize])
    (folder / "paper.pdf").write_bytes(pdf("One two three."))
    run_in(folder, command("explaining", "pyramidions", "summarize", "checkpoints", "paper.pdf"))
    assert [text.strip() for text in texts_of(only_document((folder / "page.html").read_text()))] == ["One two three."]
    run_in(folder, command("tutorial", "pyramidions", "export"))
    assert "n=4" in (folder / "my-summarizer" / "README.md").read_text()
    ((example,), (explained,)) = (blocks(page_of(page), "python") for page in ("summarizing", "explaining"))
    for model in ("checkpoints", "my-summarizer"):
        program = example.replace('"checkpoints"', repr(model)).replace("300", "8")
        log = run_in(folder, ["python", "-c", f"{program}\n{explained}\nprint(explanation.reached)"])
        assert len(log.splitlines()) == 3 and " of " in log and "tensor(" in log
    # Raw text, in a folder without data.
    (folder / "elsewhere").mkdir()
    words = command("summarizing", "fairseq-interactive")
    interactive = [str(folder / word) if word.endswith((".pt", ".txt")) else word for word in words]
    assert re.search(r"^D-0\t", run_in(folder / "elsewhere", interactive, *short), re.MULTILINE)


def test_extraction_from_a_first_summary_to_a_trained_extractor(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "documents").symlink_to(folder / "documents")
    (tmp_path / "paper.pdf").write_bytes(pdf("One two three."))
    assert "One two three." in run_in(tmp_path, command("README", "pyramidions", "extract", "paper.pdf"))
    assert "One two three." in (tmp_path / "page.html").read_text()
    example, _ = blocks("README.md", "python")
    assert run_in(tmp_path, ["python", "-c", example]).endswith("A long paper ...\n")
    run_in(tmp_path, command("extracting", "pyramidions", "prepare", "documents/"), "--vocab-size", "600")
    # The test split of both folders is the same; the ids are positions.
    (tmp_path / "prepared").symlink_to("labelled")
    tests = [json.dumps({"article": paper["article"]}) for paper in papers("test", 4)]
    (tmp_path / "papers.jsonl").write_text("\n".join(tests))
    run_in(tmp_path, command("extracting", "pyramidions", "extract", "papers.jsonl"))
    assert "lead" in run_in(tmp_path, command("extracting", "pyramidions", "score", "extracts.jsonl"))
    short = ["--max-source-positions", "512", "--warmup-updates", "1", "--max-update", "3"]
    assert "rouge1" in run_in(tmp_path, command("extracting", "fairseq-train", "labelled"), "--cpu", *short)
    run_in(tmp_path, command("extracting", "fairseq-generate", "labelled"), "--cpu")
    for page, model in (("extracting", "extractor"), ("extracting", "my-extractor"), ("README", "my-model")):
        if model != "extractor":
            (tmp_path / model).symlink_to("extractor")
        assert "One two three." in run_in(tmp_path, command(page, "pyramidions", "extract", "--method", model))


def test_a_language_model_of_characters_is_trained_and_its_segments_are_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(papers("train", 1)[0]["article"])
    # The hub of text8 cannot be reached from a test.
    stand_ins = {"text8": "mine.txt", "10000": "60"}
    prepare = [stand_ins.get(word, word) for word in command("language-models", "pyramidions", "prepare", "text8")]
    run_in(tmp_path, prepare, "--out", "text8", "--valid-characters", "500")
    tiny = ["--cpu", "--tokens-per-sample", "64", "--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"]
    train = command("language-models", "fairseq-train", "text8")
    assert "shortening_factor" in run_in(tmp_path, train, *tiny, "--warmup-updates", "1", "--max-update", "2")
    (tmp_path / "paper.txt").write_text(papers("test", 1)[0]["article"][:500])
    assert "paper.txt:\n" in run_in(tmp_path, command("language-models", "pyramidions", "segments"))


def test_hydra_reads_quoted_values_as_the_page_writes_them() -> None:
    quoted = re.findall(r"`([\"']model\.\w+=[^`]+)`", text("lab/README.md"))
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.1"):
        model = compose("base", overrides=[shlex.split(override)[0] for override in quoted]).model
    assert model.pooling_lengths == "None,2048,512,None,None,None"
    assert model.self_attention == "blockwise(block_size=256)"


@pytest.mark.parametrize(
    ("page", "documents", "told"),
    [
        ("README", "papers.jsonl", "A model of concepts will be trained on the CPU"),
        ("training", "papers.jsonl", "A model of concepts will be trained on the CPU"),
        ("extracting", "sumpubmed", "--task extractive_summarization"),
    ],
)
def test_one_command_plans_a_training(page: str, documents: str, told: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "papers.jsonl").write_text("\n".join(json.dumps(paper) for paper in papers("train", 12)))
    (tmp_path / "sumpubmed").symlink_to(folder / "documents")
    words = [*command(page, "pyramidions", "train", documents), "--dry-run"]
    if documents == "sumpubmed":
        words += ["--source-field", "text", "--target-field", "summary"]
    assert told in run_in(tmp_path, words)


def test_several_machines_are_told_how_many_processes_there_are() -> None:
    from torch.distributed.run import get_args_parser

    words = command("training", "torchrun")[1:-1]
    launch = get_args_parser().parse_args(words)
    assert Path(launch.training_script).name == "fairseq-train"
    args = options.get_training_parser().parse_known_args(launch.training_script_args)[0]
    per_node = int(launch.nproc_per_node)
    assert args.distributed_world_size == int(launch.nnodes) * per_node
    # 256 documents an update, as the paper has it, with the batch of the training command
    train = command("tutorial", "fairseq-train", "prepared", "--user-dir")
    batch, alone = (int(train[train.index(flag) + 1]) for flag in ("--batch-size", "--update-freq"))
    assert batch * alone == 256
    assert batch * args.update_freq[0] * args.distributed_world_size == 256


@pytest.mark.nightly
def test_a_table_is_planned_and_nothing_is_installed(tmp_path: Path) -> None:
    # A checkout without a virtual environment.
    for name in ("lab", "pyramidions", "configs", "data"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "scripts" / "reproduce", tmp_path / "scripts" / "reproduce")
    (tmp_path / "scripts" / "setup.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/installed; exit 1\n")
    (tmp_path / "scripts" / "setup.sh").chmod(0o755)
    for corpus in ("arxiv", "pubmed"):
        (tmp_path / "corpora" / corpus).mkdir(parents=True)
        (tmp_path / "corpora" / corpus / "manifest.json").touch()
    program, *words = command("lab/README.md", "scripts/reproduce/table2.sh")
    script = [tmp_path / program, *words, "--rows", "7"]
    done = subprocess.run([*script, "--dry-run"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0 and "fairseq-hydra-train" in done.stdout, done.stderr
    assert not (tmp_path / "installed").exists()
    assert subprocess.run(script, capture_output=True, check=False, cwd=tmp_path).returncode == 1
    assert (tmp_path / "installed").exists()


def test_costs_are_counted(folder: Path) -> None:
    asked = [words for words in commands("docs/costs.md") if words[:2] == ["pyramidions", "cost"]]
    assert asked and all("10^9" in run_in(folder, words) for words in asked)


def test_the_python_example_runs() -> None:
    _, example = blocks("README.md", "python")
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102, the example of the page
    assert tuple(names["logits"].shape) == (1, 1, 32768)


def test_a_pretrained_model_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bart-base").mkdir()
    save(model_of("bart", encoder_layers=6, max_position_embeddings=1024), tmp_path / "bart-base")
    for words in (words for words in commands("docs/pretrained.md") if words[2:3] == ["./bart-base"]):
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, done.output
    found = load_model(tmp_path / "long-bart.pt")
    assert (found.max_source_positions, found.config.encoder_positions) == (16384, "learned(length=16384)")


def test_a_pretrained_model_writes(tmp_path: Path) -> None:
    # A local path takes precedence over a name on the hub.
    save(model_of("bart"), tmp_path / "facebook" / "bart-large-cnn")
    (tmp_path / "paper.pdf").write_bytes(pdf("One two three."))
    run_in(tmp_path, command("README", "pyramidions", "summarize", "facebook/bart-large-cnn"))
    run_in(tmp_path, command("README", "pyramidions", "models"))
    document = only_document((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [text.strip() for text in texts_of(document)] == ["One two three."]


def test_the_figure_is_what_the_presets_draw() -> None:
    figure = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))["figure"]()
    assert (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8") == figure


def test_no_command_of_the_readme_is_left_out() -> None:
    run_above = [("pyramidions", name) for name in ("extract", "models", "summarize", "train")]
    held_elsewhere = [("scripts/quickstart.sh",), ("scripts/test.sh",), ("scripts/setup.sh",), ("source",), ("pip",)]
    for words in commands("README.md"):
        assert any(tuple(words[: len(start)]) == start for start in [*run_above, *held_elsewhere]), words
