"""The checkpoints of a run: verified after each save, and mended before fairseq reads them."""

import atexit
import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Optional

from pyramidions.base.errors import UserError
from pyramidions.files.archive import cut_leftover, is_damaged, is_whole_checkpoint
from pyramidions.files.atomic import atomic_file, hold_folder, remove_leftovers
from pyramidions.files.run_facts import RunFacts

logger = logging.getLogger(__name__)

LAST, BEST = "checkpoint_last.pt", "checkpoint_best.pt"
_PARTS = "checkpoint*.pt.tmp"
# fairseq writes one file under another name and renames it. Those of other names may be copies of it, written in place.
_NUMBERED = re.compile(r"checkpoint(_\d+_)?\d+\.pt")


class CheckpointFolder:
    """Keeps a whole checkpoint in a run's folder at all times, also while another is written.

    A file that is about to be overwritten is moved aside (`checkpoint_last.previous`). The new file is read back and
    compared with its checksums; only then is the old one deleted. If the run is killed in between, the next one repairs
    the folder before it reads a checkpoint.

    Where saves write no `checkpoint_last.pt`, none is ever made.
    """

    def __init__(self, path: Path, writes_last: bool = True) -> None:
        self.path = path
        self.writes_last = writes_last
        # the files before the save that is going on, and those that were unfinished then
        self._before: Optional[dict[Path, tuple[int, ...]]] = None
        self._parts: dict[Path, tuple[int, ...]] = {}
        atexit.register(self._mend_at_exit)

    def hold(self) -> None:
        """Keep other runs out for as long as this process lives."""
        try:
            hold_folder(self.path)
        except BlockingIOError:
            raise UserError(
                f"Another run is writing its checkpoints to {self.path}: wait for its end, or give another --save-dir."
            ) from None

    def before_saving(self, replaces_best: bool) -> None:
        """Move aside what fairseq is about to overwrite."""
        self.nothing_saved()
        self._before, self._parts = self._stamps(), self._stamps(_PARTS)
        for file, previous in self._last_and_best():
            if file.exists() and (self.writes_last if file.name == LAST else replaces_best):
                file.replace(previous)
            elif file.name == LAST and self.writes_last:
                # An empty file tells the next run that the first save was interrupted.
                previous.touch()

    def nothing_saved(self) -> None:
        """Put back what was moved aside for a save that wrote nothing, if there was one."""
        if self._before is not None:
            self._restore()

    def saved(self, first: Path) -> None:
        """Verify what fairseq has just written, and mend it where it is damaged."""
        before, now = self._before or {}, self._stamps()
        written = sorted((file for file in now if now[file] != before.get(file)), key=lambda f: f.name != first.name)
        damaged = [file for file in written if not is_whole_checkpoint(file)]
        whole = next((file for file in written if file not in damaged or _is_cut_whole(file)), None)
        if whole is None and written:
            self._give_up(written)
        for file in damaged:
            if whole is not None and file != whole:
                file.unlink()
                _copy(whole, file)
                logger.warning("%s was damaged during saving: replaced it with a copy of %s.", file, whole.name)
        # One file is on the disk itself before the old ones are deleted, should the power fail.
        for file in written[:1]:
            with file.open("rb") as content:
                os.fsync(content.fileno())
        self._restore()

    def mend(self) -> None:
        """Replace checkpoints that a kill or a full disk has damaged by intact ones, and log it."""
        self._before = None
        remove_leftovers(self.path)
        moved = [file for file, previous in self._last_and_best() if previous.exists() and not file.exists()]
        lost = set(filter(self._is_to_be, moved))
        for file in sorted(self.path.glob("checkpoint*.pt")):
            if not _NUMBERED.fullmatch(file.name) and is_damaged(file) and not _is_cut_whole(file):
                logger.warning("%s is damaged: renamed it to %s.", file, _set_aside(file).name)
                lost.add(file)
        last, best = self.path / LAST, self.path / BEST
        if last in lost and not self._replace(last, self._known()):
            logger.warning("No intact checkpoint is left in %s: training starts from scratch.", self.path)
        if best in lost and not self._replace(best, (each for each in self._known() if each[1].is_best)):
            logger.warning("No intact checkpoint has the best score: the next better validation writes one.")
        for _, previous in self._last_and_best():
            previous.unlink(missing_ok=True)

    def _last_and_best(self) -> Iterator[tuple[Path, Path]]:
        """Yield both files, and where they are moved aside."""
        return ((file, file.with_suffix(".previous")) for file in (self.path / LAST, self.path / BEST))

    def _is_to_be(self, file: Path) -> bool:
        """Whether a file that was moved aside, or that a first save should have written, is one of this run."""
        return self.writes_last or file.with_suffix(".previous").stat().st_size > 0

    def _stamps(self, pattern: str = "checkpoint*.pt") -> dict[Path, tuple[int, ...]]:
        stats = {file: file.stat() for file in self.path.glob(pattern)}
        return {file: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for file, stat in stats.items()}

    def _give_up(self, damaged: list[Path]) -> None:
        aside = _set_aside(damaged[0])
        for file in damaged[1:]:
            file.unlink()
        if restored := self._restore():
            told = f"The previous {' and '.join(restored)} {'was' if len(restored) == 1 else 'were'} restored."
        elif any(self.path.glob("checkpoint*.pt")):
            told = "Earlier checkpoints are unchanged."
        else:
            told = "There is no earlier checkpoint."
        raise OSError(f"{damaged[0]} was damaged during saving and renamed to {aside.name}. {told}")

    def _known(self) -> list[tuple[Path, RunFacts]]:
        """Return the run's checkpoints and their facts, the newest first; some may be damaged."""
        files = [file for pattern in ("checkpoint*.pt", "checkpoint*.previous") for file in self.path.glob(pattern)]
        known = [(file, facts) for file in files if (facts := RunFacts.of(file)) is not None]
        return sorted(known, key=lambda each: each[1].updates, reverse=True)

    def _replace(self, file: Path, known: Iterable[tuple[Path, RunFacts]]) -> bool:
        for source, facts in known:
            if is_whole_checkpoint(source):
                _copy(source, file)
                told = "Replaced %s with %s, the newest intact checkpoint (update %d)."
                logger.warning(told, file, source.name, facts.updates)
                return True
        return False

    def _restore(self) -> list[str]:
        """End a save: put back what was moved aside and not written, and return its names; delete the rest of it."""
        self._before, restored = None, []
        for file, previous in self._last_and_best():
            if not file.exists() and previous.exists() and previous.stat().st_size:
                previous.replace(file)
                restored.append(file.name)
            previous.unlink(missing_ok=True)
        return restored

    def _mend_at_exit(self) -> None:
        # A failed save ends the run: its leftovers are removed at once, not by the next run.
        if self._before is not None:
            with suppress(OSError):
                # Unfinished files of this save take room that the disk may lack.
                for file, stamp in self._stamps(_PARTS).items():
                    if stamp != self._parts.get(file):
                        file.unlink()
                self.mend()


def _set_aside(file: Path) -> Path:
    return file.replace(file.with_suffix(".damaged"))


def _is_cut_whole(file: Path) -> bool:
    """Remove the leftovers of a full disk in front of a checkpoint; return whether the rest is whole."""
    with suppress(OSError):
        if cut_leftover(file):
            logger.warning("%s was written while the disk was full, and has been repaired.", file)
            return True
    return False


def _copy(source: Path, target: Path) -> None:
    """Copy a checkpoint; where the disk has no room, give it a second name."""
    try:
        with source.open("rb") as file, atomic_file(target) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
    except OSError:
        # Nothing of ours or of fairseq's writes into a link: each save moves the name aside before.
        os.link(source, target)
