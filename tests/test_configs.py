"""Every file of configs/ is the preset that it is said to be, holds what the papers say, and trains a step.

`tests/golden` holds the fields and the lengths of every file: what it recorded is compared here.
"""

import csv
import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq_commands import run
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from transformers import AutoConfig

from lab.catalogue import LECTURE_TABLES, OWN_TABLES, PRETRAINING_TABLES, SPARSE_TABLES, read_catalogue
from lab.scale import SCALES, scaled_configs
from pyramidions.data.folder import DataFolder
from pyramidions.models import LANGUAGE_MODEL_PRESETS, ExtractorConfig, PyramidionConfig, build
from pyramidions.models.config import NO_SHAPE, LanguageModelConfig
from pyramidions.models.experiment import read_experiment
from pyramidions.models.fields import part_fields, parts_with_defaults
from pyramidions.pretrained.families import shape_of
from pyramidions.pretrained.source import Source

TESTS = Path(__file__).parent
CONFIGS = TESTS.parent / "configs"
RECORDED = json.loads(lzma.decompress((TESTS / "golden" / "golden.json.xz").read_bytes()))["names"]
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (PyramidionConfig, ExtractorConfig, LanguageModelConfig)}
FILES = sorted(f"{path.parent.name}/{path.stem}" for path in CONFIGS.glob("*/*.yaml"))
CHARACTERS, PRETRAINED, CORPORA = (
    [name for name in FILES if name.startswith(group)] for group in ("dynamic_pooling/", "pretrained/", "corpus/")
)
CATALOGUE = read_catalogue(CONFIGS)
ROWS = [row for row in CATALOGUE if row.config]
#: Those of the paper on pyramidions.
PAPER = [row for row in ROWS if re.fullmatch(r"(table|figure)\d+", row.table)]
SMALL = [
    *("model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "common.cpu=true"),
    *("task.max_source_positions=64", "task.max_target_positions=80", "dataset.batch_size=4"),
    *("optimization.max_update=1", "optimization.update_freq=[1]", "dataset.disable_validation=true"),
    "task.stopping_patience=0",
]
ADAFACTOR = ("_name", "lr", "scale_parameter", "decay_rate", "weight_decay", "weight_decay_updates")
#: Each file, the preset or other file that it equals, and the fields in which it differs.
with (TESTS / "configs.csv").open(newline="") as _table:
    EQUALS = {row["file"]: (row["equals"], row["but for"]) for row in csv.DictReader(_table)}
#: Of those that are trained a step, files whose parts differ in kind; the others are, each night.
EACH_PUSH = ("table2/11_lsh_8k", "table7/21_pyramidion_8k_2k_512", "neighbours/look_back",
             "lecture/hat_pyramidion", "sparse/terraformer_pyramidion")  # fmt: skip


@cache
def recorded(name: str) -> tuple[dict[str, Any], list[int]]:
    """Return the fields of a preset or file, and the lengths of its texts."""
    kind, fields, lengths = json.loads(RECORDED[name])
    return {**json.loads(json.dumps(asdict(KINDS[kind]()))), **fields}, lengths


@cache
def composed(base: str = "base", *overrides: str) -> dict[str, Any]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.1"):
        return OmegaConf.to_container(compose(base, overrides=list(overrides)))  # type: ignore[return-value]


def test_the_base_model_is_the_default_config() -> None:
    model = dict(composed()["model"])
    assert model.pop("_name") == "pyramidion"
    assert model.pop("max_source_positions") == "${task.max_source_positions}"
    assert {**model, "max_source_positions": None} == asdict(PyramidionConfig())


def test_every_file_is_in_the_table_and_a_row_of_a_paper() -> None:
    assert set(EQUALS) == set(FILES) - {*PRETRAINED, *CORPORA}
    # Shapes of billions of parameters are only measured, and experts are pretrained alone.
    unlisted = {name for name in EQUALS if name.startswith(("sparse/800m", "sparse/17b"))} | {"sparse/experts"}
    characters = [row for row in CATALOGUE if not row.config and row.table.startswith("dynamic_pooling_")]
    published = {f"dynamic_pooling/{row.row.removesuffix(f'-{row.data}')}" for row in characters}
    assert {row.config for row in ROWS} | published == set(EQUALS) - unlisted
    # Of the presets of language models others have two.
    names = {f"hourglass_{Path(name).name}" for name in CHARACTERS} | {"hourglass_routing", "longformer_lm"}
    assert names >= set(LANGUAGE_MODEL_PRESETS)


def test_a_file_is_its_preset_but_for_what_differs() -> None:
    found = {}
    for name, (base, _) in EQUALS.items():
        (model, lengths), (other, others) = recorded(name), recorded(base)
        if name.startswith("lecture/") and "learned" in model["encoder_positions"]:
            assert model["encoder_positions"] == f"learned(length={lengths[0]})"
            other = {**other, "encoder_positions": model["encoder_positions"]}
        differs = {field for field, value in model.items() if other[field] != value} - {"max_source_positions"}
        found[name] = (base, differs)
        assert base not in EQUALS or name.endswith("_pretraining") or lengths == others, name
    assert found == {name: (base, set(changed.split())) for name, (base, changed) in EQUALS.items()}


def test_a_row_says_what_its_file_does() -> None:
    for row in (row for row in ROWS if not row.is_of_characters):
        model, lengths = recorded(row.config)
        consumed = [int(length) for stage in row.encoder_lengths.split(">") for length in stage.split(",")]
        if len(consumed) == 1:
            consumed *= row.encoder_layers
        handed_on = [*consumed[1:], row.decoder_length]
        # What grows was brought back to the first layer's length.
        grows = any(after > before for before, after in zip(consumed, handed_on, strict=True))
        assert not grows or model["upsampling"] or row.architecture == "funnel", row
        kept = [after if after < before else None for before, after in zip(consumed, handed_on, strict=True)]
        assert model["pooling_lengths"] == (",".join(map(str, kept)) if any(kept) else None), row
        layers = (model["encoder_layers"], model["decoder_layers"])
        assert (lengths[0], *layers) == (consumed[0], row.encoder_layers, row.decoder_layers), row
        if row in PAPER:
            # Both lsh and efficient have windows in place of blocks.
            blocks = re.findall(r"blockwise\(block_size=(\d+)\)", model["self_attention"])
            assert blocks == ([str(row.block_size)] if row.block_size else []), row
            assert row.architecture in EQUALS[row.config][0], row


@pytest.mark.parametrize("table", LECTURE_TABLES)
def test_systems_of_others_write_less_than_they_read(table: str) -> None:
    row = next(row for row in ROWS if row.table == table)
    found = read_experiment(str(CONFIGS / "base.yaml"), row.overrides)
    assert found.model.decoding_max_length < found.max_target_positions
    assert found.run["criterion"]["label_smoothing"] == 0.1


def test_rows_that_papers_do_not_have_report_nothing() -> None:
    ours = [row for row in ROWS if row.table in (*OWN_TABLES, *SPARSE_TABLES) or row.is_of_characters]
    assert ours and not any(row.paper for row in ours)
    assert {row.data for row in ours if row.table in OWN_TABLES} == {"arxiv"}
    # A system of others says what it starts from, or is one of five that say nothing.
    silent = {row.row for row in CATALOGUE if row.table in LECTURE_TABLES and row.paper and not row.pretrained}
    assert silent == {"tlm", "seal", "discourse_aware", "extr_abst_tlm", "dancer"}


def test_a_config_is_one_file_with_one_reference_in_whatever_table_it_stands() -> None:
    references = {(row.data, row.config): row.reference for row in PAPER}
    assert all(references[row.data, row.config] == row.reference for row in PAPER)
    configs = {(row.table, row.row): row.config for row in ROWS}
    twice = {("table7", "25"): "8", ("table8", "28"): "4", ("table8", "29"): "2", ("table8", "31"): "6"}
    assert all(configs[later] == configs["table2", first] for later, first in twice.items())


def test_the_readme_of_configs_lists_every_row_with_its_file_and_figures() -> None:
    text = (CONFIGS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| (\w+) \| (\S+) \| `(\S+).yaml` \| .* \| (\S+) / (\S+) \| (\S+) / (\S+) \|$", text, re.MULTILINE
    )
    figures = ("r1", "r2", "train_s", "infer512_s")
    assert listed == [
        (r.table, r.row, r.config, *(f"{r.paper[f]:g}" if f in r.paper else "–" for f in figures)) for r in PAPER
    ]


@cache
def said(path: Path) -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(path))  # type: ignore[return-value]


def own(path: Path) -> dict[str, Any]:
    """What a file says itself."""
    return {group: changes for group, changes in said(path).items() if group != "defaults"}


@cache
def underneath(path: Path) -> dict[str, Any]:
    """What holds before a file says anything: the base, and the file on which it builds."""
    base = composed("dynamic_pooling" if path.parent.name == "dynamic_pooling" else "base")
    parents = said(path).get("defaults", ["_self_"])[:-1]
    if not parents:
        return base
    found: Any = OmegaConf.create(base)
    for name in parents:
        parent = CONFIGS / f"{name[1:]}.yaml" if name.startswith("/") else path.parent / f"{name}.yaml"
        found = OmegaConf.merge(found, underneath(parent), own(parent))
    return OmegaConf.to_container(found)  # type: ignore[return-value]


def test_a_file_holds_only_differences() -> None:
    def repeated() -> Iterator[str]:
        for name in FILES:
            path = CONFIGS / f"{name}.yaml"
            lines = path.read_text().splitlines()
            if lines[0] != "# @package _global_" or (len(lines) > 20 and name not in PRETRAINED):
                yield name
            base = underneath(path)
            for group, changes in own(path).items():
                yield from (f"{name}: {group}.{at}" for at, value in changes.items() if base[group].get(at) == value)

    assert list(repeated()) == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scaled_configs(CONFIGS, tmp_path_factory.mktemp("tiny"), SCALES["tiny"])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in EACH_PUSH else pytest.mark.nightly)
        for name in EQUALS
        if not re.match("dynamic_pooling/|sparse/(800m|17b)|.*_pretraining", name)
    ],
)
def test_a_file_trains_a_step_at_the_tiny_scale(name: str, tiny: Path) -> None:
    small, (large, lengths) = read_experiment(str(tiny / f"{name}.yaml")), recorded(name)
    assert (small.max_source_positions * 16, small.model.embed_dim * 8) == (lengths[0], large["embed_dim"])
    torch.manual_seed(1)
    model = build(small.model, 50, marker_idx=4).train()
    tokens = torch.randint(4, 50, (2, small.max_source_positions))
    loss = torch.nn.functional.cross_entropy(model(tokens, tokens[:, :9]).flatten(0, 1), tokens[:, 1:10].flatten())
    loss.backward()
    assert loss.isfinite() and all(p.grad is not None for p in model.parameters())


def coders(layers: int, heads: int, units: int) -> dict[str, int]:
    sizes = {"layers": layers, "attention_heads": heads, "ffn_dim": units}
    return {f"{coder}_{name}": size for coder in ("encoder", "decoder") for name, size in sizes.items()}


PEGASUS = {"vocab_size": 96103, "activation_function": "relu", "scale_embedding": True, "num_global_tokens": 128}
LONGT5 = {
    **dict.fromkeys(("num_heads", "num_layers", "num_decoder_layers"), 12),
    "d_model": 768,
    "d_ff": 2048,
    "n_positions": 4096,
    "feed_forward_proj": "gated-gelu",
    "encoder_attention_type": "transient-global",
    "tie_word_embeddings": False,
    "decoder_start_token_id": 0,
}
#: What decoding starts from, and what the released models' config.json say that their family's defaults do not.
PUBLISHED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "facebook/bart-base": ("</s>", "bart", {"d_model": 768, **coders(6, 12, 3072)}),
    "allenai/led-base-16384": ("</s>", "led", {"d_model": 768, **coders(6, 12, 3072), "attention_window": 1024}),
    "google/pegasus-large": ("<pad>", "pegasus", {**PEGASUS, "d_model": 1024, **coders(16, 16, 4096)}),
    "google/pegasus-x-base": ("<pad>", "pegasus_x", {**PEGASUS, "d_model": 768, **coders(12, 12, 3072)}),
    "google/long-t5-tglobal-base": ("<pad>", "longt5", LONGT5),
}


@pytest.mark.parametrize("recipe", PRETRAINED)
def test_a_recipe_fits_the_model_that_it_names(recipe: str) -> None:
    path = CONFIGS / f"{recipe}.yaml"
    start, kind, changes = PUBLISHED[re.findall(r"^# Source: (\S+)$", path.read_text(), re.MULTILINE)[0]]
    settings = AutoConfig.for_model(kind, **changes).to_dict()
    shape = shape_of(Source(path, path.stem, None, settings, settings, {}, None))
    found = read_experiment(str(path))
    # Options of `pyramidions import`, by which scripts/reproduce/pretrained.sh makes what the recipe trains.
    (said,) = re.findall(r"^# Import: (.*)$", path.read_text(), re.MULTILINE)
    asked = {name.replace("-", "_"): value for name, value in re.findall(r"--([\w-]+) (\S+)", said)}
    lengths = [int(asked.pop(f"max_{side}_positions", 1024)) for side in ("source", "target")]
    assert lengths == [found.max_source_positions, found.max_target_positions]
    for name, length in zip(("encoder_positions", "decoder_positions"), lengths, strict=True):
        if "learned" in getattr(shape.config, name):
            asked[name] = f"learned(length={length})"
    imported = shape.config.replace(decoder_start=start, **asked)
    assert whole(imported) == whole(found.model)


def whole(config: PyramidionConfig) -> dict[str, Any]:
    """Return the fields that shape a model, parts with all their options."""
    parts = part_fields(PyramidionConfig)
    # Whether the output is tied is read from the weights.
    left_out = (*NO_SHAPE, "output")
    fields = {name: value for name, value in asdict(config).items() if not any(part in name for part in left_out)}
    return {
        name: parts_with_defaults(PyramidionConfig, name, value) if name in parts and value is not None else value
        for name, value in fields.items()
    }


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_corpus_goes_with_any_recipe(corpus: str) -> None:
    # Its schedule and lengths are its own; the shortest texts are those of LED and BART.
    for recipe in ("bart_base_4k_blockwise", "led_base_16k"):
        found = read_experiment(str(CONFIGS / "pretrained" / f"{recipe}.yaml"), (f"+{corpus.replace('/', '=')}",))
        assert found.model.decoding_max_length < found.max_target_positions
        run = found.run
        assert run["lr_scheduler"]["total_num_update"] == run["optimization"]["max_update"]
        assert run["lr_scheduler"]["warmup_updates"] < run["optimization"]["max_update"] / 5


@pytest.mark.parametrize("table", PRETRAINING_TABLES)
def test_pretraining_is_on_missing_spans_and_rows_of_a_figure_differ_in_the_model_alone(table: str) -> None:
    runs = []
    for row in (row for row in ROWS if row.table == table):
        found = read_experiment(str(CONFIGS / "base.yaml"), row.overrides)
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
        runs.append({**found.run, "model": None})
    assert table == PRETRAINING_TABLES[0] or (len(runs) > 2 and all(run == runs[0] for run in runs))
    tuned = [row for row in ROWS if row.table == "sparse_table5"]
    assert [row.starts_from for row in tuned] == [f"{row.config}_pretraining" for row in tuned]


def test_pieces_are_read_where_boundaries_learn_from_them_and_nowhere_else() -> None:
    for path in (CONFIGS / f"{name}.yaml" for name in CHARACTERS):
        task = underneath(path)["task"] | own(path).get("task", {})
        assert bool(task.get("piece_boundaries")) == ("unigram" in path.stem)


def trained(data: DataFolder, folder: Path, *words: str) -> Any:
    user_dir = run("pyramidions", "user-dir").stdout.strip()
    return run(
        *("fairseq-hydra-train", "--config-dir", CONFIGS, "--config-name", "base", *words, *SMALL),
        *(f"common.user_dir={user_dir}", f"task.data={data.path}", f"checkpoint.save_dir={folder / 'run'}"),
    )


def test_fairseq_trains_a_step_of_a_config_and_refuses_wrong_keys_and_values(data: DataFolder, tmp_path: Path) -> None:
    done = trained(data, tmp_path, "+table2=16_power_8k_2k_512")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "run" / "checkpoint_last.pt").exists()
    assert '"train_num_updates": "1"' in done.stdout
    assert not list(Path.cwd().glob("*.log"))
    for override, message in (
        ("model.embed_dims=3", "Key 'embed_dims' is not in struct"),
        ("model.self_attention=blockwse", "but is 'blockwse'"),
    ):
        done = trained(data, tmp_path / "wrong", override)
        assert done.returncode != 0 and message in done.stdout
