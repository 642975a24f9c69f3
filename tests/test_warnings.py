"""What fairseq's commands warn of: what their users can change, and nothing else."""

import warnings

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_commands import TASK, TINY

from pyramidions import plugin


def warned() -> list[str]:
    """Have fairseq make its config, then warn of something of our own; return all that was warned of."""
    flags = ["--arch", "deep_pyramidion", *TASK, *TINY, "--criterion", "pooled_cross_entropy", "--optimizer", "adam"]
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", *flags, "--lr-scheduler", "fixed"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plugin.silence_fairseqs_own_warnings()
        convert_namespace_to_omegaconf(args)
        warnings.warn("the user's own")
    return [str(warning.message) for warning in caught]


def test_how_fairseq_calls_hydra_is_not_warned_of() -> None:
    assert warned() == ["the user's own"]


def test_every_silenced_message_of_hydra_is_one_that_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "FAIRSEQS_OWN_WARNINGS", ())
    assert [message.strip().splitlines()[0] for message in warned()] == [
        "hydra.experimental.initialize() is no longer experimental. Use hydra.initialize()",
        "The version_base parameter is not specified.",
        "hydra.experimental.compose() is no longer experimental. Use hydra.compose()",
        "In 'config': Usage of deprecated keyword in package header '# @package _group_'.",
        "'config' is validated against ConfigStore schema with the same name.",
        "The strict flag in the compose API is deprecated.",
        "the user's own",
    ]
