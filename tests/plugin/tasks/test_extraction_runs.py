"""An extractor trained, killed, resumed, validated and run by fairseq's commands, in this process."""

import logging
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
from tables import for_each
from torch.serialization import get_unsafe_globals_in_checkpoint

from pyramidions.base.errors import UserError
from pyramidions.cli import main
from pyramidions.data.folder import DataFolder
from pyramidions.inference import load_extractor
from pyramidions.plugin.criterions import extractive_summarization
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask

# What fairseq does that newer versions of hydra and torch deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")

# Fewer words than the truncated documents have, else every sample is the whole document.
REWARD = ("--reward-weight", "0.5", "--reward-samples", "2", "--extract-words", "60", "--dropout", "0.1")


@pytest.fixture(autouse=True)
def as_in_a_process_of_its_own() -> Iterator[None]:
    # fairseq keeps the best score on its function; torch's global state is the other tests' as well.
    state, threads, handlers = torch.get_rng_state(), torch.get_num_threads(), list(logging.root.handlers)
    torch.set_num_threads(1)
    yield
    logging.root.handlers[:] = handlers
    torch.set_rng_state(state)
    torch.set_num_threads(threads)
    forget_the_best()


def forget_the_best() -> None:
    if hasattr(checkpoint_utils.save_checkpoint, "best"):
        del checkpoint_utils.save_checkpoint.best


def train(data: DataFolder, save_dir: Path, *flags: str) -> None:
    words = [str(word) for word in train_extractor_command(data, save_dir, "--no-epoch-checkpoints", *flags)][1:]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    fairseq_train.main(convert_namespace_to_omegaconf(args))


def validations(log: str, figure: str) -> list[float]:
    return [float(found) for found in re.findall(rf"valid on 'valid' subset .*\| {figure} ([\d.]+) \|", log)]


@pytest.fixture(scope="module")
def trained(labelled_data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of a tiny extractor."""
    save_dir = tmp_path_factory.mktemp("extractor")
    train(labelled_data, save_dir, "--max-update", "6", "--extract-words", "60", "--redundancy", "trigrams")
    forget_the_best()
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


def test_the_reward_changes_what_is_learned(
    labelled_data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--max-update", "2", "--disable-validation", *REWARD)
    train(labelled_data, tmp_path / "rewarded", *flags)
    # The share of the cross entropy and the random numbers stay the same.
    monkeypatch.setattr(extractive_summarization, "reinforce", lambda log_prob, *unused: torch.zeros_like(log_prob))
    train(labelled_data, tmp_path / "unrewarded", *flags)
    unrewarded, rewarded = (
        torch.load(tmp_path / run / "checkpoint_last.pt", weights_only=True)["model"]
        for run in ("unrewarded", "rewarded")
    )
    assert any(not torch.equal(unrewarded[name], rewarded[name]) for name in rewarded)


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


def test_a_checkpoint_is_validated(
    labelled_data: DataFolder, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(labelled_data, trained, EXTRACTION)
    assert len(validations(capsys.readouterr().out, "loss")) == 1


def test_a_checkpoint_that_writes_summaries_is_validated_as_well(
    data: DataFolder, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(data, checkpoint, TASK)
    assert len(validations(capsys.readouterr().out, "nll_loss")) == 1


def validate(data: DataFolder, path: Path, task: list[str]) -> None:
    words = [str(data.path), *task, "--path", str(path), "--log-format", "simple", "--batch-size", "4"]
    parsed: list[Namespace] = [
        options.parse_args_and_arch(options.get_validation_parser(), words, suppress_defaults=suppressed)
        for suppressed in (False, True)
    ]
    fairseq_validate.main(convert_namespace_to_omegaconf(parsed[0]), override_args=parsed[1])


@for_each(
    ("flags", "sentence"),
    [
        (("--criterion", "pooled_cross_entropy"), "--task extractive_summarization needs --criterion extractive_summ"),
        (("--arch", "vanilla"), "needs a model that rates sentences, but --arch names one that writes: see `py"),
        (
            ("--best-checkpoint-metric", "rouge2"),
            "--best-checkpoint-metric rouge2 needs --eval-rouge, which is not giv",
        ),
        (("--reward-samples", "0"), "--reward-samples must be at least 1, but is 0."),
        (("--extract-words", "0"), "`extract_words` must be at least 1, one word, but is 0."),
        (("--max-tokens", "8"), "--max-tokens must be at least 512, the tokens of the longest document"),
    ],
)
def test_what_breaks_a_rule_ends_in_one_sentence(
    labelled_data: DataFolder, tmp_path: Path, flags: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        train(labelled_data, tmp_path, "--max-update", "1", *flags)


def test_a_folder_without_labels_is_refused(data: DataFolder, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="make it with `pyramidions prepare --labels`"):
        train(data, tmp_path, "--max-update", "1")
