"""The small scale: what its rows are, and what they begin with."""

from pathlib import Path

import pytest
import torch

from pyramidions.models import build
from pyramidions.models.experiment import Experiment, read_experiment
from pyramidions.reproduce.catalogue import PaperRow, is_trained, jobs_for, read_catalogue
from pyramidions.reproduce.plan import Machines, Planner
from pyramidions.reproduce.scale import SCALES, scaled_configs
from pyramidions.text.tokenizer import PAD

CONFIGS = Path(__file__).parents[2] / "configs"
SMALL = SCALES["small"]
FAIRSEQS = ("distributed_training.", "checkpoint.finetune_from_model", "common.cpu")
TABLES = ("table2", "table3", "table4", "table7", "table8", "lecture_govreport", "lecture_pubmed", "lecture_arxiv")
ROWS = {job.row.config: job.row for job in jobs_for(read_catalogue(CONFIGS), TABLES)}


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Planner:
    at_scale = scaled_configs(CONFIGS, tmp_path_factory.mktemp("small"), SMALL)
    return Planner(Path("/out"), at_scale, SMALL, Machines(0), Path("/plugin"), {}, seed=2)


def composed(planner: Planner, row: PaperRow, number: int | None) -> Experiment:
    """Return a row's run, or that of one of its starts."""
    step = planner.train(row, 8) if number is None else planner.starts(row)[number]
    words = step.commands[0].words
    # fairseq-hydra-train adds its own keys to those of base.yaml.
    ours = [word for word in words[words.index("base") + 1 :] if not word.startswith(FAIRSEQS)]
    return read_experiment(str(planner.configs / "base.yaml"), tuple(ours))


def test_lengths_and_widths_are_a_quarter(planner: Planner) -> None:
    found = composed(planner, ROWS["table7/21_pyramidion_8k_2k_512"], None)
    assert (found.max_source_positions, found.max_target_positions) == (2048, 256)
    assert found.model.pooling_lengths == "512,128"
    assert (found.model.embed_dim, found.model.ffn_embed_dim, found.model.num_heads) == (128, 512, 4)


def test_every_row_has_equal_updates_and_the_same_settings_of_them(planner: Planner) -> None:
    for row in ROWS.values():
        run = composed(planner, row, None).run
        assert run["optimization"]["max_update"] == 1000 and run["optimization"]["max_epoch"] == 0, row.config
        assert run["lr_scheduler"] == {"_name": "fixed", "warmup_updates": 100}, row.config
        assert run["criterion"]["label_smoothing"] == 0 and run["model"]["dropout"] == 0, row.config
        assert run["checkpoint"]["best_checkpoint_metric"] == "loss"
        starts = [composed(planner, row, number).run["optimization"]["max_update"] for number in (0, 1)]
        assert starts == [2400, 800], row.config


def test_a_row_copies_short_passages_then_longer_ones_and_then_summarizes(planner: Planner) -> None:
    row = ROWS["table2/05_blockwise_8k"]
    folder = Path("/out/arxiv/table2/05_blockwise_8k/seed-2")
    short, longer, train = *planner.starts(row), planner.train(row, 8)
    assert [step.folder for step in (short, longer, train)] == [folder / "copying-short", folder / "copying", folder]
    assert not any("finetune_from_model" in word for word in short.commands[0].words)
    for step, begun in ((longer, short), (train, longer)):
        assert f"checkpoint.finetune_from_model={begun.made}" in step.commands[0].words
        assert begun.made.name == "checkpoint_last.pt"
    for number in (0, 1):
        task = composed(planner, row, number).run["task"]
        assert (task["_name"], task["copy_spans"], task["mean_span"]) == ("span_denoising", True, 12)
        assert not {"eval_rouge", "eval_rouge_args", "eval_metrics", "eval_metric_args"} & task.keys()


def test_a_start_shares_its_documents_among_gpus() -> None:
    planner = Planner(Path("/out"), CONFIGS, SMALL, Machines(4), Path("/plugin"), {}, seed=2)
    starts = planner.starts(ROWS["table2/05_blockwise_8k"])
    assert [("dataset.batch_size=6" in s.commands[0].words, s.gpus) for s in starts] == [(True, 4), (False, 4)]


def test_a_start_holds_no_more_documents_at_a_time_than_asked_for() -> None:
    planner = Planner(Path("/out"), CONFIGS, SMALL, Machines(1, 1, 4), Path("/plugin"), {}, seed=2)
    words = [start.commands[0].words for start in planner.starts(ROWS["table2/05_blockwise_8k"])]
    assert all("dataset.batch_size=4" in each for each in words)
    assert ["optimization.update_freq=[6]" in words[0], "optimization.update_freq=[2]" in words[1]] == [True, True]


def test_power_begins_as_all_rows_do(planner: Planner) -> None:
    words = planner.train(ROWS["table2/16_power_8k_2k_512"], 8).commands[0].words
    (begun,) = (word for word in words if "finetune_from_model" in word)
    assert begun.endswith("16_power_8k_2k_512/seed-2/copying/checkpoints/checkpoint_last.pt")


def test_no_table_whose_rows_pretrain_has_a_start() -> None:
    assert all(is_trained(table) for table in TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("config", ROWS)
def test_every_row_reads_a_short_passage_and_one_model_fits_all_its_steps(planner: Planner, config: str) -> None:
    shapes = []
    for number in (0, 1, None):
        found = composed(planner, ROWS[config], number)
        marker = 4 if "markers" in ROWS[config].corpus or found.model.pooling == "markers" else None
        model = build(found.model, 64, PAD, marker, found.max_target_positions)
        source = torch.randint(5, 64, (2, min(127, found.max_source_positions)))
        source[1, 60:] = PAD
        if marker:
            source[:, 9:60:10] = marker
        logits = model(source, torch.randint(5, 64, (2, 12)))
        assert logits.isfinite().all()
        shapes.append({name: weight.shape for name, weight in model.state_dict().items()})
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize("config", ["table2/08_transpooler_8k_2k", "table4/random"])
def test_what_is_shorter_than_the_pooled_length_is_not_pooled(planner: Planner, config: str) -> None:
    found = composed(planner, ROWS[config], 0)
    model = build(found.model, 64, PAD, None, found.max_target_positions)
    encoded = model.encoder(torch.randint(5, 64, (1, 117)), torch.zeros(1, 117, dtype=torch.bool))
    assert encoded.memories[-1].x.shape[1] == 117
