"""Every file of configs/sparse is its preset, with the settings that Jaszczur et al. 2021 trained with."""

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tables import for_each

from lab.catalogue import PRETRAINING_TABLES, SPARSE_TABLES, PaperRow, read_catalogue
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
#: further ones that 800M has alone
PARTS = {
    "800m_feed_forward_128": ("800m_dense", {"feed_forward": "sparse(block_size=128)"}),
    "800m_multiplicative": ("800m_projections", {"decoder_projections": "multiplicative"}),
    "800m_conv": ("800m_projections", {"decoder_projections": "conv"}),
    **{
        f"800m_output{end}": ("800m_dense", {"output": f"multiplicative(modules={modules})"})
        for end, modules in (("_2", 2), ("", 4), ("_8", 8))
    },
}
#: Table 6, in its order
TERRAFORMER = [f"17b_terraformer{end}" for end in ("_dense", "_feed_forward", "_both", "")]
ADAFACTOR = ("_name", "lr", "scale_parameter", "decay_rate", "weight_decay", "weight_decay_updates")
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
    "800m_terraformer": ("terraformer_800m", {}),
    "17b_terraformer": ("terraformer_17b", {}),
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
    shapes = {name for names in (*SHAPES.values(), PARTS, TERRAFORMER) for name in names} | {"800m_terraformer"}
    # Experts are pretrained alone.
    assert {row.config.removeprefix("sparse/") for row in ROWS} | shapes | {"experts"} == set(FILES)


def test_the_rate_is_one_over_the_root_of_the_update_after_its_warm_up() -> None:
    run = read_experiment(str(CONFIGS / "sparse" / "terraformer.yaml")).run
    assert [run["optimizer"][name] for name in ADAFACTOR] == ["decaying_adafactor", [0.01], True, -0.9, 1e-5, 0]
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
    # The rate is constant before it falls.
    assert [found.run["lr_scheduler"]["warmup_init_lr"]] == found.run["optimization"]["lr"]
    decay = 1e-5 if "terraformer" in row.row else 1e-4
    expected = ["decaying_adafactor", [0.01], True, -0.8, decay, 100000]
    assert [found.run["optimizer"][name] for name in ADAFACTOR] == expected
    pooled = row.row == "terraformer_pyramidion"
    # A passage that is shorter than what is kept would leave the poolers nothing to select.
    assert (found.max_source_positions, found.max_target_positions) == ((5120, 1024) if pooled else (512, 256))


@for_each(
    ("row", "changes"),
    [
        ("ff_64", {"feed_forward": "sparse(block_size=64)"}),
        ("ff_128", {"feed_forward": "sparse(block_size=128)"}),
        # Feed-forward parts are half as wide again, as those of 6144 units in place of 4096.
        ("multiplicative", {"ffn_embed_dim": 4608, "decoder_projections": "multiplicative"}),
        ("conv", {"ffn_embed_dim": 4608, "decoder_projections": "conv"}),
        ("multiplicative_conv", {"ffn_embed_dim": 4608, "decoder_projections": "multiplicative_conv"}),
        *((f"modules_{modules}", {"output": f"multiplicative(modules={modules})"}) for modules in (2, 4, 8)),
    ],
)
def test_a_row_of_a_figure_differs_from_the_dense_one_in_its_part(row: str, changes: dict[str, object]) -> None:
    (listed,) = (each for each in ROWS if each.table in PRETRAINING_TABLES[1:] and each.row == row)
    dense, found = (
        read_experiment(str(CONFIGS / "base.yaml"), each.overrides)
        for each in (next(each for each in ROWS if (each.table, each.row) == (listed.table, "dense")), listed)
    )
    assert asdict(found.model) == {**asdict(dense.model), **changes}
    assert {**found.run, "model": None} == {**dense.run, "model": None} and not listed.paper


@for_each(("name", "part"), PARTS.items())
def test_a_part_alone_changes_its_field_alone(name: str, part: tuple[str, dict[str, str]]) -> None:
    below, changes = part
    found, base = (asdict(read_experiment(str(CONFIGS / "sparse" / f"{each}.yaml")).model) for each in (name, below))
    assert found == {**base, **changes}


def test_table_6_makes_one_part_after_the_other_sparse_and_keeps_the_size() -> None:
    found = [asdict(read_experiment(str(CONFIGS / "sparse" / f"{name}.yaml")).model) for name in TERRAFORMER]
    changed = [{name for name in one if one[name] != two[name]} for one, two in pairwise(found)]
    assert changed == [{"feed_forward"}, {"ffn_embed_dim", "decoder_projections"}, {"output"}]
    sizes = [millions(name) for name in TERRAFORMER]
    assert sizes == pytest.approx([sizes[-1]] * 4, rel=0.1)


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
