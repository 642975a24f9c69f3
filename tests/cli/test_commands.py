"""What all commands have in common: help, errors, signals and closed streams."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import torch
from invoking import run

import pyramidions
from pyramidions.base.errors import UserError
from pyramidions.cli import commands, main
from pyramidions.cli.models import KNOWN
from pyramidions.cli.summarize import _GROUPS, summarize
from pyramidions.files.hub import hub_name


def test_it_lists_its_commands_and_each_has_help_with_an_example() -> None:
    listed = run().output
    for command in main.list_commands(click.Context(main)):
        assert f"\n  {command} " in listed
        assert "Example" in run(command, "--help").output, command


def test_the_help_groups_options_by_what_they_are_for_and_lists_each_once() -> None:
    output = run("summarize", "--help").output
    titles = re.findall(r"^(\S.*):$", output, re.MULTILINE)
    assert titles == [*_GROUPS.values()]
    options = [option.opts[-1] for option in summarize.params if isinstance(option, click.Option)]
    assert re.findall(r"^  (?:-\w, )?(--[\w-]+)", output, re.MULTILINE) == [*options, "--help"]


def test_the_version_and_the_user_dir_are_the_packages_and_python_m_runs_the_same_program() -> None:
    assert pyramidions.__version__ in run("--version").output
    folder = run("user-dir").output
    assert Path(folder.strip()) == Path(pyramidions.__file__).parent
    done = subprocess.run([sys.executable, "-m", "pyramidions", "user-dir"], capture_output=True, text=True)
    assert done.stdout == folder


def test_each_pretrained_model_has_a_line_with_what_it_reads_and_its_licence() -> None:
    printed = run("models").stdout.splitlines()
    assert printed[0].split() == ["model", "reads", "tokens", "trained", "on", "parameters", "licence"]
    bart = next(line for line in printed if line.startswith("facebook/bart-large-cnn"))
    assert bart.split() == ["facebook/bart-large-cnn", "1,024", "news", "406M", "MIT"]
    assert len(printed) == len(KNOWN) + 1 and all(hub_name(model.name) for model in KNOWN)


def raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UserError("The length must not\n be 0."), "Error: The length must not be 0.\n"),
        (FileNotFoundError(2, "No such file or directory", "x.pt"), "Error: x.pt: No such file or directory.\n"),
        (
            OSError(28, "No space left on device", "/proc/x/y.pt"),
            "Error: /proc/x/y.pt: No space left on device (the disk at /proc).\n",
        ),
        (OSError(28, "No space left on device"), "Error: No space left on device.\n"),
        (MemoryError(), "Error: Memory ran out.\n"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), "Error: Memory ran out.\n"),
        (RuntimeError("[enforce] DefaultCPUAllocator: can't allocate"), "Error: Memory ran out.\n"),
        (
            ModuleNotFoundError("No module named 'datasets'", name="datasets"),
            "Error: datasets is not installed: `pip install datasets` brings it.\n",
        ),
        (
            ModuleNotFoundError("No module named 'fairseq'", name="fairseq"),
            "Error: fairseq is not installed: scripts/setup.sh train brings what training needs.\n",
        ),
    ],
)
def test_an_error_is_one_sentence(monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str) -> None:
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: raising(error))
    result = run("user-dir")
    assert (result.exit_code, result.stderr) == (1, sentence)
    assert run("--debug", "user-dir").exception is error


def test_a_folder_that_is_gone_is_named_and_no_other_missing_file_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    error = FileNotFoundError(2, "No such file or directory")
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: raising(error))
    assert run("user-dir").exception is error

    def gone() -> str:
        raise error

    monkeypatch.setattr(os, "getcwd", gone)
    assert run("user-dir").stderr == "Error: The folder that the command runs in does not exist any more.\n"


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: raising(KeyboardInterrupt()))
    result = run("user-dir")
    assert result.exit_code == 130 and "Interrupted." in result.stderr


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes = [
        *(TypeError("ours"), UnicodeDecodeError("utf-8", b"", 0, 1, "ours"), RuntimeError("ours")),
        *(OSError(9, "Bad file descriptor"), RecursionError("ours")),
    ]
    for mistake in mistakes:
        monkeypatch.setattr(commands.Commands, "get_command", lambda *_, given=mistake: raising(given))
        assert run("user-dir").exception is mistake


def test_a_name_the_terminal_cannot_show_is_written_with_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    command = click.Command("echo", callback=lambda: click.echo("caf\udce9.pt"))
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: command)
    result = run("user-dir")
    assert (result.exit_code, result.output) == (0, "caf\\udce9.pt\n")


@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), ("<&-", 1), ("2>&-", 0)])
def test_a_closed_stream_is_empty(closed: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Bees fly very fast.")
    words = "" if closed == "<&-" else tmp_path / "a.txt"
    command = f"{sys.executable} -m pyramidions extract {words} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.returncode == code and b"Traceback" not in done.stderr


def test_a_reader_that_has_left_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Bees fly very fast.")
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "pyramidions", "extract", tmp_path / "a.txt"]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 1 and b"Traceback" not in done.stderr and b"BrokenPipe" not in done.stderr


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_that_a_callback_swallows_still_ends_the_command(number: str, code: int) -> None:
    program = f"""
import os, signal, time
from pyramidions.cli import commands

class Swallowing:
    def __del__(self):
        os.kill(os.getpid(), signal.{number})
        time.sleep(0.1)

def work(*_):
    Swallowing()
    time.sleep(20)

commands.Commands.get_command = lambda *_: commands.click.Command("work", callback=work)
commands.main(["work"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(("given", "policy"), [({}, "'PASSIVE'"), ({"OMP_WAIT_POLICY": "active"}, "'ACTIVE'")])
def test_threads_of_torch_that_wait_leave_the_processor(given: dict[str, str], policy: str, tmp_path: Path) -> None:
    usual = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", "from pyramidions.cli import main; main()", "summarize", tmp_path / "none", __file__],
        env={**usual, **given, "OMP_DISPLAY_ENV": "true"},
        capture_output=True,
        text=True,
    )
    assert {*re.findall(r"OMP_WAIT_POLICY = (\S+)", done.stderr)} == {policy}, done.stderr
