"""The small scale: what its rows are, and what they begin with."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from tables import for_each

from lab.catalogue import LECTURE_TABLES, PaperRow, is_trained, jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.scale import SCALES, scaled_configs
from pyramidions.base.errors import UserError
from pyramidions.models import build
from pyramidions.models.experiment import Experiment, read_experiment
from pyramidions.models.fitting import refuse_architecture
from pyramidions.plugin.tasks.span_denoising import SpanNoise
from pyramidions.text.tokenizer import PAD

CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = SCALES["small"]
FAIRSEQS = ("distributed_training.", "checkpoint.finetune_from_model", "common.cpu")
TABLES = ("table2", "table3", "table4", "table7", "table8", "neighbours", *LECTURE_TABLES)
ROWS = {job.row.config: job.row for job in jobs_for(read_catalogue(CONFIGS), TABLES)}


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Planner:
    at_scale = scaled_configs(CONFIGS, tmp_path_factory.mktemp("small"), SMALL)
    return Planner(Path("/out"), at_scale, SMALL, Machines(0), Path("/plugin"), {}, seed=2)


def composed(planner: Planner, row: PaperRow, *, start: bool = False) -> Experiment:
    """Return a row's run, or what it begins with."""
    step = planner.start(row) if start else planner.train(row, 8)
    assert step is not None
    words = step.commands[0].words
    # fairseq-hydra-train adds its own keys to those of base.yaml.
    ours = [word for word in words[words.index("base") + 1 :] if not word.startswith(FAIRSEQS)]
    return read(str(planner.configs / "base.yaml"), tuple(ours))


read = cache(read_experiment)


def folder_of(planner: Planner, config: str) -> Path:
    """Return where a row's start lies."""
    step = planner.start(ROWS[config])
    assert step is not None
    return step.folder


def test_lengths_and_widths_are_a_quarter(planner: Planner) -> None:
    found = composed(planner, ROWS["table7/21_pyramidion_8k_2k_512"])
    assert (found.max_source_positions, found.max_target_positions) == (2048, 256)
    assert found.model.pooling_lengths == "512,128"
    assert (found.model.embed_dim, found.model.ffn_embed_dim, found.model.num_heads) == (128, 512, 4)


def test_rows_of_every_table_have_equal_updates_and_the_same_settings_of_them(planner: Planner) -> None:
    for row in {row.table: row for row in ROWS.values()}.values():
        run = composed(planner, row).run
        assert run["optimization"]["max_update"] == 500 and run["optimization"]["max_epoch"] == 0, row.config
        assert run["lr_scheduler"] == {"_name": "fixed", "warmup_updates": 100}, row.config
        assert run["criterion"]["label_smoothing"] == 0 and run["model"]["dropout"] == 0, row.config
        assert run["checkpoint"]["best_checkpoint_metric"] == "loss"
        assert composed(planner, row, start=True).run["optimization"]["max_update"] == 2400, row.config


def test_other_updates_change_rows_and_neither_configs_nor_what_rows_begin_with(planner: Planner) -> None:
    longer = replace(planner, scale=SMALL.with_updates(1200))
    row = ROWS["table2/05_blockwise_8k"]
    assert composed(longer, row).run["optimization"]["max_update"] == 1200
    assert longer.settings(row)["optimization"]["max_update"] == 1200
    assert folder_of(longer, row.config) == folder_of(planner, row.config)
    with pytest.raises(UserError, match="--updates applies only to --scale small, but the scale is tiny"):
        SCALES["tiny"].with_updates(10)


def test_a_row_copies_passages_and_then_summarizes(planner: Planner) -> None:
    row = ROWS["table2/05_blockwise_8k"]
    start, train = planner.start(row), planner.train(row, 8)
    assert start is not None
    assert train.folder == Path("/out/arxiv/table2/05_blockwise_8k/seed-2")
    assert re.fullmatch("/out/arxiv/copying-[0-9a-f]{8}/seed-2", str(start.folder))
    assert not any("finetune_from_model" in word for word in start.commands[0].words)
    assert f"checkpoint.finetune_from_model={start.made}" in train.commands[0].words
    assert start.made.name == "checkpoint_last.pt"
    task = composed(planner, row, start=True).run["task"]
    assert (task["_name"], task["copy_spans"], task["mean_span"]) == ("span_denoising", True, 12)
    assert not {"eval_rouge", "eval_rouge_args", "eval_metrics", "eval_metric_args"} & task.keys()


def test_a_block_holds_a_whole_passage(planner: Planner) -> None:
    begun = composed(planner, ROWS["table2/05_blockwise_8k"], start=True)
    task = begun.run["task"]
    noise = SpanNoise(task["corrupted_share"], task["mean_span"], task["copy_spans"])
    # Source and target have an end each.
    tokens = noise.longest(begun.max_source_positions - 1, begun.max_target_positions - 1)
    assert tokens == 117 and noise.sizes(tokens)[0] + 1 <= 128
    assert begun.model.self_attention == "blockwise(block_size=128)"


def test_rows_whose_networks_have_the_same_weights_share_a_start(planner: Planner) -> None:
    common = folder_of(planner, "table2/05_blockwise_8k")
    pooled = ("table2/04_blockwise_2k", "table2/08_transpooler_8k_2k", "table7/21_pyramidion_8k_2k_512", "table4/mean")
    attending = ("table2/03_vanilla_8k", "neighbours/window", "neighbours/hepos")
    assert {folder_of(planner, config) for config in (*pooled, *attending)} == {common}
    three = {
        folder_of(planner, f"table7/{name}_3_layers") for name in ("22_pyramidion_8k_2k_512", "26_transpooler_8k_2k")
    }
    deep = {folder_of(planner, f"table3/{name}") for name in ("blockwise", "deep_pyramidion")}
    assert (len(three), len(deep)) == (1, 1)
    # What learns to copy with other weights, or with as many positions as it reads.
    others = ("table2/11_lsh_8k", "neighbours/look_back", "lecture/full", "lecture/stride")
    assert len({common, *three, *deep, *(folder_of(planner, config) for config in others)}) == 7
    assert folder_of(replace(planner, seed=3), "table4/mean") == common.with_name("seed-3")


def test_a_start_of_other_documents_an_update_is_another(planner: Planner) -> None:
    start = SMALL.start
    assert start is not None
    fewer = replace(planner, scale=SMALL._replace(start=start._replace(documents=8)))
    assert folder_of(fewer, "table4/mean") != folder_of(planner, "table4/mean")


def test_all_rows_of_a_start_have_one_command_for_it(planner: Planner) -> None:
    commands: dict[Path, set[tuple[str, ...]]] = {}
    for row in ROWS.values():
        step = planner.start(row)
        assert step is not None
        found = composed(planner, row, start=True).run
        commands.setdefault(step.folder, set()).add(tuple(f"{group}={found[group]}" for group in sorted(found)))
    assert all(len(found) == 1 for found in commands.values())
    assert len(commands) < len(ROWS)


@for_each(("machines", "held", "freq"), [(Machines(4), 6, 1), (Machines(1, 1, 4), 4, 6)])
def test_a_start_shares_its_documents_among_gpus_and_holds_no_more_than_asked_for(
    planner: Planner, machines: Machines, held: int, freq: int
) -> None:
    start = replace(planner, machines=machines).start(ROWS["table2/05_blockwise_8k"])
    assert start is not None and start.gpus == machines.gpus
    words = start.commands[0].words
    assert f"dataset.batch_size={held}" in words and f"optimization.update_freq=[{freq}]" in words


def test_power_begins_as_all_rows_do(planner: Planner) -> None:
    words = planner.train(ROWS["table2/16_power_8k_2k_512"], 8).commands[0].words
    (begun,) = (word for word in words if "finetune_from_model" in word)
    assert begun.endswith(f"{folder_of(planner, 'table2/05_blockwise_8k')}/checkpoints/checkpoint_last.pt")


def test_no_table_whose_rows_pretrain_has_a_start() -> None:
    assert all(is_trained(table) for table in TABLES)


@pytest.mark.slow
@for_each("config", ROWS)
def test_every_row_begins_with_weights_that_lack_scorers_at_most(planner: Planner, config: str) -> None:
    begun, found = composed(planner, ROWS[config], start=True), composed(planner, ROWS[config])
    marker = 4 if "markers" in ROWS[config].corpus or found.model.pooling == "markers" else None
    start = build(begun.model, 64, PAD, marker, begun.max_target_positions)
    source = torch.randint(5, 64, (2, min(127, found.max_source_positions)))
    source[1, 60:] = PAD
    if marker:
        source[:, 9:60:10] = marker
    assert start(source, torch.randint(5, 64, (2, 12))).isfinite().all()
    model = build(found.model, 64, PAD, marker, found.max_target_positions)
    refuse_architecture(start.state_dict(), model, may_add_parts=True)
