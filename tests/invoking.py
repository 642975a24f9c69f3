"""Commands of ours and of the lab, run in this process."""

from click.testing import CliRunner, Result

from lab.cli import main as lab
from pyramidions.cli import main


def run(*words: object, text: str | None = None) -> Result:
    """Run a command of `pyramidions`, with this text as its standard input."""
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="pyramidions", input=text)


def run_lab(*words: object) -> Result:
    """Run a command of `python -m lab`."""
    return CliRunner().invoke(lab, [str(word) for word in words], prog_name="python -m lab")


def succeed(*words: object, text: str | None = None) -> Result:
    """Run a command of `pyramidions` that must not fail."""
    done = run(*words, text=text)
    assert done.exit_code == 0, done.output or done
    return done


def fail(*words: object) -> str:
    """Run a command of `pyramidions` that must fail; return its one sentence."""
    return sentence_of(run(*words))


def sentence_of(done: Result) -> str:
    """Return the one sentence of a command that failed."""
    assert done.exit_code == 1 and "Traceback" not in done.output, done.output or done
    last = done.stderr.rstrip("\n").splitlines()[-1]
    assert last.startswith("Error: ")
    return last.removeprefix("Error: ")
