"""Options in fields of their own, as 0.1 and 0.2 had them, at every door by which they come."""

import logging
from argparse import ArgumentParser
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, build_model
from omegaconf import OmegaConf
from tables import for_each

import pyramidions.plugin  # noqa: F401  (registers with fairseq)
from pyramidions.base.errors import UserError
from pyramidions.models import ExtractorConfig, LanguageModelConfig, PyramidionConfig, preset
from pyramidions.models.config import config_as
from pyramidions.models.experiment import read_experiment
from pyramidions.models.older_releases import config_as_written
from pyramidions.models.same_parts import changed_part
from pyramidions.plugin.models.architectures import config_from
from pyramidions.plugin.tasks.start import Start

config_of = partial(config_as, PyramidionConfig)


@for_each(
    ("fields", "name", "expected"),
    [
        ({"self_attention": "full", "self_attention_args": "{}"}, "self_attention", "full"),
        ({"self_attention": "full"}, "self_attention", "full"),
        ({"self_attention": "full,lsh"}, "self_attention", "full | lsh"),
        ({"self_attention": "full, lsh", "self_attention_args": "{}"}, "self_attention", "full | lsh"),
        (
            {"self_attention": "lsh", "self_attention_args": '[{"num_buckets": null}, {"num_hashes": 2}]'},
            "self_attention",
            "lsh(num_buckets=None) | lsh(num_hashes=2)",
        ),
        # Of a field that is not given, options are those of its default.
        ({"pooling_args": '{"base": 2.5, "sort": true}'}, "pooling", "soft_topk(base=2.5, sort=True)"),
        ({"recurrence": "none,sru", "recurrence_args": '{"dim": 3}'}, "recurrence", "none | sru(dim=3)"),
        (
            {"memories": "1,last", "cross_attention": "full;hepos", "cross_attention_args": '[{}, {"stride": 4}]'},
            "cross_attention",
            "full; hepos(stride=4)",
        ),
        (
            {"memories": "1,last", "cross_attention": "hepos", "cross_attention_args": '[{"stride": 1}, [{}, {}]]'},
            "cross_attention",
            "hepos(stride=1); hepos | hepos",
        ),
        ({"scorer": "index", "scorer_args": '[{"seed": 1}, {}]'}, "scorer", "index(seed=1) | index"),
        ({"upsampling_args": "{}"}, "upsampling", None),
    ],
)  # fmt: skip
def test_options_move_into_their_parts(fields: dict[str, Any], name: str, expected: str | None) -> None:
    assert getattr(config_of(fields), name) == expected


@for_each(
    ("fields", "sentence"),
    [
        ({"self_attention_args": "{"}, "`self_attention_args` must be a JSON object, but it is not JSON"),
        ({"pooling_args": "[8]"}, "`pooling_args` must be a JSON object, or a list of them, but is '[8]'."),
        ({"pooling_args": "[]"}, "`pooling_args` must be a JSON object, or a list of them, but is '[]'."),
        ({"self_attention_args": 8}, "`self_attention_args` must be a text, but is 8."),
        ({"self_attention_args": ["{}"]}, "`self_attention_args` must be a text, but is a list."),
        (
            {"self_attention": "full,full,full", "self_attention_args": "[{}, {}]"},
            "`self_attention_args` must have one entry, or one for each part, but is '[{}, {}]'.",
        ),
        ({"upsampling_args": '{"a": 3}'}, "`upsampling_args` is '{\"a\": 3}', but `upsampling` is not given."),
        ({"boundaries_args": "{}"}, "The model has no field 'boundaries_args'."),
        ({"self_attention": None, "self_attention_args": "{}"}, "`self_attention` must be a text, but is None."),
    ],
)  # fmt: skip
def test_what_cannot_be_translated_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        config_of(fields)
    assert str(refusal.value).startswith(sentence)


def test_options_in_both_languages_are_refused() -> None:
    both = {"self_attention": "blockwise(block_size=8)", "self_attention_args": '{"block_size": 8}'}
    with pytest.raises(UserError, match="^`self_attention_args` must not be given where `self_attention` has options"):
        preset("pyramidion", **both)


def test_options_of_0_2_replace_those_of_a_preset() -> None:
    assert preset("pyramidion", self_attention_args='{"block_size": 8}').self_attention == "blockwise(block_size=8)"
    mixed = preset("lsh_window", self_attention_args='[{"window": 8}, {}, {"window": 4}, {}, {}, {}]').self_attention
    assert mixed.startswith("sliding_window(window=8) | lsh | sliding_window(window=4) | lsh | sliding_window | lsh")


def test_todays_options_win_in_a_config_of_0_2() -> None:
    saved = {"self_attention": "lsh(num_hashes=8)", "self_attention_args": '{"num_hashes": 4}', "pooling_args": "{}"}
    assert "num_hashes=8" in config_as_written(PyramidionConfig, saved, 2).self_attention
    with pytest.raises(UserError, match="^`self_attention_args` must not be given where"):
        config_as_written(PyramidionConfig, saved, 3)


def test_a_kind_of_a_language_model_of_0_2_has_the_options_of_the_default() -> None:
    saved = {"feed_forward": "dense", "output": "untied"}
    config = config_as_written(LanguageModelConfig, saved, 2)
    assert (config.feed_forward, config.output) == ("dense(activation='gelu')", "untied(bias=True)")
    config = config_as_written(LanguageModelConfig, {**saved, "feed_forward_args": "{}", "output": "untied()"}, 2)
    assert (config.feed_forward, config.output) == ("dense", "untied")


def test_a_warning_says_what_to_write(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        preset("vanilla", scorer_args='{"layer_norm": true}')
        assert not preset("vanilla", scorer="linear").pooling_lengths
    assert caplog.messages == [
        "`scorer_args` is read for one more release; write `scorer` as 'linear(layer_norm=True)'."
    ]


KINDS = {"pyramidion": PyramidionConfig, "pyramidion_extractor": ExtractorConfig, "pyramidion_lm": LanguageModelConfig}
TASKS = {
    "pyramidion": "long_document_summarization",
    "pyramidion_extractor": "extractive_summarization",
    "pyramidion_lm": "character_language_modeling",
}
# The name of each model, which fairseq files as an architecture too, and one of its other architectures.
ARCHITECTURES = [*KINDS, "deep_pyramidion", "extractor", "hourglass_gumbel"]


def model_of(architecture: str) -> str:
    names = {"deep_pyramidion": "pyramidion", "extractor": "pyramidion_extractor"}
    return architecture if architecture in KINDS else names.get(architecture, "pyramidion_lm")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_flags_of_0_2_are_read(architecture: str) -> None:
    model = model_of(architecture)
    words = ["data", "--task", TASKS[model], "--arch", architecture, "--lr-scheduler", "fixed"]
    words += ["--self-attention", "full", "--feed-forward-args", '{"chunk_size": 5}']
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    config: Any = config_from(KINDS[model], convert_namespace_to_omegaconf(args).model)
    assert config.feed_forward == "dense(chunk_size=5)"
    assert "feed_forward_args" not in vars(args)
    with pytest.raises(UserError, match="`feed_forward_args` must not be given where"):
        options.parse_args_and_arch(
            options.get_training_parser(), [*words, "--feed-forward", "dense(activation='gelu')"]
        )


@pytest.mark.parametrize("model", KINDS)
def test_help_shows_no_flags_of_0_2(model: str) -> None:
    parser = ArgumentParser()
    MODEL_REGISTRY[model].add_args(parser)
    shown = parser.format_help()
    assert "--self-attention " in shown and "-args" not in shown


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_checkpoints_of_0_2_keep_their_options(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By way of fairseq, which merges the config of a checkpoint with that of its model, if its name is the model's."""
    read: list[Any] = []

    def reading(kind: type[Any], config: Any) -> Any:
        read.append(config_from(kind, config))
        raise NotImplementedError

    monkeypatch.setattr(f"{ARCH_MODEL_REGISTRY[architecture].__module__}.config_from", reading)
    task = SimpleNamespace(source_dictionary=None, target_dictionary=None, max_positions=lambda: (64, 32))
    saved = {"_name": architecture, "self_attention": "full,lsh", "self_attention_args": '[{}, {"num_hashes": 2}]'}
    with pytest.raises(NotImplementedError):
        build_model(OmegaConf.create({**saved, "max_source_positions": 64}), task, True)
    assert read[0].self_attention.startswith("full | lsh(") and "num_hashes=2" in read[0].self_attention


def test_a_run_of_0_2_goes_on_with_the_options_of_its_preset() -> None:
    nothing = {"save_dir": "made", "restore_file": "checkpoint_last.pt", "finetune_from_model": None}
    run = Start(OmegaConf.create({"checkpoint": {**nothing, "no_save": False, "reset_optimizer": False}, "task": {}}))
    run._config = {
        "_name": "deep_pyramidion",
        "self_attention": "blockwise",
        "self_attention_args": '{"block_size": 256}',
        "pooling_lengths": "None,1024,512,None,None,None",
        "pooling": "soft_topk",
        "pooling_args": "{}",
    }
    model = OmegaConf.create(
        {
            "_name": "deep_pyramidion",
            "config_format": None,
            "self_attention": "blockwise(block_size=512)",
            "pooling_lengths": "None,2048,512,None,None,None",
        }
    )
    run.settle_format(model)
    assert (model.config_format, model.self_attention) == (2, "blockwise(block_size=256)")
    assert model.pooling_lengths == "None,1024,512,None,None,None"
    # So they do where the command names the kind alone, which in 0.2 had the options of the preset.
    model = OmegaConf.create({**model, "config_format": None, "self_attention": "blockwise"})
    run.settle_format(model)
    assert model.self_attention == "blockwise(block_size=256)"
    # What the user said stays.
    model = OmegaConf.create({**model, "config_format": None, "self_attention": "blockwise(block_size=128)"})
    run.settle_format(model)
    assert model.self_attention == "blockwise(block_size=128)"


def test_parts_are_compared_in_either_language() -> None:
    before = {"self_attention": "full,lsh", "self_attention_args": "[{}, {}]", "stack": "plain", "upsampling": None}
    assert changed_part(before, config_of({"self_attention": "full | lsh(num_hashes=2)"})) is None
    assert changed_part(before, config_of({"self_attention": "lsh | full"})) == "self_attention"
    assert changed_part(before, config_of({"self_attention": "full | lsh", "stack": "recomputing"})) is None
    assert changed_part(before, config_of({"self_attention": "full | lsh", "stack": "reversible"})) == "stack"
    assert changed_part({"self_attention": "full"}, config_of({"self_attention": "full | full"})) is None
    memories = {"memories": "1,last", "cross_attention": "full;full"}
    assert changed_part(memories, config_of({"memories": "1,last", "cross_attention": "full"})) is None


def test_overrides_of_a_preset_may_be_of_0_2() -> None:
    found = read_experiment("pyramidion", ('model.self_attention_args={"block_size": 8}',))
    assert found.model.self_attention == "blockwise(block_size=8)"
