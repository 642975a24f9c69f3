"""Every file of configs/sparse is its preset, with the settings that Jaszczur et al. 2021 trained with."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from tables import for_each

from lab.catalogue import SPARSE_TABLES, PaperRow, read_catalogue
from pyramidions.models import build, preset
from pyramidions.models.experiment import read_experiment

CONFIGS = Path(__file__).parent.parent / "configs"
SPARSE = [row for row in read_catalogue(CONFIGS) if row.table.startswith("sparse_")]
ROWS = [row for row in SPARSE if row.config]
FILES = sorted(path.stem for path in (CONFIGS / "sparse").glob("*.yaml"))
#: in this order: dense, one part, the other, both
SHAPES = {
    size: [f"{size}_{part}" for part in ("dense", "feed_forward", "projections", "both")] for size in ("800m", "17b")
}
SIX = {"embed_dim": 768, "ffn_embed_dim": 3072, "num_heads": 12, "encoder_layers": 6, "decoder_layers": 6}
DENSE = {**SIX, "normalize_before": True, "decoder_positions": "sinusoidal"}
PRESETS = {
    "transformer": ("vanilla", DENSE),
    "scaling": ("deep_scaling", {}),
    "experts": ("vanilla", {**DENSE, "feed_forward": "experts(experts=64)"}),
    "terraformer": ("terraformer", {}),
    "terraformer_pyramidion": ("terraformer_pyramidion", {}),
    "800m_both": ("scaling_800m", {}),
    "17b_both": ("scaling_17b", {}),
}


def millions(name: str) -> float:
    """Return how many million parameters a model has."""
    with torch.device("meta"):
        model = build(read_experiment(str(CONFIGS / "sparse" / f"{name}.yaml")).model, 32768)
    return sum(p.numel() for p in model.parameters()) / 1e6


@for_each("name", PRESETS)
def test_a_file_is_its_preset_with_the_dropout_of_the_paper_and_writes_greedily(name: str) -> None:
    found = read_experiment(str(CONFIGS / "sparse" / f"{name}.yaml"))
    base, changes = PRESETS[name]
    wanted = preset(base, **{**changes, "dropout": 0.2, "decoding_beam": 1, "max_source_positions": 15360})
    assert asdict(found.model) == asdict(wanted)
    assert (found.max_source_positions, found.max_target_positions) == (15360, 1024)


def test_every_file_is_a_row_or_a_shape_and_every_row_has_a_file() -> None:
    shapes = {name for names in SHAPES.values() for name in names} | {"800m_output"}
    # Experts are pretrained alone.
    assert {row.config.removeprefix("sparse/") for row in ROWS} | shapes | {"experts"} == set(FILES)


def test_the_rate_is_one_over_the_root_of_the_update_after_its_warm_up() -> None:
    run = read_experiment(str(CONFIGS / "sparse" / "terraformer.yaml")).run
    assert (run["optimizer"]["_name"], run["optimizer"]["lr"], run["optimizer"]["scale_parameter"]) == (
        "adafactor",
        [0.01],
        True,
    )
    warmup = run["lr_scheduler"]["warmup_updates"]
    assert run["lr_scheduler"]["_name"] == "inverse_sqrt" and warmup == 10000 and 1.0 / warmup**0.5 == 0.01


@for_each("row", [row for row in ROWS if row.table == "sparse_table8"])
def test_pretraining_is_its_model_on_missing_spans(row: PaperRow) -> None:
    found = read_experiment(str(CONFIGS / "base.yaml"), row.overrides)
    tuned = read_experiment(str(CONFIGS / f"{row.config.removesuffix('_pretraining')}.yaml"))
    differs = {name for name, value in asdict(tuned.model).items() if asdict(found.model)[name] != value}
    assert differs == {"dropout", "max_source_positions"} and found.model.dropout == 0.1
    task = found.run["task"]
    assert task["_name"] == "span_denoising" and not [name for name in task if name.startswith("eval_")]
    assert found.run["optimization"]["max_update"] == 524288
    pooled = row.row == "terraformer_pyramidion"
    # A passage that is shorter than what is kept would leave the poolers nothing to select.
    assert (found.max_source_positions, found.max_target_positions) == ((5120, 1024) if pooled else (512, 256))


def test_models_that_are_fine_tuned_start_from_their_pretraining() -> None:
    tuned = [row for row in ROWS if row.table == "sparse_table5"]
    assert [row.starts_from for row in tuned] == [f"{row.config}_pretraining" for row in tuned]


def test_sparse_parts_keep_the_size_of_the_dense_model() -> None:
    for dense, feed_forward, projections, both in SHAPES.values():
        assert millions(both) == pytest.approx(millions(dense), rel=0.25)
        # Wider feed-forward parts make up for what projections lose.
        assert millions(projections) == pytest.approx(millions(dense), rel=0.25)
        assert millions(feed_forward) > millions(dense)


@for_each("table", range(1, 9))
def test_every_table_of_the_paper_is_there_with_its_figures(table: int) -> None:
    published = [row for row in SPARSE if row.table == f"sparse_table{table}" and not row.config]
    assert published and all(row.paper for row in published)


def test_the_published_figures_are_those_of_the_paper() -> None:
    found = {(row.table.removeprefix("sparse_"), row.row): row.paper for row in SPARSE}
    assert found["table1", "17b_ff_qkv"] == {"token_s": 0.183, "block_ms": 14}
    assert found["table3", "ff_qkv"] == {
        "rte": 68.4,
        "mrpc": 81.2,
        "sst2": 91.6,
        "qnli": 90.1,
        "mnli": 82.9,
        "qqp": 89.9,
    }
    toys = ("copy", "copy_sequences", "addition", "addition_sequences")
    assert found["table4", "terraformer"] == dict(zip(toys, (99.9, 93.9, 86.9, 32.4), strict=True))
    assert found["table5", "terraformer_800m"] == {"r1": 45.4, "r2": 17.86, "rl": 41.21, "rl_sentences": 26.33}
    assert found["table6", "ff_qkv_loss"] == {"token_s": 0.097}
    assert found["table8", "terraformer_175k"] == {"steps": 175000, "log_perplexity": 1.59, "token_s": 0.086}


def test_only_what_is_trained_is_a_row_of_ours() -> None:
    assert {row.table for row in ROWS} == set(SPARSE_TABLES)
