import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
import torch
from tables import for_each

import pyramidions
from pyramidions.base.errors import UserError
from pyramidions.cli import commands, main

COMMANDS = ["average", "prepare", "score", "user-dir"]


def test_alone_it_lists_the_commands(run):
    result = run()
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert len(result.output) > 100


def test_the_version_is_the_packages(run):
    assert pyramidions.__version__ in run("--version").output


def test_a_wrong_command_or_option_exits_with_2(run):
    assert run("summarise").exit_code == 2
    assert run("user-dir", "--nothing").exit_code == 2


def test_a_mistyped_command_names_the_nearest_and_python_m_runs_the_same_program(run):
    assert "No such command 'summarise'. Did you mean 'summarize'?" in run("summarise").stderr
    assert "Did you mean" not in run("xyz").stderr
    done = subprocess.run([sys.executable, "-m", "pyramidions", "user-dir"], capture_output=True, text=True)
    assert done.stdout == run("user-dir").stdout


@pytest.mark.parametrize(("command", "model"), [("summarize", "facebook/bart-large-cnn"), ("segments", "MODEL")])
def test_a_document_in_the_place_of_the_model_says_what_to_type(run, command, model):
    said = f"Error: MODEL comes before the documents, but paper.txt is a document: type `pyramidions {command} {model} "
    assert run(command, "paper.txt").stderr.startswith(said)


def test_an_address_keeps_its_slashes_in_the_refusal(run):
    said = "must be a path on this machine, but is 'https://x.org/a.pdf': download it first."
    assert all(said in run(*words, "https://x.org/a.pdf").stderr for words in (["extract"], ["summarize", "model"]))


def test_an_empty_path_is_not_this_folder(run):
    assert "must be a path, but is empty." in run("extract", "").stderr


def test_the_user_dir_is_the_package(run):
    result = run("user-dir")
    assert Path(result.output.strip()) == Path(pyramidions.__file__).parent


def raising(error):
    @click.command()
    def command():
        raise error

    return command


@for_each(
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
def test_an_error_is_one_sentence_and_debug_shows_the_rest(run, monkeypatch, error, sentence):
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: raising(error))
    result = run("user-dir")
    assert (result.exit_code, result.stderr) == (1, sentence)
    assert run("--debug", "user-dir").exception is error


def test_an_interrupt_exits_with_130(run, monkeypatch):
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: raising(KeyboardInterrupt()))
    result = run("user-dir")
    assert result.exit_code == 130
    assert result.stderr.strip().splitlines()[-1] == "Error: Interrupted."


@for_each("error", [TypeError, ValueError, UnicodeDecodeError, RuntimeError, OSError, RecursionError])
def test_a_mistake_of_ours_keeps_its_traceback(run, monkeypatch, error):
    arguments = {UnicodeDecodeError: ("utf-8", b"", 0, 1, "ours"), OSError: (9, "Bad file descriptor")}
    mistake = error(*arguments.get(error, ("ours",)))
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: raising(mistake))
    assert run("user-dir").exception is mistake


def test_a_name_that_the_terminal_cannot_show_is_written_with_escapes(run, monkeypatch):
    command = click.Command("echo", callback=lambda: click.echo("caf\udce9.pt"))
    monkeypatch.setattr(commands.Commands, "get_command", lambda *_: command)
    result = run("user-dir")
    assert (result.exit_code, result.output) == (0, "caf\\udce9.pt\n")


@for_each(("closed", "code"), [(">&-", 0), ("<&-", 1), ("2>&-", 0)])
def test_a_stream_that_a_shell_has_closed_is_empty(closed: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Bees fly very fast.")
    words = "" if closed == "<&-" else tmp_path / "a.txt"
    done = subprocess.run(
        f"{sys.executable} -m pyramidions extract {words} {closed}", shell=True, capture_output=True, check=False
    )
    assert done.returncode == code and b"Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error():
    code = "from pyramidions.cli import main; main(['prepare', '--help'])"
    run = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" | true; echo ${PIPESTATUS[0]} >&2', sys.executable, code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Traceback" not in run.stderr
    assert "BrokenPipe" not in run.stderr


def test_the_entry_point_is_the_group():
    assert isinstance(main, click.Group)


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


@pytest.mark.parametrize(("given", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "active"}, "ACTIVE")])
def test_threads_of_torch_that_wait_leave_the_processor_to_others_unless_the_user_wants_it(given, policy, tmp_path):
    usual = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", "from pyramidions.cli import main; main()", "summarize", tmp_path / "none", __file__],
        env={**usual, **given, "OMP_DISPLAY_ENV": "true"},
        capture_output=True,
        text=True,
    )
    assert f"OMP_WAIT_POLICY = '{policy}'" in done.stderr, done.stderr
