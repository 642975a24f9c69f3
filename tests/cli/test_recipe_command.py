"""`pyramidions recipe`: commands that fairseq takes, with schedules that can work."""

import json
import math
import shlex
from pathlib import Path

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import pyramidions.plugin  # noqa: F401
from pyramidions.files.progress import counted
from pyramidions.plugin.tasks.schedule import doubts, schedule_of

USER_DIR = str(Path(__file__).parents[2] / "pyramidions")


def folder(path: Path, documents: int, vocab_size: int = 4000, splits: tuple[str, ...] = ("train", "valid")) -> Path:
    """A prepared folder, as far as a recipe reads it."""
    source = {"mean": 6500.0, "p95": 10900.0, "max": 13000}
    target = {"mean": 300.0, "p5": 40, "max": 700}
    split = {"documents": documents, "source_tokens": source, "target_tokens": target, "target_words": target}
    manifest = {
        "settings": {},
        "files": {},
        "vocab_size": vocab_size,
        "inputs": {name: {"skipped": 0} for name in splits},
        "splits": dict.fromkeys(splits, split),
    }
    path.mkdir()
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def notes(output: str) -> str:
    return " ".join(line.removeprefix("# ") for line in output.splitlines() if line.startswith("# "))


def words(output: str) -> list[str]:
    """The words of the one command in what was printed."""
    command = "\n".join(line for line in output.splitlines() if not line.startswith("#"))
    return [
        USER_DIR if word == "$(pyramidions user-dir)" else word for word in shlex.split(command.replace("\\\n", " "))
    ]


def test_hundreds_of_documents_get_hundreds_of_updates(run, tmp_path):
    output = run("recipe", folder(tmp_path / "p", 200), "--gpus", 0).stdout
    assert "The recipe for hundreds of documents: pyramidion_pointer, 3.0 million parameters." in notes(output)
    assert "25 updates an epoch, 500 in at most 20 epochs; warm-up 50." in notes(output)
    assert "--cpu" in words(output) and "--batch-size 8 --update-freq 1" in " ".join(words(output))


def test_hundreds_of_thousands_get_the_papers_update_of_256_documents(run, tmp_path):
    output = run("recipe", folder(tmp_path / "p", 203037, 32768), "--gpus", 8).stdout
    assert "The recipe for hundreds of thousands of documents: deep_pyramidion, 124.4 million" in notes(output)
    assert "warm-up 5,000." in notes(output)
    assert "has not been run at this size yet" in notes(output)
    found = words(output)
    batch, frequency = (int(found[found.index(flag) + 1]) for flag in ("--batch-size", "--update-freq"))
    assert batch * frequency * 8 == 256


@pytest.mark.parametrize(("documents", "gpus"), [(30, 0), (200, 1), (2001, 1), (30000, 4), (120000, 8), (900000, 3)])
def test_fairseq_takes_every_command_and_nothing_is_doubted_about_it(run, tmp_path, documents, gpus):
    output = run("recipe", folder(tmp_path / "p", documents), "--gpus", gpus).stdout
    program, *arguments = words(output)
    assert program == "fairseq-train"
    parsed = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    batches = math.ceil(math.ceil(documents / parsed.dataset.batch_size) / max(gpus, 1))
    schedule = schedule_of(parsed.task, batches)
    assert schedule is not None and doubts(schedule) == []
    assert f"{counted(schedule.epoch_updates, 'update')} an epoch" in notes(output)


def test_a_smaller_memory_gets_a_smaller_batch_and_the_same_update(run, tmp_path):
    data = folder(tmp_path / "p", 5000)
    for memory, batch, frequency in ((40, 32, 1), (12, 16, 2), (1, 1, 32)):
        found = words(run("recipe", data, "--gpus", 1, "--gpu-memory", memory).stdout)
        assert [found[found.index(flag) + 1] for flag in ("--batch-size", "--update-freq")] == [
            str(batch),
            str(frequency),
        ]


def test_hours_are_operations_over_the_assumed_rate(run, tmp_path):
    from pyramidions.models import preset
    from pyramidions.runs.measure import Lengths, cost_of

    config = preset("transpooler", normalize_before=True, pooling_lengths="None,2048")
    forward = cost_of(config, Lengths(6500, 300, 1, 4000)).total()
    hours = 6 * forward * 5000 * 30 / 20e12 / 3600
    output = run("recipe", folder(tmp_path / "p", 5000), "--gpus", 2, "--tflops", 20).stdout
    assert f"{hours:.2g} GPU hours, {hours / 2:.2g} by the clock, if each sustains 20 x 10^12" in notes(output)


def test_a_vocabulary_too_large_for_the_corpus_is_told(run, tmp_path):
    output = run("recipe", folder(tmp_path / "p", 200, 32768), "--gpus", 0).stdout
    assert "32,768 pieces are many for so few documents: prepare them again with --vocab-size 4000." in notes(output)


def test_a_folder_without_validation_is_refused(fail, tmp_path):
    data = folder(tmp_path / "p", 200, splits=("train",))
    assert fail("recipe", data, "--gpus", 0) == f"{data} must hold the splits train and valid, but lacks valid."


def test_where_documents_have_queries_they_decide_what_is_kept(run, tmp_path):
    data = folder(tmp_path / "data", 500)
    assert "--scorer" not in words(run("recipe", data, "--gpus", 0).stdout)
    manifest = json.loads((data / "manifest.json").read_text())
    manifest["settings"] = {"queries": True}
    (data / "manifest.json").write_text(json.dumps(manifest))
    found = words(run("recipe", data, "--gpus", 0).stdout)
    assert found[found.index("--scorer") + 1] == "query"
