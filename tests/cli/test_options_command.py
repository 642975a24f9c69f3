"""`pyramidions options`: every flag of ours, with the preset's value."""

import json
from argparse import SUPPRESS

import pytest
from tables import for_each

from pyramidions.cli import options as module


@pytest.fixture
def listed(run):
    """Lists the options of a preset as JSON; gives them by hydra's name."""

    def listing(*arguments):
        return {option["hydra"]: option for option in json.loads(run("options", *arguments, "--json").stdout)}

    return listing


@for_each(
    ("task", "criterion", "arch"),
    [
        ("long_document_summarization", "pooled_cross_entropy", "pyramidion"),
        ("extractive_summarization", "extractive_summarization", "extractor"),
        ("character_language_modeling", "boundary_cross_entropy", "hourglass_gumbel"),
    ],
)
def test_every_field_of_model_task_and_criterion_is_listed_once(listed, task, criterion, arch):
    from fairseq import options as fairseq_options

    import pyramidions.plugin  # noqa: F401

    chosen = ("--task", task, "--criterion", criterion, "--arch", arch)
    parser = fairseq_options.get_training_parser()
    before = {flag for action in parser._actions for flag in action.option_strings}
    more = ("--optimizer", "sgd", "--lr-scheduler", "pass_through")
    fairseq_options.parse_args_and_arch(parser, input_args=["x", *chosen, *more])
    # Flags of older releases are read, and listed nowhere.
    shown = [action for action in parser._actions if action.help != SUPPRESS]
    added = {flag for action in shown for flag in action.option_strings} - before
    fairseqs = {"--momentum", "--weight-decay", "--wd", "--pad", "--eos", "--unk"}  # of its optimizer and its scorer
    assert {option["flag"] for option in listed(arch).values()} - {"DATA"} == added - fairseqs


def test_values_are_the_presets(listed):
    deep = listed("deep_pyramidion")
    assert deep["model.embed_dim"]["value"] == 768
    assert deep["model.pooling_lengths"]["value"] == "None,2048,512,None,None,None"
    assert listed("vanilla")["model.pooling_lengths"]["value"] is None
    assert deep["task.stopping_patience"] == {
        "part": "task",
        "flag": "--stopping-patience",
        "hydra": "task.stopping_patience",
        "type": "int",
        "value": 0,
        "meaning": "end the run after this many validations at epoch ends without a better "
        "--best-checkpoint-metric, restarts or not; 0 never does",
    }


def test_an_extractors_parts_are_named_over_its_options(run):
    lines = run("options", "extractor").stdout.splitlines()
    titles = ("model (--arch extractor)", "task (--task extractive_summarization)")
    assert {*titles, "criterion (--criterion extractive_summarization)"} <= set(lines)
    assert not [line for line in lines if "decod" in line]


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_keeps_to_the_width_of_the_terminal(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("options", "deep_blockwise").stdout.splitlines()
    # The longest name decides where columns begin.
    assert "--embed-dim int 768 width of a representation" in [" ".join(line.split()) for line in lines]
    assert max(map(len, lines)) <= min(columns, 120)


def test_without_fairseq_the_model_is_listed_and_the_rest_named(run, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = run("options")
    assert result.exit_code == 0 and "--embed-dim" in result.stdout and "--eval-rouge" not in result.stdout
    assert result.stderr == "fairseq is not installed: the options of task and criterion are not listed.\n"


def test_an_unknown_preset_is_one_sentence(fail):
    assert fail("options", "deep").startswith("ARCH must be one of vanilla, blockwise, ")


def test_help_has_an_example(run):
    assert "pyramidions options deep_pyramidion --json" in run("options", "--help").stdout
