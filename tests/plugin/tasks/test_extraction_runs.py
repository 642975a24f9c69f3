"""An extractor trained, killed, resumed, validated and run by fairseq's commands, in this process."""

import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from fairseq import checkpoint_utils, options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate as fairseq_generate
from fairseq_cli import train as fairseq_train
from fairseq_cli import validate as fairseq_validate
from fairseq_commands import EXTRACTION, TASK, train_extractor_command
from refusals import refused
from torch.serialization import get_unsafe_globals_in_checkpoint
from trainings import config_of, forget_best, process_of_its_own

from pyramidions.cli import main
from pyramidions.data.folder import DataFolder
from pyramidions.inference import load_extractor
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask

# What fairseq does that newer versions of hydra and torch deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")

# Fewer words than the truncated documents have, else every sample is the whole document.
REWARD = ("--reward-weight", "0.5", "--reward-samples", "2", "--extract-words", "60", "--dropout", "0.1")


@pytest.fixture(autouse=True)
def as_in_a_process_of_its_own() -> Iterator[None]:
    with process_of_its_own():
        yield


def train(data: DataFolder, save_dir: Path, *flags: str) -> None:
    fairseq_train.main(config_of(train_extractor_command(data, save_dir, "--no-epoch-checkpoints", *flags)))


def validations(log: str, figure: str) -> list[float]:
    return [float(found) for found in re.findall(rf"valid on 'valid' subset .*\| {figure} ([\d.]+) \|", log)]


@pytest.fixture(scope="module")
def trained(labelled_data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny extractor."""
    save_dir = tmp_path_factory.mktemp("extractor")
    train(labelled_data, save_dir, "--max-update", "6", "--extract-words", "60", "--redundancy", "trigrams")
    forget_best()
    return save_dir / "checkpoint_last.pt"


def test_the_loss_falls_and_the_best_checkpoint_is_chosen_by_rouge(
    labelled_data: DataFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    by_rouge = ("--eval-rouge", "--best-checkpoint-metric", "rouge2", "--maximize-best-checkpoint-metric")
    with caplog.at_level("INFO"):
        train(labelled_data, tmp_path, "--max-epoch", "4", "--lr", "0.003", *by_rouge)
    losses = [float(loss) for loss in re.findall(r"epoch \d+ \| loss ([\d.]+) ", caplog.text)]
    assert len(losses) == 4 and losses[-1] < losses[0] - 0.05
    rouge2 = validations(caplog.text, "rouge2")
    assert len(rouge2) == 4 and len(validations(caplog.text, "precision")) == 4
    assert checkpoint_utils.save_checkpoint.best == pytest.approx(max(rouge2), abs=1e-3)
    assert get_unsafe_globals_in_checkpoint(tmp_path / "checkpoint_best.pt") == []


def test_a_run_with_sampled_extracts_goes_on_bit_for_bit(
    labelled_data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--max-update", "8", "--save-interval-updates", "4", "--disable-validation", *REWARD)
    train(labelled_data, tmp_path / "whole", *flags)
    step = ExtractiveSummarizationTask.train_step

    def killed(self: Any, *args: Any, **named: Any) -> Any:
        if named["update_num"] == 6:
            raise KeyboardInterrupt
        return step(self, *args, **named)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ExtractiveSummarizationTask, "train_step", killed)
        train(labelled_data, tmp_path / "killed", *flags)
    # Whatever state the process is in does not matter.
    torch.manual_seed(99)
    train(labelled_data, tmp_path / "killed", *flags)
    whole, resumed = (
        torch.load(tmp_path / run / "checkpoint_last.pt", weights_only=True)["model"] for run in ("whole", "killed")
    )
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_extracts_are_generated_and_scored_as_they_are(
    labelled_data: DataFolder, trained: Path, tmp_path: Path
) -> None:
    words = [str(labelled_data.path), *EXTRACTION, "--path", str(trained), "--results-path", str(tmp_path)]
    args = options.parse_args_and_arch(options.get_generation_parser(), words)
    fairseq_generate.main(convert_namespace_to_omegaconf(args))
    output = tmp_path / "generate-test.txt"
    # So does the way to avoid repetitions.
    saved = load_extractor(trained)
    assert (saved.extract_words, saved.redundancy, saved.mmr_weight) == (60, "trigrams", 0.7)
    lines = re.findall(r"^D-\d+\t\S+\t(.*)$", output.read_text(), re.MULTILINE)
    # The budget of the training travels in the checkpoint.
    assert len(lines) == 10 and all(0 < len(line.split()) <= 60 for line in lines)
    result = CliRunner().invoke(main, ["score", str(output), "--data", str(labelled_data.path)])
    assert result.exit_code == 0, result.output
    (rouge1,) = re.findall(r"^Generate test .*rouge1 ([\d.]+) ", output.read_text(), re.MULTILINE)
    assert float(rouge1) > 10 and "ROUGE-1" in result.output


def test_checkpoints_are_validated(
    labelled_data: DataFolder, trained: Path, data: DataFolder, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(labelled_data, trained, EXTRACTION)
    assert len(validations(capsys.readouterr().out, "loss")) == 1
    # So is one that writes summaries.
    validate(data, checkpoint, TASK)
    assert len(validations(capsys.readouterr().out, "nll_loss")) == 1


def validate(data: DataFolder, path: Path, task: list[str]) -> None:
    words = [str(data.path), *task, "--path", str(path), "--log-format", "simple", "--batch-size", "4"]
    parsed: list[Namespace] = [
        options.parse_args_and_arch(options.get_validation_parser(), words, suppress_defaults=suppressed)
        for suppressed in (False, True)
    ]
    fairseq_validate.main(convert_namespace_to_omegaconf(parsed[0]), override_args=parsed[1])


@pytest.mark.parametrize(
    ("flag", "value", "named"),
    [
        ("--criterion", "pooled_cross_entropy", "needs --criterion extractive_summarization, but --criterion is poole"),
        ("--arch", "vanilla", "needs a model that rates sentences, but --arch names one that writes"),
        ("--best-checkpoint-metric", "rouge2", "--best-checkpoint-metric rouge2 needs --eval-rouge"),
    ],
)
def test_what_breaks_a_rule_ends_in_one_sentence(
    labelled_data: DataFolder, tmp_path: Path, flag: str, value: str, named: str
) -> None:
    with refused(named):
        train(labelled_data, tmp_path, "--max-update", "1", flag, value)
