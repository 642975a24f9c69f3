"""Every file of configs/ composes, is what the paper's row says, builds small and trains a step."""

import re
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq_commands import run
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from tables import for_each

from lab.catalogue import OWN_TABLES, PaperRow, read_catalogue
from lab.scale import SCALES, scaled_configs
from pyramidions.base.errors import UserError
from pyramidions.conversion.importing import check_kept
from pyramidions.data.folder import DataFolder
from pyramidions.models import PyramidionConfig, build, preset
from pyramidions.models.experiment import read_experiment
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationConfig
from pyramidions.pretrained.families import shape_of
from pyramidions.pretrained.source import Source

CONFIGS = Path(__file__).parent.parent / "configs"
#: Those that go with base.yaml: language models have a base of their own.
FILES = sorted(
    f"{path.parent.name}={path.stem}" for path in CONFIGS.glob("*/*.yaml") if path.parent.name != "dynamic_pooling"
)
PRETRAINED, CORPORA, LECTURE, SPARSE, NEIGHBOURS, POINTING = (
    [name for name in FILES if name.startswith(f"{group}=")]
    for group in ("pretrained", "corpus", "lecture", "sparse", "neighbours", "pointing")
)
ROWS = [name for name in FILES if name not in (*PRETRAINED, *CORPORA, *LECTURE, *SPARSE, *NEIGHBOURS, *POINTING)]
CATALOGUE = [
    row
    for row in read_catalogue(CONFIGS)
    if not row.table.startswith(("lecture_", "sparse_", "dynamic_pooling_", *OWN_TABLES))
]
#: Models of base size, in their training on summaries.
TRAINED = [name for name in SPARSE if name[7].isalpha() and not name.endswith("_pretraining")]
SMALL = [
    *("model.embed_dim=16", "model.ffn_embed_dim=32", "model.num_heads=2", "common.cpu=true"),
    *("task.max_source_positions=64", "task.max_target_positions=80", "dataset.batch_size=4"),
    *("optimization.max_update=1", "optimization.update_freq=[1]", "dataset.disable_validation=true"),
    "task.stopping_patience=0",
]
TABLE_4 = {"nonlinear", "random", "index", "embedding", "attention", "mean", "max"}


def pooling_lengths(row: PaperRow) -> str | None:
    """What each encoder layer hands on, from the lengths that the paper's table lists."""
    consumed = [int(length) for stage in row.encoder_lengths.split(">") for length in stage.split(",")]
    if len(consumed) == 1:
        consumed *= row.encoder_layers
    # Funnel's decoder reads what was brought back to the first layer's length.
    read = consumed[-1] if row.architecture == "funnel" else row.decoder_length
    handed_on = [*consumed[1:], read]
    kept = [None if after == before else after for before, after in zip(consumed, handed_on, strict=True)]
    return ",".join(map(str, kept)) if any(kept) else None


def expected(row: PaperRow) -> PyramidionConfig:
    """The model of a row of the paper, from what its table says and the preset of its architecture."""
    name = f"transpooler_{row.row}" if row.row in TABLE_4 else row.architecture
    if row.table == "table3":
        name = f"deep_{row.architecture}"
    model = preset(
        name,
        encoder_layers=row.encoder_layers,
        decoder_layers=row.decoder_layers,
        pooling_lengths=pooling_lengths(row),
    )
    if row.architecture not in ("lsh", "efficient"):
        model.self_attention = f"blockwise(block_size={row.block_size})" if row.block_size else "full"
    return model


def composed(*overrides: str) -> dict[str, object]:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONFIGS), version_base="1.1"):
        return OmegaConf.to_container(compose("base", overrides=list(overrides)))  # type: ignore[return-value]


def test_the_base_model_is_the_default_config() -> None:
    model = composed()["model"]
    assert isinstance(model, dict)
    assert model.pop("_name") == "pyramidion"
    assert model.pop("max_source_positions") == "${task.max_source_positions}"
    assert {**model, "max_source_positions": None} == asdict(PyramidionConfig())


def comments(part: str) -> dict[str, str]:
    """What base.yaml says of each field of a part: the comment above it, or behind it."""
    (block,) = re.findall(rf"^{part}:\n((?:  .*\n)+)", (CONFIGS / "base.yaml").read_text(), re.MULTILINE)
    found, above = {}, []
    for line in block.splitlines():
        if line.startswith("  #"):
            above.append(line.removeprefix("  # "))
        else:
            field, _, behind = line.strip().partition("  # ")
            found[field.partition(":")[0]] = " ".join([*above, *([behind] if behind else [])])
            above = []
    return found


@pytest.mark.parametrize(("part", "config"), [("model", PyramidionConfig), ("task", LongDocumentSummarizationConfig)])
def test_the_comments_of_the_base_are_the_help_of_the_fields_without_the_kinds_of_parts(
    part: str, config: type
) -> None:
    helps = {
        field.name: field.metadata.get("text", field.metadata["help"])
        for field in fields(config)
        if not field.name.startswith("_")
    }
    assert comments(part) == {"_name": "", **helps}


def test_every_file_is_a_row_of_the_paper_and_every_row_has_a_file() -> None:
    assert {row.config.replace("/", "=") for row in CATALOGUE} == set(ROWS)


@for_each("row", CATALOGUE)
def test_a_row_is_what_the_table_of_the_paper_says(row: PaperRow) -> None:
    found = read_experiment(str(CONFIGS / f"{row.config}.yaml"))
    model, wanted = asdict(found.model), asdict(expected(row))
    # These two say in the file what the preset leaves to the defaults.
    if row.architecture in ("lsh", "efficient"):
        model["self_attention"] = model["self_attention"].partition("(")[0]
    model.pop("max_source_positions"), wanted.pop("max_source_positions")
    assert model == wanted
    assert found.max_source_positions == int(row.encoder_lengths.replace(">", ",").split(",")[0])


@for_each(
    ("name", "other", "changed"),
    [
        ("neighbours/hepos", "table2/05_blockwise_8k", {"cross_attention"}),
        ("neighbours/window", "table2/05_blockwise_8k", {"self_attention"}),
        ("neighbours/lsh_window", "table2/05_blockwise_8k", {"self_attention"}),
        ("neighbours/sinkhorn_window", "table2/05_blockwise_8k", {"self_attention"}),
        ("neighbours/look_back", "table7/21_pyramidion_8k_2k_512", {"memories", "cross_attention"}),
        ("pointing/blockwise_pointer", "table2/05_blockwise_8k", {"output"}),
        ("pointing/transpooler_pointer", "table2/08_transpooler_8k_2k", {"output"}),
        ("pointing/pyramidion_pointer", "table7/21_pyramidion_8k_2k_512", {"output"}),
        ("pointing/pyramidion_mean", "table7/21_pyramidion_8k_2k_512", {"pooling"}),
        ("pointing/pyramidion_random", "table7/21_pyramidion_8k_2k_512", {"scorer"}),
        ("pointing/pooled_blockwise", "table2/05_blockwise_8k", {"self_attention"}),
        ("pointing/pooled_blockwise_pointer", "pointing/pooled_blockwise", {"output"}),
        ("pointing/top_down_pointer", "pointing/top_down", {"output"}),
    ],
)
def test_a_row_of_ours_differs_from_another_in_one_part(name: str, other: str, changed: set[str]) -> None:
    found, row = (read_experiment(str(CONFIGS / f"{path}.yaml")) for path in (name, other))
    fields = asdict(row.model)
    assert {field for field, value in asdict(found.model).items() if value != fields[field]} == changed
    assert found.max_source_positions == row.max_source_positions
    listed, *_ = (line for line in read_catalogue(CONFIGS) if line.config == name)
    table = other.partition("/")[0]
    (compared,) = (line for line in read_catalogue(CONFIGS) if (line.table, line.config) == (table, other))
    lengths = ("encoder_lengths", "decoder_length", "encoder_layers", "decoder_layers", "data")
    assert all(getattr(listed, each) == getattr(compared, each) for each in lengths)
    assert not listed.paper


def test_a_config_has_one_reference_in_whatever_table_it_stands() -> None:
    references = {(row.data, row.config): row.reference for row in CATALOGUE}
    assert all(references[row.data, row.config] == row.reference for row in CATALOGUE)


def test_the_readme_of_configs_lists_every_row_with_its_file_and_figures() -> None:
    text = (CONFIGS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| (\w+) \| (\S+) \| `(\S+).yaml` \| .* \| (\S+) / (\S+) \| (\S+) / (\S+) \|$", text, re.MULTILINE
    )
    figures = ("r1", "r2", "train_s", "infer512_s")
    assert listed == [
        (r.table, r.row, r.config, *(f"{r.paper[f]:g}" if f in r.paper else "–" for f in figures)) for r in CATALOGUE
    ]


def test_lsh_has_buckets_of_64_four_hashes_and_two_local_heads() -> None:
    found = read_experiment(str(CONFIGS / "table2" / "11_lsh_8k.yaml")).model.self_attention
    assert found == "lsh(bucket_size=64, num_hashes=4, local_heads=2, local_window=256)"


def test_rows_that_the_paper_lists_twice_point_to_one_file() -> None:
    configs = {(row.table, row.row): row.config for row in CATALOGUE}
    for later, first in (
        (("table7", "25"), "8"),
        (("table8", "28"), "4"),
        (("table8", "29"), "2"),
        (("table8", "31"), "6"),
    ):
        assert configs[later] == configs["table2", first]


@for_each(("config", "millions"), [("base", 31.5), ("table3/blockwise", 124.4), ("table3/deep_pyramidion", 124.4)])
def test_models_have_as_many_parameters_as_the_paper_says(config: str, millions: float) -> None:
    with torch.device("meta"):
        model = build(read_experiment(str(CONFIGS / f"{config}.yaml")).model, 32768)
    # 32 and 124 million in tables 5 and 6
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)


def own(path: Path) -> dict[str, Any]:
    """What a file says itself."""
    said = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(said, dict)
    return {str(group): changes for group, changes in said.items() if group != "defaults"}


def underneath(path: Path) -> dict[str, Any]:
    """What holds before a file says anything: the base, and the file on which it builds."""
    found: Any = OmegaConf.create(composed())
    for name in OmegaConf.load(path).get("defaults", ["_self_"])[:-1]:
        parent = CONFIGS / f"{name[1:]}.yaml" if name.startswith("/") else path.parent / f"{name}.yaml"
        found = OmegaConf.merge(found, underneath(parent), own(parent))
    return OmegaConf.to_container(found)  # type: ignore[return-value]


@for_each("row", FILES)
def test_a_row_holds_only_differences(row: str) -> None:
    path = CONFIGS / f"{row.replace('=', '/')}.yaml"
    lines = path.read_text().splitlines()
    assert lines[0] == "# @package _global_" and (row in PRETRAINED or len(lines) <= 20)
    changed, base = own(path), underneath(path)
    for group, changes in changed.items():
        for name, value in changes.items():
            assert base[group].get(name) != value, f"{group}.{name} is what the base says"  # type: ignore[attr-defined, index]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scaled_configs(CONFIGS, tmp_path_factory.mktemp("tiny"), SCALES["tiny"])


@for_each("row", [*ROWS, *LECTURE, *TRAINED, *NEIGHBOURS, *POINTING])
def test_a_row_trains_a_step_at_the_tiny_scale(row: str, tiny: Path) -> None:
    small = read_experiment(str(tiny / f"{row.replace('=', '/')}.yaml"))
    large = read_experiment(str(CONFIGS / f"{row.replace('=', '/')}.yaml"))
    assert small.max_source_positions * 16 == large.max_source_positions
    assert small.model.embed_dim * 8 == large.model.embed_dim
    torch.manual_seed(1)
    model = build(small.model, 50, marker_idx=4).train()
    tokens = torch.randint(4, 50, (2, small.max_source_positions))
    loss = torch.nn.functional.cross_entropy(model(tokens, tokens[:, :9]).flatten(0, 1), tokens[:, 1:10].flatten())
    loss.backward()
    assert loss.isfinite() and all(p.grad is not None for p in model.parameters())


# What the released models' config.json say of their shape.
BART_BASE = {
    "vocab_size": 50265,
    "d_model": 768,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 12,
    "decoder_attention_heads": 12,
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
    "activation_function": "gelu",
    "scale_embedding": False,
    "max_position_embeddings": 1024,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
LED_BASE = {"attention_window": 1024, "max_encoder_position_embeddings": 16384, "max_decoder_position_embeddings": 1024}
PEGASUS_LARGE = {
    "vocab_size": 96103,
    "d_model": 1024,
    "encoder_layers": 16,
    "decoder_layers": 16,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "activation_function": "relu",
    "scale_embedding": True,
    "max_position_embeddings": 1024,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
PEGASUS_X_BASE = {
    **PEGASUS_LARGE,
    "d_model": 768,
    **{f"{coder}_{name}": n for coder in ("encoder", "decoder") for name, n in (("layers", 12), ("ffn_dim", 3072))},
    **{f"{coder}_attention_heads": 12 for coder in ("encoder", "decoder")},
    "max_position_embeddings": 16384,
    "num_global_tokens": 128,
    "block_size": 512,
    "stagger_local_blocks": True,
}
LONGT5_BASE = {
    "is_encoder_decoder": True,
    "d_model": 768,
    "d_kv": 64,
    "d_ff": 2048,
    "num_heads": 12,
    "num_layers": 12,
    "num_decoder_layers": 12,
    "feed_forward_proj": "gated-gelu",
    "encoder_attention_type": "transient-global",
    "local_radius": 127,
    "global_block_size": 16,
    "n_positions": 4096,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
PUBLISHED = {
    "facebook/bart-base": ("</s>", {**BART_BASE, "model_type": "bart"}),
    "allenai/led-base-16384": ("</s>", {**BART_BASE, **LED_BASE, "model_type": "led"}),
    "google/pegasus-large": ("<s>", {**PEGASUS_LARGE, "model_type": "pegasus"}),
    "google/pegasus-x-base": ("<s>", {**PEGASUS_X_BASE, "model_type": "pegasus_x"}),
    "google/long-t5-tglobal-base": ("<s>", {**LONGT5_BASE, "model_type": "longt5"}),
}


@for_each("recipe", PRETRAINED)
def test_a_recipe_fits_the_model_that_it_names(recipe: str) -> None:
    path = CONFIGS / f"{recipe.replace('=', '/')}.yaml"
    start, settings = PUBLISHED[re.findall(r"^# Source: (\S+)$", path.read_text(), re.MULTILINE)[0]]
    shape = shape_of(Source(path, path.stem, None, settings, settings, {}, None))
    own = replace(shape.config, decoder_start=start)
    found = read_experiment(str(path))
    # It would say what does not fit.
    check_kept(found.model, found.model, own)
    with pytest.raises(UserError, match="^`num_heads` must be 1[26], as in the pretrained model, but is 8.$"):
        check_kept(replace(found.model, num_heads=8), found.model, own)
    if "learned" in found.model.encoder_positions:
        assert found.model.encoder_positions == f"learned(length={found.max_source_positions})"
    # Of the newer ones no table of positions ends.
    assert found.max_target_positions == min(shape.max_target_positions, 1024)


@for_each("corpus", CORPORA)
def test_a_corpus_goes_with_any_recipe(corpus: str) -> None:
    for recipe in PRETRAINED:
        found = read_experiment(str(CONFIGS / f"{recipe.replace('=', '/')}.yaml"), (f"+{corpus}",))
        assert found.model.decoding_max_length < found.max_target_positions
        run = found.run
        assert run["lr_scheduler"]["total_num_update"] == run["optimization"]["max_update"]
        assert run["lr_scheduler"]["warmup_updates"] < run["optimization"]["max_update"] / 5


@pytest.mark.parametrize("row", [None, "table2=16_power_8k_2k_512", "table3=deep_pyramidion"])
def test_fairseq_trains_a_step_of_a_config(row: str | None, data: DataFolder, tmp_path: Path) -> None:
    user_dir = run("pyramidions", "user-dir").stdout.strip()
    done = run(
        *("fairseq-hydra-train", "--config-dir", CONFIGS, "--config-name", "base", *([f"+{row}"] if row else [])),
        *(f"common.user_dir={user_dir}", f"task.data={data.path}", f"checkpoint.save_dir={tmp_path / 'run'}", *SMALL),
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "run" / "checkpoint_last.pt").exists()
    assert '"train_num_updates": "1"' in done.stdout
    assert not list(Path.cwd().glob("*.log"))


def test_a_wrong_key_or_value_is_an_error(data: DataFolder, tmp_path: Path) -> None:
    user_dir = run("pyramidions", "user-dir").stdout.strip()
    common = [
        *("fairseq-hydra-train", "--config-dir", CONFIGS, "--config-name", "base", f"common.user_dir={user_dir}"),
        *(f"task.data={data.path}", f"checkpoint.save_dir={tmp_path / 'run'}", *SMALL),
    ]
    for override, message in (
        ("model.embed_dims=3", "Key 'embed_dims' is not in struct"),
        ("model.self_attention=blockwse", "but is 'blockwse'"),
    ):
        done = run(*common, override)
        assert done.returncode != 0 and message in done.stdout
