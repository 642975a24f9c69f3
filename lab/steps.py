"""What is run of a row: commands, and the files that show that they are done."""

from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """One process.

    Attributes:
        words: the program and its arguments.
        gpus: numbers of the GPUs that it sees; empty for the CPU, None for all GPUs.
    """

    words: tuple[str, ...]
    gpus: tuple[int, ...] | None = None


class Step(NamedTuple):
    """Commands that run side by side.

    Attributes:
        name: "prepare", that of a start, "train", "loss", "generate", "score", "time" or "time-training".
        commands: what is run.
        folder: holds its log and its mark.
        made: its output.
        parts: files that are joined to ``made`` in the end; empty if a command writes it itself.
        nodes: machines that it needs.
        gpus: GPUs that it needs on each.
        trains: whether it is a training, whose peak memory is recorded.
    """

    name: str
    commands: tuple[Command, ...]
    folder: Path
    made: Path
    parts: tuple[Path, ...] = ()
    nodes: int = 1
    gpus: int = 0
    trains: bool = False

    @property
    def log(self) -> Path:
        """The output of its commands."""
        return self.folder / f"{self.name}.log"

    @property
    def mark(self) -> Path:
        """The file that marks the step as done, and says where and by which code."""
        return self.folder / f"{self.name}.ran.json"

    @property
    def is_done(self) -> bool:
        """Whether the step ran to its end."""
        return self.mark.is_file() and self.made.is_file()
