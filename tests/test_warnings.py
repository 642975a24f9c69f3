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


def test_only_what_fairseq_does_to_hydra_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert warned() == ["the user's own"]
    monkeypatch.setattr(plugin, "FAIRSEQS_OWN_WARNINGS", ())
    *hydras, own = warned()
    assert own == "the user's own" and len(hydras) == 6
