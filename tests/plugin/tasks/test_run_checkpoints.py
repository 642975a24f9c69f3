"""Whole runs of fairseq-train, in this process: how they begin, save and end."""

import errno
import fcntl
import io
import os
import pickle
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.optim import AMPOptimizer
from fairseq_cli import train as fairseq_train
from fairseq_commands import train_command
from omegaconf import OmegaConf
from refusals import refused
from torch import nn
from trainings import config_of, forget_best, process_of_its_own

from pyramidions.data.folder import DataFolder
from pyramidions.files.archive import is_whole_checkpoint
from pyramidions.files.run_facts import RunFacts, start_of
from pyramidions.inference import export_model, load_model
from pyramidions.plugin.models.pyramidion import PyramidionModel
from pyramidions.plugin.tasks import timely_saves
from pyramidions.plugin.tasks.checkpoint_folder import CheckpointFolder
from pyramidions.plugin.tasks.start import check_given
from pyramidions.plugin.tasks.timely_saves import TimelySaves
from pyramidions.plugin.tasks.training_run import TrainingRun
from pyramidions.pretrained.checkpoint_file import read_checkpoint
from pyramidions.pretrained.origin import Origin

# What fairseq does that newer versions of hydra and torch deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")

# Epochs have six updates.
FLAGS = ["--save-interval-updates", "4", "--keep-interval-updates", "1", "--no-epoch-checkpoints"]


@pytest.fixture(autouse=True)
def as_in_a_process_of_its_own() -> Iterator[None]:
    with process_of_its_own():
        yield


def config(data: DataFolder, save_dir: Path, *flags: str) -> Any:
    return config_of(train_command(data, save_dir, *FLAGS, *flags))


def train(data: DataFolder, save_dir: Path, *flags: str) -> None:
    fairseq_train.main(config(data, save_dir, *flags))


def updates(path: Path) -> int:
    facts = RunFacts.of(path)
    assert facts is not None
    return facts.updates


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--max-update", "6"), "is finished, it has 6 updates (--max-update 6): nothing is trained or written."),
        (("--stop-time-hours", "1e-9"), "hours (--stop-time-hours 1e-09): nothing is trained or written."),
    ],
    ids=["updates", "hours"],
)
def test_a_finished_run_ends_at_once_and_overwrites_nothing(
    data: DataFolder, tmp_path: Path, flags: tuple[str, ...], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    train(data, tmp_path, *flags)
    before = contents(tmp_path)
    assert {"checkpoint_last.pt", "checkpoint_best.pt"} <= before.keys()
    caplog.clear()
    with caplog.at_level("INFO"):
        train(data, tmp_path, *flags)
    assert said in caplog.text and "stop-min-lr" not in caplog.text
    assert contents(tmp_path) == before


def test_a_run_whose_time_was_over_before_its_first_validation_validates_once(data: DataFolder, tmp_path: Path) -> None:
    train(data, tmp_path, "--max-update", "2", "--disable-validation")
    assert not (tmp_path / "checkpoint_best.pt").exists()
    train(data, tmp_path, "--stop-time-hours", "1e-9")
    assert updates(tmp_path / "checkpoint_best.pt") == 3


def test_runs_go_on_or_begin_with_checkpoints_of_older_torch(data: DataFolder, tmp_path: Path) -> None:
    flags = ("--disable-validation", "--max-update")
    train(data, tmp_path / "first", *flags, "1")
    first = tmp_path / "first" / "checkpoint_last.pt"
    state = torch.load(first, weights_only=True)
    torch.save(state, first, _use_new_zipfile_serialization=False)
    # Finished as it is, it can be trained on.
    train(data, tmp_path / "second", *flags, "1", "--finetune-from-model", str(first))
    train(data, tmp_path / "third", *flags, "1", "--restore-file", str(first), "--reset-optimizer")
    assert [updates(tmp_path / run / "checkpoint_last.pt") for run in ("second", "third")] == [1, 1]
    cfg = config(data, tmp_path)
    cfg.common_eval.path = str(first)
    check_given(cfg)
    assert read_checkpoint(first)["model"].keys() == state["model"].keys()
    train(data, tmp_path / "first", *flags, "2")
    assert updates(first) == 2 and [file.name for file in (tmp_path / "first").iterdir()] == ["checkpoint_last.pt"]


def test_checkpoints_do_not_tell_where_the_plugin_lies(checkpoint: Path) -> None:
    recorded = torch.load(checkpoint, weights_only=True)["cfg"]
    assert recorded["common"]["user_dir"] is None and str(Path(__file__).parents[3]) not in str(recorded)


ONE_UPDATE = ("--disable-validation", "--max-update", "1")
FROZEN = ("--freeze", "embeddings,encoder.0")


@pytest.fixture(scope="module")
def frozen(data: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of one update that froze some parts."""
    folder = tmp_path_factory.mktemp("frozen")
    train(data, folder, *ONE_UPDATE, *FROZEN)
    forget_best()
    return folder


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (("--freeze", "encoder.1"), "--freeze must stay what the resumed run began with (embeddings,encoder.0)"),
        ((), "--freeze must stay what the resumed run began with (embeddings,encoder.0), but is nothing"),
        ((*FROZEN, "--self-attention", "full"), "(blockwise(block_size=32)), but is full"),
        ((*FROZEN, "--pooling", "hard_topk"), "`pooling` must stay what the resumed run began with (soft_topk)"),
        ((*FROZEN, "--pooling-lengths", "None,64,8"), "`pooling_lengths`"),
        ((*FROZEN, "--stack", "reversible", "--normalize-before"), "`stack`"),
        ((*FROZEN, "--lr-scheduler", "inverse_sqrt"), "--lr-scheduler must stay what the resumed run began with ("),
    ],
)
def test_a_run_resumes_with_the_frozen_parts_and_the_kinds_it_began_with(
    data: DataFolder, frozen: Path, changed: tuple[str, ...], named: str
) -> None:
    before = contents(frozen)
    with refused(named):
        train(data, frozen, "--disable-validation", "--max-update", "2", *changed)
    assert contents(frozen) == before


def test_another_run_may_freeze_other_parts_and_the_same_may_be_written_otherwise(
    data: DataFolder, frozen: Path, tmp_path: Path
) -> None:
    last, others = frozen / "checkpoint_last.pt", (*ONE_UPDATE, "--freeze", "encoder.1")
    train(data, tmp_path / "tuned", *others, "--finetune-from-model", str(last))
    train(data, tmp_path / "restored", *others, "--restore-file", str(last), "--reset-optimizer")
    shutil.copytree(frozen, tmp_path / "same")
    same = ("--max-update", "2", "--freeze", "encoder.0-0, embeddings", "--stack", "recomputing")
    train(data, tmp_path / "same", "--disable-validation", *same)
    assert updates(tmp_path / "same" / "checkpoint_last.pt") == 2


def test_what_started_from_a_pretrained_model_says_so_after_training_and_resuming(
    data: DataFolder, tmp_path: Path
) -> None:
    flags = ("--max-update", "1", "--disable-validation")
    train(data, tmp_path / "first", *flags)
    first = tmp_path / "first" / "checkpoint_last.pt"
    assert load_model(first).origin is None
    state, source = read_checkpoint(first), {"source": "owner/bart", "family": "bart", "revision": "abc"}
    torch.save(state | {"source": source}, tmp_path / "imported.pt")
    train(data, tmp_path / "second", *flags, "--finetune-from-model", str(tmp_path / "imported.pt"))
    (tmp_path / "imported.pt").unlink()
    train(data, tmp_path / "second", "--max-update", "2", "--disable-validation")
    last = tmp_path / "second" / "checkpoint_last.pt"
    assert updates(last) == 2 and load_model(last).origin == Origin("owner/bart", "bart", "abc", None)
    # It goes through another training, and into an export.
    train(data, tmp_path / "third", *flags, "--finetune-from-model", str(last))
    export_model(load_model(tmp_path / "third" / "checkpoint_last.pt"), tmp_path / "export", "# A model\n")
    assert load_model(tmp_path / "export").origin == Origin("owner/bart", "bart", "abc", None)


def test_a_disk_that_is_full_for_a_moment_leaves_whole_checkpoints(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    save, attempts = torch.save, []

    def full_at_first(obj: Any, file: Any) -> None:
        attempts.append(file)
        if len(attempts) % 2:
            whole = io.BytesIO()
            save(obj, whole)
            file.write(whole.getvalue()[:50_000])
            raise OSError(errno.ENOSPC, "No space left on device")
        save(obj, file)

    monkeypatch.setattr(torch, "save", full_at_first)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    train(data, tmp_path, "--max-update", "8")
    assert len(attempts) == 6
    files = sorted(tmp_path.iterdir())
    assert {"checkpoint_best.pt", "checkpoint_last.pt"} <= {file.name for file in files}
    assert all(is_whole_checkpoint(file) for file in files)
    assert updates(tmp_path / "checkpoint_last.pt") == 8
    assert "was written while the disk was full, and has been repaired" in caplog.text


def test_a_run_goes_on_from_the_newest_whole_checkpoint_and_not_with_parameters_in_another_order(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ("--disable-validation", "--max-update")
    train(data, tmp_path / "whole", *flags, "6")
    train(data, tmp_path / "moved", *flags, "4")
    last = tmp_path / "moved" / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:-200])
    with monkeypatch.context() as patched, refused("--reset-optimizer"):
        patched.setattr(PyramidionModel, "build_model", build_in_another_order)
        train(data, tmp_path / "moved", *flags, "6")
    train(data, tmp_path / "moved", *flags, "6")
    assert f"Replaced {last} with checkpoint_1_4.pt, the newest intact checkpoint (update 4)." in caplog.text
    one, other = (torch.load(tmp_path / run / "checkpoint_last.pt", weights_only=True) for run in ("whole", "moved"))
    assert all(torch.equal(other["model"][name], weight) for name, weight in one["model"].items())


def build_in_another_order(*args: Any, build: Any = PyramidionModel.build_model) -> PyramidionModel:
    """Build the model as a release would that registers the parts of every module the other way round."""
    model: PyramidionModel = build(*args)
    for module in model.modules():
        if not isinstance(module, nn.ModuleList | nn.ModuleDict):
            module._modules = dict(reversed(module._modules.items()))
    return model


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder as another process would."""
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def test_a_second_run_in_the_same_folder_is_refused_until_the_first_is_gone(data: DataFolder, tmp_path: Path) -> None:
    folder, flags = tmp_path / "run", ("--max-update", "1", "--disable-validation")
    with held(folder):
        with refused(f"Another run is writing its checkpoints to {folder}: wait"):
            train(data, folder, *flags)
        assert not list(folder.iterdir())
        train(data, folder, *flags, "--no-save")
    train(data, folder, *flags)
    assert [file.name for file in folder.iterdir()] == ["checkpoint_last.pt"]
    # The process itself may train there again, and holds the folder still.
    train(data, folder, "--max-update", "2", "--disable-validation")
    assert updates(folder / "checkpoint_last.pt") == 2
    with pytest.raises(BlockingIOError), held(folder):
        pass


def test_a_run_that_saves_nothing_leaves_the_folder_of_another_as_it_is(data: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "checkpoint_last.previous").write_bytes(b"another's")
    (tmp_path / "checkpoint_last.pt").write_bytes(b"PK")
    before = contents(tmp_path)
    with refused("checkpoint_last.pt (--restore-file) is damaged"):
        train(data, tmp_path, "--max-update", "1", "--no-save")
    assert contents(tmp_path) == before


def test_only_what_is_written_is_moved_aside(data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = []
    before_saving = CheckpointFolder.before_saving

    def spy(folder: CheckpointFolder, replaces_best: bool) -> None:
        before_saving(folder, replaces_best)
        moved.append((replaces_best, sorted(file.name for file in tmp_path.iterdir())))

    monkeypatch.setattr(CheckpointFolder, "before_saving", spy)
    # Of three epochs, the second alone is validated.
    flags = ("--no-last-checkpoints", "--save-interval-updates", "0", "--validate-interval", "2", "--max-epoch", "3")
    train(data, tmp_path, *flags)
    assert moved == [(False, []), (True, []), (False, ["checkpoint_best.pt"])]
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint_best.pt"]


@pytest.mark.parametrize("flag", ["--restore-file", "--finetune-from-model", "--path"])
def test_a_damaged_checkpoint_that_the_user_names_is_named(data: DataFolder, tmp_path: Path, flag: str) -> None:
    torch.save({"model": torch.zeros(9)}, tmp_path / "first.pt")
    content = (tmp_path / "first.pt").read_bytes()
    (tmp_path / "first.pt").write_bytes(content[:-30])
    with refused(f"first.pt ({flag}) is damaged or no checkpoint."):
        if flag == "--path":
            cfg = config(data, tmp_path)
            check_given(cfg)
            cfg.common_eval.path = f"{tmp_path / 'none.pt'}:{tmp_path / 'first.pt'}"
            check_given(cfg)
        else:
            train(data, tmp_path / "run", flag, str(tmp_path / "first.pt"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--restore-file", "none.pt"), "--restore-file must be a checkpoint, but none.pt is no file."),
        (("--finetune-from-model", "none.pt"), "--finetune-from-model must be a checkpoint, but none.pt is no file."),
        (("--store-ema",), "--store-ema must not be given"),
    ],
)
def test_what_fairseq_would_ignore_or_break_at_is_refused(
    data: DataFolder, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    with refused(said):
        train(data, tmp_path / "run", *flags)


def test_a_folder_is_no_checkpoint_to_generate_with(data: DataFolder, tmp_path: Path) -> None:
    cfg = config(data, tmp_path)
    cfg.common_eval.path = str(tmp_path)
    with refused(f"--path must be a checkpoint, but {tmp_path} is a folder: give checkpoint_best.pt in it."):
        check_given(cfg)


class Code:
    """Makes a folder when it is unpickled."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.made),)


def test_our_code_reads_safely_whatever_is_set_and_fairseqs_own_by_torchs_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = tmp_path / "bad.pt", tmp_path / "made"
    torch.save({"model": {}, "cfg": None, "extra_state": {"code": Code(made)}}, path)
    for forced in (False, True):
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", str(int(forced)))
        with refused("holds more than tensors and plain values; it is not loaded"):
            read_checkpoint(path)
        assert (RunFacts.of(path), start_of(path)) == (None, (None, {})) and not made.exists()
        with suppress(pickle.UnpicklingError, KeyError):
            checkpoint_utils.load_checkpoint_to_cpu(str(path))
        assert made.exists() == forced


def test_checkpoints_that_cannot_be_verified_are_refused(data: DataFolder, tmp_path: Path) -> None:
    cfg = config(data, tmp_path)
    cfg.checkpoint.write_checkpoints_asynchronously = True
    task = fairseq_train.tasks.setup_task(cfg.task)
    with refused("--write-checkpoints-asynchronously"):
        task.build_model(cfg.model)


def assert_same_end(one: Path, other: Path) -> None:
    """Compare names, weights, moments and best scores of two runs."""
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())
    for path in one.iterdir():
        ours, theirs = (torch.load(folder / path.name, weights_only=True) for folder in (one, other))
        for part in ("model", "last_optimizer_state"):
            torch.testing.assert_close(ours[part], theirs[part], rtol=0, atol=0)
        for fact in ("best", "val_loss", "train_iterator", "LongDocumentSummarizationTask"):
            assert ours["extra_state"].get(fact) == theirs["extra_state"].get(fact)


@pytest.mark.parametrize(
    ("number", "hook", "call", "saved"),
    [
        (signal.SIGTERM, "before_step", 3, 3),
        # The last update of an epoch is saved when it is validated, and so is one that is interrupted by then.
        (signal.SIGTERM, "before_step", 6, 6),
        (signal.SIGINT, "validated", 1, 7),
    ],
)
def test_an_interrupted_run_is_saved_and_ends_like_one_that_was_not_interrupted(
    data: DataFolder, tmp_path: Path, number: signal.Signals, hook: str, call: int, saved: int
) -> None:
    flags = ("--save-interval-updates", "0", "--max-update", "8")
    train(data, tmp_path / "whole", *flags)
    forget_best()
    usual, calls = getattr(TrainingRun, hook), list[int]()

    def interrupted(*args: Any) -> None:
        usual(*args)
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), number)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(TrainingRun, hook, interrupted)
        train(data, tmp_path / "cut", *flags)
    assert ended.value.code == 128 + number and updates(tmp_path / "cut" / "checkpoint_last.pt") == saved
    forget_best()
    train(data, tmp_path / "cut", *flags)
    assert_same_end(tmp_path / "whole", tmp_path / "cut")


def test_an_interrupted_update_that_overflows_is_saved_when_its_repetition_succeeds(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, calls = AMPOptimizer.clip_grad_norm, list[int]()

    def overflows(*args: Any, **named: Any) -> torch.Tensor:
        norm: torch.Tensor = usual(*args, **named)
        calls.append(1)
        if len(calls) != 3:
            return norm
        os.kill(os.getpid(), signal.SIGTERM)
        return torch.full_like(norm, torch.inf)

    monkeypatch.setattr(AMPOptimizer, "clip_grad_norm", overflows)
    with pytest.raises(SystemExit) as ended:
        train(data, tmp_path, "--amp", "--max-update", "5", "--disable-validation")
    assert ended.value.code == 128 + signal.SIGTERM and len(calls) == 4
    assert updates(tmp_path / "checkpoint_last.pt") == 3


def test_saves_by_the_clock_keep_the_checkpoint_of_an_epoch_that_skips_its_remainder(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timely_saves, "pause", lambda took: 0.0)
    # The one update of the first epoch takes four of its six batches.
    flags = ["--max-update", "2", "--update-freq", "4,1", "--skip-remainder-batch", "--keep-interval-updates", "-1"]
    fairseq_train.main(config_of(train_command(data, tmp_path, *flags)))
    first = torch.load(tmp_path / "checkpoint1.pt", weights_only=True)["extra_state"]
    assert first["val_loss"] is not None


def test_saves_by_the_clock_change_neither_validations_nor_other_files(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[tuple[str, int]] = []
    validated: list[tuple[str, int]] = []
    save, validate = CheckpointFolder.saved, TrainingRun.validated

    def saves(folder: CheckpointFolder, first: Path) -> None:
        saved.append((folder.path.name, updates(first)))
        if updates(first) == 7:
            assert (folder.path / "checkpoint_1_4.pt").exists()
        recorded = torch.load(first, weights_only=True)["cfg"]
        given = OmegaConf.to_container(config(data, folder.path, *flags), enum_to_str=True)
        for group in ("checkpoint", "dataset", "optimization"):
            assert recorded[group] == given[group]
        save(folder, first)

    def validates(run: TrainingRun, stats: dict[str, Any]) -> None:
        validated.append((Path(run.run.checkpoint.save_dir).name, stats["num_updates"]))
        validate(run, stats)

    monkeypatch.setattr(CheckpointFolder, "saved", saves)
    monkeypatch.setattr(TrainingRun, "validated", validates)
    # Those of fairseq: 4 and 8 by their number, 6 ends an epoch.
    flags = ("--max-update", "8", "--validate-interval-updates", "5", "--stop-time-hours", "1")
    for name, pause in (("usual", timely_saves.pause), ("often", lambda took: 0.0)):
        monkeypatch.setattr(timely_saves, "pause", pause)
        forget_best()
        train(data, tmp_path / name, *flags)
    assert [update for name, update in saved if name == "usual"] == [4, 6, 8]
    # An update that is validated is not saved beside.
    assert [update for name, update in saved if name == "often"] == [1, 2, 3, 4, 6, 7, 8]
    for name in ("usual", "often"):
        assert [update for run, update in validated if run == name] == [4, 5, 6, 8]
    assert_same_end(tmp_path / "usual", tmp_path / "often")


def test_a_save_that_takes_a_minute_is_made_every_twenty_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(timely_saves, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    run = OmegaConf.structured(FairseqConfig)
    timely, epoch, saved = TimelySaves(run), SimpleNamespace(end_of_epoch=lambda: False, epoch=1), []
    for update in range(60):
        timely.before_step(update)
        clock[0] += 60
        timely.updated(update + 1, epoch, torch.device("cpu"))
        if run.checkpoint.save_interval_updates:
            saved.append(update + 1)
            timely.before_saving()
            clock[0] += 60
            timely.saved("checkpoint_best.pt")
    assert saved == [6, 27, 48]


def test_a_run_that_saves_nothing_is_interrupted_at_once(data: DataFolder, tmp_path: Path) -> None:
    before_step = TrainingRun.before_step

    def interrupted(*args: Any) -> None:
        before_step(*args)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TrainingRun, "before_step", interrupted)
        train(data, tmp_path, "--no-save")
