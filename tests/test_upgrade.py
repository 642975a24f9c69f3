"""Models of 0.1.0 and 0.2.0 are refused with the command that rewrites them; then they compute what they did.

tests/v0_1_0 and tests/v0_2_0 hold what these releases made, by tests/v0_1_0/make.py of commit eec1c4ca: a data folder;
checkpoints after 5 updates, NAME.pt.xz, with Adam's state, and two exports of them, NAME.export; and in NAME.json what
the models computed (see recorded_outputs.py), the losses of the next 3 updates, and the outputs after them. They are
never made anew.
"""

import importlib.util
import json
import lzma
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import small_language_models
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.data import Dictionary
from fairseq_commands import TASK, run
from golden_models import outputs as golden_outputs
from omegaconf import OmegaConf
from recorded_outputs import PREFIX, documents, outputs
from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.inference import load_model
from pyramidions.models import ExtractorConfig, LanguageModelConfig, PyramidionConfig, build_extractor, preset
from pyramidions.models.formats import FORMAT
from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig
from pyramidions.plugin.tasks.start import Start
from pyramidions.pretrained.saved_model import load_language_model
from pyramidions.text.tokenizer import PAD

TESTS = Path(__file__).parent
DATA = TESTS / "v0_1_0" / "data"
UPDATES = 5
OF_0_1_0 = ("vanilla", "pyramidion", "funnel", "power", "lsh", "deep_pyramidion")
MODELS = (*OF_0_1_0, "terraformer")
EXPORTED = ("pyramidion", "funnel")
COMMAND = r"was written by pyramidions .*: `python scripts/upgrade\.py OLD NEW` rewrites it\.$"


def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("upgrade", TESTS.parent / "scripts" / "upgrade.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


upgrade = program()


def folder_of(name: str) -> Path:
    return TESTS / ("v0_2_0" if name == "terraformer" else "v0_1_0")


def recorded(name: str) -> Any:
    return json.loads((folder_of(name) / f"{name}.json").read_text())


def unpacked(name: str, folder: Path) -> Path:
    path = folder / f"{name}.pt"
    path.write_bytes(lzma.decompress((folder_of(name) / f"{name}.pt.xz").read_bytes()))
    return path


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every checkpoint, in a folder of its own as `fairseq-train` leaves it, and every export."""
    old, new = tmp_path_factory.mktemp("old"), tmp_path_factory.mktemp("new")
    for name in MODELS:
        (new / name).mkdir()
        upgrade.main([str(unpacked(name, old)), str(new / name / "checkpoint_last.pt")])
    for name in EXPORTED:
        upgrade.main([str(folder_of(name) / f"{name}.export"), str(new / f"{name}.export")])
    return {path.name: path for path in new.iterdir()}


def assert_same(found: dict[str, Any], expected: dict[str, Any], atol: float = 1e-5) -> None:
    assert found["padding_mask"] == expected["padding_mask"]
    for name in ("memory", "logits"):
        torch.testing.assert_close(torch.tensor(found[name]), torch.tensor(expected[name]), rtol=0, atol=atol)
    for ours, theirs in zip(found["hypotheses"], expected["hypotheses"], strict=True):
        assert [tokens for tokens, _ in ours] == [tokens for tokens, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=atol)


@pytest.mark.parametrize("name", [*MODELS, *(f"{name}.export" for name in EXPORTED)])
def test_an_upgraded_model_computes_what_it_did(name: str, upgraded: dict[str, Path]) -> None:
    assert_same(outputs(load_model(upgraded[name]).transformer), recorded(name.removesuffix(".export")))


@pytest.mark.parametrize("name", ["funnel", "lsh"])
def test_every_weight_counts(name: str, upgraded: dict[str, Path]) -> None:
    """Else a file with two names mixed up could pass the test above."""
    transformer = load_model(upgraded[name]).transformer
    expected = recorded(name)
    for key, weight in transformer.named_parameters():
        kept = weight.detach().clone()
        # A bias of all keys alike leaves every attention weight as it is.
        if "k_proj.bias" not in key:
            weight.data += torch.linspace(0.01, 0.1, weight.numel()).view_as(weight)
            with pytest.raises(AssertionError):
                assert_same(outputs(transformer), expected)
        weight.data = kept


def training(save_dir: Path, flags: list[str]) -> list[object]:
    """Return the `fairseq-train` command that goes on with a model; without dropout its losses are fixed."""
    return [
        *("fairseq-train", DATA, *TASK, *flags, "--save-dir", save_dir, "--max-update", UPDATES + 3),
        *("--max-source-positions", 32, "--max-target-positions", 12, "--batch-size", 4, "--num-workers", 0),
        *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", 0.01, "--lr-scheduler", "fixed"),
        *("--clip-norm", 1, "--seed", 1, "--disable-validation", "--no-epoch-checkpoints"),
        *("--log-format", "json", "--log-interval", 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["funnel", "terraformer"])
def test_training_goes_on_as_it_did(name: str, upgraded: dict[str, Path], tmp_path: Path) -> None:
    """The outputs after three more updates tell whether each weight met Adam's moments of its own."""
    (tmp_path / "checkpoint_last.pt").write_bytes((upgraded[name] / "checkpoint_last.pt").read_bytes())
    done = run(*training(tmp_path, upgrade.flags_of(load_model(tmp_path).config)))
    assert done.returncode == 0 and "Loaded checkpoint" in done.stdout, done.stdout
    lines = [json.loads(line) for line in re.findall(r"train_inner \| (\{.*\})$", done.stdout, re.MULTILINE)]
    found = {line["num_updates"]: [float(line["loss"]), float(line["gnorm"])] for line in lines}
    expected = recorded(name)["resumed"]
    assert found.keys() == expected["losses"].keys() == {"6", "7", "8"}
    for update, numbers in expected["losses"].items():
        assert found[update] == pytest.approx([float(number) for number in numbers], abs=2e-3), update
    assert_same(outputs(load_model(tmp_path).transformer), expected["outputs"], atol=1e-4)


@pytest.mark.parametrize("name", ["lsh", "terraformer"])
def test_an_old_checkpoint_or_export_is_refused_at_every_door(name: str, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    for old in (path, TESTS / "v0_1_0" / "funnel.export"):
        with pytest.raises(UserError, match=COMMAND):
            load_model(old)
    with pytest.raises(UserError, match=COMMAND):
        load_model_ensemble_and_task([str(path)], {"data": str(DATA)})
    nothing = {"save_dir": "made", "restore_file": "checkpoint_last.pt", "finetune_from_model": None}
    for flags in ({"restore_file": str(path)}, {"finetune_from_model": str(path)}):
        checkpoint = {**nothing, "no_save": False, "reset_optimizer": False, **flags}
        with pytest.raises(UserError, match=COMMAND):
            Start(OmegaConf.create({"checkpoint": checkpoint, "task": {}}))


CHANGED = json.loads(lzma.decompress((TESTS / "golden" / "changed_after_0_2_0.json.xz").read_bytes()))


#: of them, one for each way in which parts changed; the others are nightly
EACH_WAY = (
    "efficient",
    "extractor",
    "lsh",
    "lsh_hepos",
    "reformer",
    "sparse/terraformer_pretraining",
    "toy_terraformer",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EACH_WAY else pytest.mark.nightly) for name in CHANGED]
)
def test_an_upgraded_config_of_0_2_0_computes_what_it_did(name: str) -> None:
    """Where parts have changed since."""
    kind = {kind.__name__: kind for kind in (PyramidionConfig, ExtractorConfig)}[CHANGED[name]["kind"]]
    config = upgrade.upgraded_config(kind, CHANGED[name]["fields"], 2)
    logits = torch.tensor(golden_outputs(config, CHANGED[name]["lengths"]))
    torch.testing.assert_close(logits, torch.tensor(CHANGED[name]["logits"]), rtol=1e-5, atol=1e-5)


def test_weights_of_fairseqs_transformer_compute_what_they_did(tmp_path: Path) -> None:
    words = Dictionary.load(str(DATA / "dict.txt"))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words, max_positions=lambda: (32, 12))
    sizes = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "decoder_positions": "sinusoidal"}
    config = PyramidionModelConfig(**vars(preset("vanilla", **sizes, max_source_positions=32)))
    model = PyramidionModel.build_model(OmegaConf.structured(config), task).eval()
    model.load_state_dict(torch.load(unpacked("fairseq_transformer", tmp_path))["model"])
    tokens = documents()
    with torch.no_grad():
        logits, _ = model(tokens, tokens.ne(1).sum(1), torch.tensor([PREFIX] * len(tokens)))
    torch.testing.assert_close(logits, torch.tensor(recorded("fairseq_transformer")["logits"]), rtol=0, atol=1e-5)


MEMORIES = {"memories": "1,last"}


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({"self_attention": "full, bucketed", "self_attention_args": "{}"}, "self_attention", "full | bucketed"),
        (
            {"self_attention": "blockwise", "self_attention_args": '[{"block_size": 8}, {"block_size": 4}]'},
            "self_attention",
            "blockwise(block_size=8) | blockwise(block_size=4)",
        ),
        # Of a field that is not given, options are those of its default.
        ({"pooling_args": '{"base": 2.5, "sort": true}'}, "pooling", "soft_topk(base=2.5, sort=True)"),
        ({"recurrence": "none,sru", "recurrence_args": '{"dim": 3}'}, "recurrence", "none | sru(scaled=False, dim=3)"),
        (
            {**MEMORIES, "cross_attention": "hepos", "cross_attention_args": '[{"stride": 1}, [{}, {}]]'},
            "cross_attention",
            "hepos(stride=1); hepos | hepos",
        ),
        ({"upsampling_args": "{}"}, "upsampling", None),
        # Who changed such a config by hand wrote today's language.
        ({"scorer": "index(seed=2)", "scorer_args": '{"seed": 1}'}, "scorer", "index(seed=2)"),
        # What parts meant.
        ({"self_attention": "lsh | full"}, "self_attention", "lsh(is_flat=True, chunk_buckets=1) | full"),
        ({"self_attention": "lsh(is_flat=False, chunk_buckets=2)"}, "self_attention", None),
        (
            {"decoder_self_attention": "lsh(num_buckets=None) | lsh(num_buckets=8)"},
            "decoder_self_attention",
            "lsh(is_flat=True, chunk_buckets=1, num_buckets=16) | lsh(is_flat=True, chunk_buckets=1, num_buckets=8)",
        ),
        ({"self_attention": "full | efficient(window=3)"}, "self_attention", "full | efficient(local_window=6)"),
        (
            {"self_attention": "lsh(window=3, is_flat=True, chunk_buckets=1)"},
            "self_attention",
            "lsh(is_flat=True, chunk_buckets=1, local_window=6)",
        ),
        # Refused by whoever builds the model.
        ({"self_attention": "efficient(window=3, local_window=6)"}, "self_attention", None),
    ],
)  # fmt: skip
def test_each_rule(fields: dict[str, Any], name: str, expected: str | None) -> None:
    """None: as it was."""
    assert getattr(upgrade.upgraded_config(PyramidionConfig, fields, 2), name) == (expected or fields.get(name))


def test_options_of_0_3_mean_what_they_do() -> None:
    fields = {"self_attention": "full,lsh", "self_attention_args": '[{}, {"num_hashes": 2}]', "recurrence": "sru"}
    config = upgrade.upgraded_config(PyramidionConfig, fields, 3)
    assert (config.self_attention, config.recurrence) == ("full | lsh(num_hashes=2)", "sru")
    three = {"self_attention": "full,full,full", "self_attention_args": "[{}, {}]"}
    for wrong in ({"self_attention_args": "{"}, {"pooling_args": "[8]"}, three, {"boundaries_args": "{}"}):
        with pytest.raises(UserError, match="_args"):
            upgrade.upgraded_config(PyramidionConfig, wrong, 3)


def test_a_kind_of_a_language_model_of_0_2_0_has_the_options_of_the_default_and_16_buckets() -> None:
    saved = {"feed_forward": "dense", "output": "untied", "self_attention": "lsh"}
    config = upgrade.upgraded_config(LanguageModelConfig, saved, 2)
    assert (config.feed_forward, config.output) == ("dense(activation='gelu')", "untied(bias=True)")
    assert config.self_attention == "lsh(is_flat=True, chunk_buckets=1, num_buckets=16)"
    config = upgrade.upgraded_config(LanguageModelConfig, {**saved, "feed_forward_args": "{}", "output": "tied()"}, 2)
    assert (config.feed_forward, config.output) == ("dense", "tied")


def test_a_language_model_of_0_2_0_reads_what_it_read(tmp_path: Path) -> None:
    path = small_language_models.saved(tmp_path, "hashing", self_attention="lsh(is_flat=True, num_buckets=16)")
    network = load_language_model(path).network
    state = torch.load(path, weights_only=True)
    del state["cfg"]["model"]["config_format"]
    state["cfg"]["model"] |= {"self_attention": "lsh", "feed_forward": "dense", "feed_forward_args": None}
    torch.save(state, path)
    upgrade.main([str(path), str(tmp_path / "new.pt")])
    found = load_language_model(tmp_path / "new.pt")
    assert (found.alphabet.name, found.window) == ("en", 64)
    tokens = small_language_models.texts(20)
    torch.manual_seed(3)
    expected = network(tokens)[0]
    torch.manual_seed(3)
    torch.testing.assert_close(found.network(tokens)[0], expected)


def test_an_extractor_of_0_2_0_keeps_its_optimizer_and_frozen_parts(tmp_path: Path) -> None:
    config = ExtractorConfig(embed_dim=8, ffn_embed_dim=8, num_heads=2, encoder_layers=1, max_source_positions=64)
    model = build_extractor(config, 10, 4, PAD)
    weights = {f"core.{name}": weight for name, weight in model.state_dict().items()}
    fields = {**asdict(config), "self_attention_args": "{}"}
    entries = {i: {"mean": weight} for i, weight in enumerate(model.output.parameters())}
    state = {
        "cfg": {"model": {"_name": "extractor", "lr": 3, **fields}, "task": {"freeze": "embeddings,encoder"}},
        "model": {**weights, "vocabulary": torch.tensor(7)},
        "last_optimizer_state": {"state": entries, "param_groups": [{"params": [*entries]}]},
    }
    new, _ = upgrade.upgraded_checkpoint(state, tmp_path)
    assert new["cfg"]["model"] == {"_name": "extractor", "lr": 3, **asdict(config), "config_format": FORMAT}
    assert list(new["model"]) == list(state["model"])
    assert new["last_optimizer_state"]["state"] == entries


class Norms(nn.Module):
    """Three weights, one of them shared, in today's order."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Parameter(torch.zeros(size)) for size in (1, 2, 3, 4))
        self.also_b = self.b


def reordered(state: dict[int, Any], entries: int, learn_all: bool = True) -> dict[int, Any]:
    """Return an optimizer's state of a release whose order was c, b, a, d, in today's order."""
    network = Norms()
    network.d.requires_grad_(learn_all)
    known = {"state": state, "param_groups": [{"params": [*range(entries)]}]}
    weights = {"c": 3, "b": 2, "also_b": 2, "version": 1, "a": 1, "d": 4}
    new = upgrade.in_todays_order({"model": weights, "last_optimizer_state": known}, network, str, None)
    assert list(new["model"]) == ["a", "b", "c", "d", "also_b", "version"]
    return new["last_optimizer_state"]["state"]


def test_what_an_optimizer_knows_of_a_weight_moves_with_it_and_the_rest_stays() -> None:
    # c had no gradient so far.
    assert reordered({1: "b", 2: "a", 3: "d", 4: "criterion"}, 5) == {0: "a", 1: "b", 3: "d", 4: "criterion"}
    # A frozen weight counts nowhere.
    assert reordered({0: "c", 1: "b", 2: "a"}, 3, learn_all=False) == {0: "a", 1: "b", 2: "c"}
    flat = torch.tensor([3, 3, 3, 2, 2, 1, 4, 4, 4, 4, 9])
    (moved,) = reordered({0: {"step": 5, "mean": flat}}, 1).values()
    assert moved["step"] == 5 and moved["mean"].tolist() == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 9]


def test_options_of_a_development_version_are_upgraded_and_files_of_today_are_current(
    upgraded: dict[str, Path], tmp_path: Path
) -> None:
    state = torch.load(upgraded["vanilla"] / "checkpoint_last.pt", weights_only=True)
    state["cfg"]["model"] |= {"feed_forward_args": '{"chunk_size": 5}'}
    torch.save(state, tmp_path / "old.pt")
    with pytest.raises(UserError, match=COMMAND):
        load_model(tmp_path / "old.pt")
    upgrade.main([str(tmp_path / "old.pt"), str(tmp_path / "new.pt")])
    assert load_model(tmp_path / "new.pt").config.feed_forward == "dense(chunk_size=5)"
    for current in (tmp_path / "new.pt", upgraded["funnel.export"]):
        assert "is current already" in refusal(current, tmp_path / "again")


def refusal(old: Path, new: Path) -> str:
    with pytest.raises(SystemExit) as stopped:
        upgrade.main([str(old), str(new)])
    assert not (new.is_file() or (new.name == "again" and new.exists()))
    return str(stopped.value)


def test_what_cannot_be_upgraded_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    damaged = Path(shutil.copytree(TESTS / "v0_1_0" / "funnel.export", tmp_path / "damaged"))
    (damaged / "config.json").write_text("{")
    old, new, of_fairseq = (unpacked(name, tmp_path) for name in ("vanilla", "power", "fairseq_transformer"))
    again = tmp_path / "again"
    assert "no.pt does not exist" in refusal(tmp_path / "no.pt", again)
    assert "NEW must not exist yet" in refusal(old, tmp_path / "empty")
    assert "NEW must be in a folder that exists" in refusal(old, tmp_path / "no" / "new.pt")
    assert "holds no config.json" in refusal(tmp_path / "empty", again)
    assert "config.json is damaged" in refusal(damaged, again)
    assert "must be a checkpoint of a model of pyramidions" in refusal(of_fairseq, again)
    new.write_bytes(b"no checkpoint")
    assert "is damaged or no checkpoint" in refusal(new, again)
