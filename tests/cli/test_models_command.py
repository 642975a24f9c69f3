"""`pyramidions models`, and what to type without a model."""

from click.testing import CliRunner

from pyramidions.cli import main
from pyramidions.cli.models import KNOWN
from pyramidions.files.hub import hub_name


def test_each_model_has_a_line_with_what_it_reads_and_its_licence() -> None:
    printed = CliRunner().invoke(main, ["models"]).stdout.splitlines()
    assert printed[0].split() == ["model", "reads", "tokens", "trained", "on", "parameters", "licence"]
    bart = next(line for line in printed if line.startswith("facebook/bart-large-cnn"))
    assert bart.split() == ["facebook/bart-large-cnn", "1,024", "news", "406M", "MIT"]
    assert len(printed) == len(KNOWN) + 1 and all(hub_name(model.name) for model in KNOWN)
