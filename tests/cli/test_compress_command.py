"""`pyramidions compress`."""

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result
from small_tokenizers import bart

from pyramidions.cli.compress import compress

Run = Callable[..., Result]
PAPER = (
    "# Bees\n\n## Methods\n\nWe counted all bees in Rome. They were fed.\n\n## Results\n\nAll bees in Rome fly fast.\n"
)


def test_a_document_is_shortened_to_its_budget(run: Run, tmp_path: Path) -> None:
    paper = tmp_path / "paper.md"
    paper.write_text(PAPER)
    done = run("compress", paper, "--budget", 13)
    assert done.exit_code == 0, done.output
    assert done.stdout == "## Results\n\n[...] All bees in Rome fly fast.\n"
    assert done.stderr == "Kept 11 of 26 tokens (estimated, 4 characters each): 1 of 3 sentences.\n"


def test_a_document_that_fits_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "prompt.md"
    done = CliRunner().invoke(compress, ["--budget", "27", "-o", str(out)], input=PAPER)
    assert done.exit_code == 0, done.output
    assert out.read_text() == PAPER and done.stdout == ""


def test_a_tokenizer_counts(run: Run, tmp_path: Path) -> None:
    paper, tokenizer = tmp_path / "paper.md", bart()
    paper.write_text(PAPER)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    done = run("compress", paper, "--budget", 40, "--tokenizer", tmp_path)
    assert done.exit_code == 0, done.output
    kept = len(tokenizer.encode(done.stdout.strip(), add_special_tokens=False).ids)
    whole = len(tokenizer.encode(PAPER.strip(), add_special_tokens=False).ids)
    assert kept <= 40
    assert done.stderr == f"Kept {kept} of {whole} tokens: 1 of 3 sentences.\n"
