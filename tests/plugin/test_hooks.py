"""What fairseq has no call for: the config of the whole run, its end, and results that were cut short."""

import math
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from fairseq.data.iterators import EpochBatchIterator
from omegaconf import OmegaConf
from torch.utils.data import TensorDataset

from pyramidions.plugin import hooks
from pyramidions.plugin.hooks import begin_with_fillers, bf16_without_tpu, end_run, is_first_worker, run_of, set_aside
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig


def test_the_run_is_what_the_tasks_config_is_a_part_of() -> None:
    run = OmegaConf.create(
        {"task": {"data": "x"}, "checkpoint": {}, "distributed_training": {"distributed_rank": 1}, "optimization": {}}
    )
    assert run_of(run.task) is run
    assert not is_first_worker(run.task)
    end_run(run)
    assert run.optimization.stop_min_lr == math.inf


def test_a_config_that_stands_alone_has_no_run() -> None:
    alone = OmegaConf.create({"data": "x"})
    # A config from a checkpoint, one that is no part of a run, and one made without OmegaConf.
    for cfg in (alone, OmegaConf.create({"task": {"data": "x"}}).task, LongDocumentSummarizationConfig(data="x")):
        assert run_of(cfg) is None
        assert is_first_worker(cfg)


@pytest.mark.parametrize(
    ("words", "library", "tpu"),
    [("--bf16", False, False), ("--bf16", True, True), ("--bf16 --tpu", False, True), ("--tpu", False, True)],
)
def test_bf16_means_no_tpu_unless_there_is_one_or_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, words: str, library: bool, tpu: bool
) -> None:
    monkeypatch.setattr(hooks, "find_spec", lambda name: object() if library and name == "torch_xla" else None)
    monkeypatch.setattr("sys.argv", ["fairseq-train", *words.split()])
    # As fairseq reads these.
    args = Namespace(bf16="bf16" in words, tpu=True)
    bf16_without_tpu(args)
    assert args.tpu is tpu


NO_DATA = TensorDataset(torch.empty(0))


@pytest.mark.parametrize(("workers", "frequencies"), [(1, [3]), (2, [1]), (2, [2, 3]), (3, [4])])
def test_an_update_ends_in_an_empty_batch_only_where_it_has_no_other(workers: int, frequencies: list[int]) -> None:
    for number in range(workers, 12):
        for epoch in (1, 2, 3):
            of_update = frequencies[min(epoch, len(frequencies)) - 1]
            shares = []
            for worker in range(workers):
                batches = EpochBatchIterator(
                    NO_DATA, list, [[i] for i in range(number)], num_shards=workers, shard_id=worker
                )
                begin_with_fillers(batches, frequencies)
                share = batches.ordered_batches(epoch, False, True)
                shares.append([share[begin : begin + of_update] for begin in range(0, len(share), of_update)])
            assert all(update[-1] or len(update) == 1 for share in shares for update in share)
            # All workers take part in each update, and it has the batches that one worker would give it.
            whole = EpochBatchIterator(NO_DATA, list, [[i] for i in range(number)])
            order = whole.ordered_batches(epoch, False, True)
            for place, update in enumerate(zip(*shares, strict=True)):
                of_all = order[place * of_update * workers : (place + 1) * of_update * workers]
                assert sorted(filter(None, (batch for part in update for batch in part))) == sorted(of_all)


WHOLE = "S-0\tsource\nT-0\ttarget\nH-0\t-1.0\t▁a\nD-0\t-1.0\ta\nGenerate test with beam=4: ROUGE\n"


def test_results_that_end_early_do_not_look_like_results(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, partial = tmp_path / "generate-test.txt", tmp_path / "generate-test.txt.partial"
    set_aside(path)
    for length in (0, 10, WHOLE.index("Generate")):
        path.write_text(WHOLE[:length])
        set_aside(path)
        assert not path.exists() and partial.read_text() == WHOLE[:length]
    assert caplog.messages[0] == f"{path} was not written to its end, and is now {partial.name}."
    partial.unlink()
    path.write_text(WHOLE)
    set_aside(path)
    assert path.read_text() == WHOLE and not partial.exists()
