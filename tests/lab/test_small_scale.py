"""The small scale: what its rows are."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from lab.catalogue import LECTURE_TABLES, PaperRow, jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.scale import SCALES, scaled_configs
from pyramidions.base.errors import UserError
from pyramidions.models.experiment import Experiment, read_experiment

CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = SCALES["small"]
FAIRSEQS = ("distributed_training.", "checkpoint.finetune_from_model", "common.cpu")
TABLES = ("table2", "table3", "table4", "table7", "table8", "neighbours", "pointing", *LECTURE_TABLES)
ROWS = {job.row.config: job.row for job in jobs_for(read_catalogue(CONFIGS), TABLES)}


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Planner:
    at_scale = scaled_configs(CONFIGS, tmp_path_factory.mktemp("small"), SMALL)
    return Planner(Path("/out"), at_scale, SMALL, Machines(0), Path("/plugin"), {}, seed=2)


def composed(planner: Planner, row: PaperRow) -> Experiment:
    """Return a row's run."""
    words = planner.train(row, 8).commands[0].words
    # fairseq-hydra-train adds its own keys to those of base.yaml.
    ours = [word for word in words[words.index("base") + 1 :] if not word.startswith(FAIRSEQS)]
    return read(str(planner.configs / "base.yaml"), tuple(ours))


read = cache(read_experiment)


def test_lengths_and_widths_are_a_quarter(planner: Planner) -> None:
    found = composed(planner, ROWS["table7/21_pyramidion_8k_2k_512"])
    assert (found.max_source_positions, found.max_target_positions) == (2048, 256)
    assert found.model.pooling_lengths == "512,128"
    assert (found.model.embed_dim, found.model.ffn_embed_dim, found.model.num_heads) == (128, 512, 4)


def test_rows_of_every_table_have_equal_updates_and_the_same_settings_of_them(planner: Planner) -> None:
    for row in {row.table: row for row in ROWS.values()}.values():
        run = composed(planner, row).run
        assert run["optimization"]["max_update"] == 600 and run["optimization"]["max_epoch"] == 0, row.config
        assert run["lr_scheduler"] == {"_name": "fixed", "warmup_updates": 100}, row.config
        assert run["criterion"]["label_smoothing"] == 0 and run["model"]["dropout"] == 0, row.config
        assert run["checkpoint"]["best_checkpoint_metric"] == "loss"


def test_other_updates_change_rows_and_not_configs(planner: Planner) -> None:
    longer = replace(planner, scale=SMALL.with_updates(1200))
    row = ROWS["table2/05_blockwise_8k"]
    assert composed(longer, row).run["optimization"]["max_update"] == 1200
    assert longer.settings(row)["optimization"]["max_update"] == 1200
    with pytest.raises(UserError, match="--updates applies only to --scale small, but the scale is tiny"):
        SCALES["tiny"].with_updates(10)


def test_every_row_is_itself_from_its_first_update(planner: Planner) -> None:
    for job in jobs_for([row.model_copy(update={"starts_from": ""}) for row in read_catalogue(CONFIGS)], TABLES):
        assert not any("finetune_from_model" in word for word in planner.train(job.row, 8).commands[0].words)
    assert planner.train(ROWS["table4/mean"], 8).folder == Path("/out/arxiv/table4/mean/seed-2")
