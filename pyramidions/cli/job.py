"""The job that `extract`, `summarize` and `segments` share: documents in, a result of each out."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.base import __version__
from pyramidions.base.errors import UserError
from pyramidions.base.notes import listening
from pyramidions.base.parts import loaded
from pyramidions.cli.job_options import Asked
from pyramidions.cli.options import exclude
from pyramidions.cli.outputs import check_output, check_page
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.cli.worker import Result, Worker, find_layout
from pyramidions.files.progress import counted

if TYPE_CHECKING:
    from pyramidions.cli.engines import Here, OnRay
    from pyramidions.documents.source import DocumentOrigin, Fields
    from pyramidions.files.resumable import ResumableFile

#: Parameters that do not change a result.
_FREE = ("files", "layout", "as_json", "out", "page", "engine", "resume", "user_dir")


class Job:
    """Documents, what makes results of them, several of each perhaps, and where these go.

    The progress bar calls the work by the ``verb``; for ``together`` see `Source`. ``reads`` has further files and
    folders that results depend on, by the names of their parameters.
    """

    def __init__(
        self,
        asked: Asked,
        verb: str,
        fields: "Fields",
        *,
        together: int = 1,
        several: bool = False,
        reads: Mapping[str, str | Path | None],
    ) -> None:
        from pyramidions.cli.engines import Source
        from pyramidions.documents.file_formats import holds_records
        from pyramidions.documents.source import list_files

        paths, self._skipped = list_files(asked.files, (asked.out, asked.page))
        named = several or (not asked.as_one and (len(paths) > 1 or holds_records(paths[0])))
        self.layout = find_layout(asked.layout, asked.as_json, asked.out, named)
        kind = "an older file of summaries" if self.layout.kind == "json" else "a text"
        check_output("--out", asked.out, kind, paths)
        check_page("--explain", asked.page, paths, [] if asked.out is None else [asked.out])
        self._is_resumable = _is_resumable(asked)
        _check_together(asked, fields, self._is_resumable)
        self.report = ReadingReport(paths, verb)
        self._source = Source(paths, fields, together, asked.as_one)
        self._asked = asked
        self._reads = reads

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.report.close()

    def run(self, make: Callable[[], Worker], device: str | None, remarks: Mapping[str, str] | None = None) -> int:
        """Do the work by workers that ``make``, picklable, makes; return the exit status; ``remarks`` have notes."""
        from pyramidions.cli.engines import Here, OnRay

        # Notes on documents do not break the bar.
        with listening(self.report.note), self._resumable() as kept, ExitStack() as outputs:
            common = self._source, make, self.report, kept.inputs if kept else 0
            engine = Here(*common) if self._asked.engine is None else OnRay(*common, device != "cpu")
            if kept is not None and self._asked.resume and not kept.inputs:
                self.report.note("No interrupted run is left: this one begins at the first document.")
            tally = _Tally(kept.facts if kept else {})
            self.report.add(2 * tally.size)
            self.report.skip(self._skipped)
            write: Callable[[Result], object] | None = None
            for group in engine.groups():
                for result in group:
                    tally.add(result)
                    # Without any result, older outputs stay.
                    write = write or outputs.enter_context(self._output(engine, kept))
                    write(result)
                if kept is not None:
                    tally.failed, tally.size = tally.failed or self.report.failed, self.report.done
                    kept.commit(engine.inputs, tally.facts())
            if not tally.total:
                if kept is not None:
                    kept.discard()
                return 1
            if write is None:
                # An interrupted run had made all of them.
                outputs.enter_context(self._output(engine, kept))
            # The page may have to leave documents out.
            outputs.close()
            for sentence in tally.sentences(remarks or {}):
                self.report.note(sentence)
            self.report.finish()
            return 1 if self.report.failed or tally.failed else 0

    @contextmanager
    def _resumable(self) -> "Iterator[ResumableFile | None]":
        from pyramidions.files.resumable import resumable_file

        if not self._is_resumable or self._asked.out is None:
            yield None
            return
        with resumable_file(self._asked.out, self._settings(), self._asked.resume) as kept:
            try:
                yield kept
            except BaseException:
                if kept.inputs:
                    self.report.note(f"{self._asked.out}.partial keeps what is done; --resume continues it.")
                raise

    @contextmanager
    def _output(self, engine: "Here | OnRay", kept: "ResumableFile | None") -> Iterator[Callable[[Result], object]]:
        from pyramidions.files.atomic import atomic_file, written_together

        if engine.said is not None:
            self.report.note(engine.said)
        asked, id_of = self._asked, _ids(self._source.paths, kept, self._asked.as_one)
        if kept is not None:
            yield lambda result: kept.write(_line(result, id_of))
            return
        # A page appears together with the file.
        with written_together(), ExitStack() as stack:
            page = None if asked.page is None else stack.enter_context(atomic_file(asked.page))
            if asked.out is None:
                yield partial(self._show, id_of)
            else:
                file = stack.enter_context(atomic_file(asked.out))
                is_list = asked.out.suffix.lower() == ".json"
                between = chain(["[\n"], repeat(",\n")) if is_list else repeat("")
                end = "" if is_list else "\n"
                yield lambda result: file.write(f"{next(between)}{_line(result, id_of)}{end}".encode())
                file.write(b"\n]\n" if is_list else b"")
            shown = None if engine.worker is None else engine.worker.page
            if page is not None and shown is not None:
                page.write(shown.html().encode())
        if asked.page is not None and shown is not None and shown.left_out:
            self.report.fail(shown.full(asked.page))

    def _show(self, id_of: "Callable[[DocumentOrigin], str]", result: Result) -> None:
        with self.report.bar_aside():
            click.echo(_line(result, id_of))

    def _settings(self) -> dict[str, str | None]:
        """Return what decides about the results, by names that a user knows."""
        context = click.get_current_context()
        given = [param for param in context.command.params if param.name not in _FREE]
        options = {
            param.opts[-1] if param.param_type_name == "option" else param.human_readable_name: param for param in given
        }
        values = {name: context.params[str(param.name)] for name, param in options.items()}
        known = {name: None if value in (None, ()) else str(value) for name, value in values.items()}
        parts = [file for folder in loaded for file in sorted(Path(folder).rglob("*.py"))]
        holds = {
            "FILES": _state(self._source.paths),
            "--user-dir": _state(parts) if parts else None,
            **{name: _held(path) for name, path in self._reads.items()},
        }
        said = {f"what {name} holds": held for name, held in holds.items() if held is not None}
        return {"the version of pyramidions": __version__, "the command": context.info_name, **known, **said}


class _Tally:
    """Counts results, and remarks."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        """Go on from what an interrupted run counted."""
        self.failed: bool = facts.get("failed", False)
        self.total: int = facts.get("total", 0)
        self.size: float = facts.get("size", 0.0)
        self._remarks = Counter(facts.get("remarks", {}))

    def add(self, result: Result) -> None:
        self.total += 1
        self._remarks.update(result.remarks)

    def facts(self) -> dict[str, Any]:
        return {"failed": self.failed, "total": self.total, "size": self.size, "remarks": self._remarks}

    def sentences(self, remarks: Mapping[str, str]) -> Iterator[str]:
        """Yield a sentence for each remark that is true of some documents."""
        for name, said in remarks.items():
            if count := self._remarks[name]:
                of_several = f"{count:,} of {counted(self.total, 'document')}"
                told = f"were {said[4:]}" if count > 1 and said.startswith("was ") else said
                yield f"{'The document' if self.total == 1 else of_several} {told}"


def _ids(paths: list[Path], kept: "ResumableFile | None", as_one: bool) -> "Callable[[DocumentOrigin], str]":
    """Return what gives documents ids, as `prepare` does: those of the records, else a position or a name."""
    from pyramidions.data.ids import UniqueIds
    from pyramidions.documents.file_formats import holds_records

    by_position = not as_one and len(paths) == 1 and holds_records(paths[0])
    seen = {str(each.get("id")) for each in kept.objects()} if kept else set()
    given = UniqueIds(number_repeated=True, seen=seen)

    def id_of(origin: "DocumentOrigin") -> str:
        position = str(origin.position) if by_position else origin.name
        return given.add(position if origin.id is None else origin.id, origin.name)

    return id_of


def _line(result: Result, id_of: "Callable[[DocumentOrigin], str]") -> str:
    if isinstance(result.body, str):
        return result.body
    about = {"id": id_of(result.origin), "name": result.origin.name, **result.body}
    # Arguments may hold lone surrogates, which UTF-8 does not.
    return json.dumps(about, ensure_ascii=False).encode("utf-8", "replace").decode()


def _check_together(asked: Asked, fields: "Fields", is_resumable: bool) -> None:
    """Refuse options that do not fit together, and files that are all missing."""
    exclude({"--engine": asked.engine, "--explain": asked.page})
    if asked.as_one:
        of_each = {
            "--engine": asked.engine,
            "--resume": asked.resume,
            "--query-field": fields.query,
            "--reference-field": fields.reference,
        }
        exclude({"--as-one": True, **of_each})
    device = click.get_current_context().params.get("device")
    if asked.engine and device not in (None, "cpu", "cuda"):
        raise UserError(f"--engine ray gives a GPU to each worker: --device must be cpu or cuda, but is {device}.")
    # Before a model is loaded for them.
    if asked.files and not any(str(path) == "-" or os.path.lexists(path) for path in asked.files):
        raise UserError(f"{asked.files[0]}: No such file or directory.")
    exclude({"--resume": asked.resume, "--explain": asked.page})
    if asked.resume and not is_resumable:
        raise UserError("--resume needs --out, a file that ends in .jsonl.")


def _is_resumable(asked: Asked) -> bool:
    out = asked.out
    if out is None or asked.page is not None or out.suffix.lower() != ".jsonl":
        return False
    # A pipe or a device is written as it is.
    return out.is_file() or not out.exists()


def _held(place: str | Path | None) -> str | None:
    """Describe the state of a model or of documents, for a later run to compare; None for the name of a method."""
    from pyramidions.documents.source import list_files
    from pyramidions.files.hub import commit_of, fetch, hub_name
    from pyramidions.pretrained.places import CONFIG, place_of

    if place is None:
        return None
    if on_hub := hub_name(place):
        return f"commit {commit_of(fetch(on_hub, [CONFIG]))}"
    if not Path(place).exists():
        return None
    return _state(place_of(place).files() or list_files([Path(place)]).paths)


def _state(files: list[Path]) -> str:
    """Return in words what changes when files do, or their order."""
    found = [(path.name, path.stat()) for path in files if path.is_file()]
    facts = json.dumps([[name, stat.st_size, stat.st_mtime_ns] for name, stat in found])
    size = sum(stat.st_size for _, stat in found)
    return f"{counted(len(found), 'file')} of {size:,} bytes, fingerprint {sha256(facts.encode()).hexdigest()[:12]}"
