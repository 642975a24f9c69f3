"""Every file of configs/dynamic_pooling is its preset, with the settings that Nawrot et al. 2023 trained with."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from tables import for_each

from lab.catalogue import read_catalogue
from pyramidions.models import LANGUAGE_MODEL_PRESETS, build_language_model, language_model_preset
from pyramidions.models.config import LanguageModelConfig

CONFIGS = Path(__file__).parent.parent / "configs"
FILES = sorted(path.stem for path in (CONFIGS / "dynamic_pooling").glob("*.yaml"))
ROWS = [row for row in read_catalogue(CONFIGS) if row.table.startswith("dynamic_pooling_")]
PUBLISHED, OURS = [row for row in ROWS if not row.config], [row for row in ROWS if row.config]
#: what has options of the released code, by preset
OPTIONS = {
    "gumbel": "gumbel(prior=0.2, evaluation='sample')",
    "gumbel_fi": "gumbel(prior=0.37, evaluation='sample')",
    **{f"gumbel_{end}": f"gumbel(prior=0.{end.rstrip('0')}, evaluation='sample')" for end in ("25", "30", "45")},
    "unigram": "unigram(loss='twice')",
    "entropy": "entropy(window=2, loss='twice')",
}
#: parameters with 27 symbols, by the counts of the released code
SIZES = {"vanilla": 41_009_179, "fixed_2": 41_010_715, "whitespace": 41_010_715, "gumbel": 42_063_388}
LAYER = 3_415_040
DEPTH = re.compile(r"_(\d+)_layers$")


def composed(name: str | None = None) -> dict[str, Any]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.1"):
        found = compose("dynamic_pooling", overrides=[f"+dynamic_pooling={name}"] if name else [])
    return OmegaConf.to_container(found)  # type: ignore[return-value]


def model_of(name: str) -> LanguageModelConfig:
    fields = composed(name)["model"]
    assert fields.pop("_name") == "pyramidion_lm"
    return LanguageModelConfig(**fields)


@for_each("name", FILES)
def test_a_file_is_its_preset_with_the_options_of_the_released_code(name: str) -> None:
    kind, layers = DEPTH.sub("", name.removesuffix("_last")), DEPTH.search(name)
    changes = {"boundaries": OPTIONS[kind]} if kind in OPTIONS else {}
    if name.endswith("_last"):
        changes["segments"] = "last"
    if layers:
        changes["layers"] = f"2,{int(layers[1]) - 4},2"
    preset = "gumbel" if kind.startswith("gumbel") else kind
    wanted = language_model_preset(f"hourglass_{preset}", **changes)
    assert asdict(model_of(name)) == asdict(wanted)


@for_each("name", SIZES)
def test_a_model_has_as_many_parameters_as_the_published_one(name: str) -> None:
    with torch.device("meta"):
        model = build_language_model(model_of(name), 27, padding_idx=1, space_idx=4)
    assert sum(weight.numel() for weight in model.parameters()) == SIZES[name]


@for_each(("kind", "layers"), [(kind, layers) for kind in ("vanilla", "fixed_2") for layers in (8, 16, 20)])
def test_deeper_models_have_more_layers_alone(kind: str, layers: int) -> None:
    with torch.device("meta"):
        model = build_language_model(model_of(f"{kind}_{layers}_layers"), 27, padding_idx=1, space_idx=4)
    assert sum(weight.numel() for weight in model.parameters()) == SIZES[kind] + (layers - 12) * LAYER


@for_each("name", FILES)
def test_a_file_holds_only_differences(name: str) -> None:
    path = CONFIGS / "dynamic_pooling" / f"{name}.yaml"
    assert path.read_text().startswith("# @package _global_\n")
    own: Any = OmegaConf.to_container(OmegaConf.load(path)) or {}
    defaults = own.pop("defaults", ["_self_"])
    below = composed(defaults[0] if len(defaults) > 1 else None)
    assert all(below[group].get(key) != value for group, fields in own.items() for key, value in fields.items())


def test_a_run_has_the_steps_rate_and_schedule_of_the_paper() -> None:
    run = composed()
    assert run["optimization"] == {"lr": [0.00025], "clip_norm": 0.25, "max_update": 200000}
    assert run["lr_scheduler"] == {"_name": "cosine", "warmup_updates": 4000}
    assert run["dataset"]["batch_size"] * run["task"]["tokens_per_sample"] == 8 * 2048
    assert run["optimizer"]["adam_betas"] == "(0.9, 0.999)" and run["optimizer"]["weight_decay"] == 0


def test_pieces_are_read_where_boundaries_learn_from_them_and_nowhere_else() -> None:
    found = [name for name in FILES if composed(name)["task"].get("piece_boundaries")]
    assert found == ["unigram", *(name for name in FILES if name.startswith("unigram_"))]
    rows = [row for row in OURS if row.config.startswith("dynamic_pooling/unigram")]
    assert rows and all(re.search(r"-\d+$", row.data) for row in rows)


def test_every_preset_of_the_paper_and_every_published_row_has_a_file() -> None:
    published = {row.row.removesuffix(f"-{row.data}") for row in PUBLISHED}
    ours = {row.config.removeprefix("dynamic_pooling/") for row in OURS}
    assert published | ours == set(FILES)
    of_others = {"hourglass_routing", "longformer_lm"}
    assert {f"hourglass_{name}" for name in FILES} >= set(LANGUAGE_MODEL_PRESETS) - of_others


def test_figures_3_and_4_have_the_vocabularies_priors_and_depths_of_the_paper() -> None:
    def names(table: str, kind: str) -> list[str]:
        return [row.row for row in OURS if row.table == f"dynamic_pooling_{table}" and row.row.startswith(kind)]

    assert names("figure3", "unigram") == [f"unigram_{size}" for size in (200, 500, 1000, 3000, 5000, 10000)]
    assert names("figure3", "gumbel") == [f"gumbel_{prior}" for prior in (20, 25, 30, 37, 45)]
    assert names("figure4", "whitespace") == [f"whitespace-{layers}" for layers in (8, 12, 16, 20)]
    keys = [(row.config, row.data) for row in OURS if row.table == "dynamic_pooling_figure3"]
    assert len(set(keys)) == len(keys) and not any(row.paper for row in OURS)


def test_the_published_figures_are_those_of_the_paper() -> None:
    found = {(row.table.removeprefix("dynamic_pooling_"), row.row): row.paper for row in PUBLISHED}
    assert len(found) == len(PUBLISHED) == 8 * 6 + 3 * 2
    assert found["table1", "vanilla-text8"] == {"bpc": 1.143, "shortening_factor": 1}
    assert found["table1", "gumbel-wiki40b-fi"] == {"bpc": 0.941, "shortening_factor": 2.6}
    assert found["table1", "entropy-cc100-en"] == {"bpc": 1.218, "shortening_factor": 3.8}
    assert found["table1", "unigram-wiki40b-he"] == {"bpc": 1.27, "shortening_factor": 1.9}
    assert found["table1", "whitespace-wiki40b-vi"] == {"bpc": 1.057, "shortening_factor": 4.4}
    assert found["table1", "fixed_4-wiki40b-en"] == {"bpc": 1.102, "shortening_factor": 4}
    assert [
        found["table2", f"{name}-text8"]["bpc"] for name in ("fixed_2_last", "entropy_last", "whitespace_last")
    ] == [
        1.18,
        1.151,
        1.144,
    ]


def test_what_is_better_than_vanilla_and_fixed_by_the_papers_test_is_noted() -> None:
    better = {row.row for row in PUBLISHED if row.note}
    english = {
        f"{kind}-{corpus}" for kind in ("unigram", "whitespace") for corpus in ("text8", "wiki40b-en", "cc100-en")
    }
    drawn = {f"{kind}-{corpus}" for kind in ("gumbel", "entropy") for corpus in ("text8", "cc100-en")}
    assert better == english | drawn | {"unigram-wiki40b-he", "whitespace-wiki40b-vi"}
