"""The config of the whole run, as a task finds it."""

import math

from omegaconf import OmegaConf

from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.run_config import end_run, is_first_worker, run_of


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
