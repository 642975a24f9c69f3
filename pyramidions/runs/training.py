"""One command from documents to a model: prepares, trains, summarizes the test split, scores and exports."""

import json
import shutil
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.vocabulary import VocabSizeError
from pyramidions.files.atomic import hold_folder
from pyramidions.files.processes import as_typed
from pyramidions.pretrained.export_folder import refuse_foreign
from pyramidions.runs.arguments import Arguments, changed, near, stamps
from pyramidions.runs.concept_run import ConceptRun
from pyramidions.runs.kinds import CONCEPTS, KINDS
from pyramidions.runs.network_run import NetworkRun, train_command
from pyramidions.runs.plan import Plan, estimated, make_plan
from pyramidions.runs.progress import as_time
from pyramidions.runs.run import Places, Run
from pyramidions.runs.steps import Say, State

_CANNOT_TRAIN = (
    "Training a network needs fairseq, which is not installed: scripts/setup.sh train brings it; --kind concepts needs "
    "none."
)


def advice(scores: Path, kind: str, ours: str) -> list[str]:
    """Return in words which system scored best, and its command."""
    found = json.loads(scores.read_text())
    means = {name: system["rouge1"]["mean"] for name, system in found["systems"].items()}
    # Of equal ones the model, which comes first.
    best = max(means, key=lambda name: means[name])
    if best == kind:
        return [f"Next: {ours}"]
    named = "model of concepts" if kind == CONCEPTS else kind
    rival = found["comparisons"][best]["rouge1"]
    low, high = -rival["high"], -rival["low"]
    sure = "better" if low > 0 else "higher, though that may be chance"
    told = (
        f"{best} needs no training, and scored {sure}: ROUGE-1 {means[best]:.1f}, the {named} has {means[kind]:.1f} "
        f"(difference {-rival['difference']:.1f}, 95% interval {low:.1f} to {high:.1f}). More documents make a better "
        "model."
    )
    return [told, f"Next: pyramidions extract --method {best} paper.pdf", f"The model: {ours}"]


def train(arguments: Arguments, model: Path, *, name: str, overwrite: bool, say: Say) -> None:
    """Make a model of documents, from where an interrupted run stopped.

    Args:
        arguments: what to make it of.
        model: the folder to export to; the work lies beside it, in MODEL.work.
        name: of the documents, as the user gave it.
        overwrite: begin anew, and replace what was made of other documents or with other arguments.
        say: receives progress, one line at a time.
    """
    places = Places(model)
    _check_places(places)
    _hold(places)
    is_new = not places.work.exists()
    state = None if overwrite else _read(places.state)
    if state is None:
        state = _begin(arguments, places, name, overwrite, say)
    else:
        _refuse_differences(state, arguments, places)
        say(f"Goes on with {places.work}.")
    plan = Plan(**state.facts["plan"])
    run: Run = (NetworkRun if plan.of_kind.task else ConceptRun)(arguments, plan, places, state, say)
    try:
        run.go()
    except VocabSizeError:
        # A wrong argument, which shows before anything is encoded.
        if is_new:
            shutil.rmtree(places.work)
        raise
    except BaseException as error:
        if not isinstance(error, Exception):
            # --overwrite would begin anew.
            same = "The same command without --overwrite" if overwrite else "The same command"
            note(f"Stopped.{run.kept()} {same} goes on from here.")
        raise
    say(f"\n{places.table.read_text().rstrip()}\n")
    say(f"The model is in {model}. {places.work} holds data, checkpoints, logs and scores.")
    for sentence in advice(places.scores, plan.kind, plan.of_kind.next_command(model)):
        say(sentence)


def show_plan(arguments: Arguments, model: Path, *, name: str, overwrite: bool, say: Say) -> None:
    """Say what a run would do, and write nothing; arguments are those of `train`."""
    places = Places(model)
    _check_places(places)
    state = _read(places.state)
    if state is not None and not overwrite:
        _refuse_differences(state, arguments, places)
    plan, found = make_plan(arguments)
    schedule = estimated(plan, found, arguments)
    for sentence in plan.sentences(name, places.work):
        say(sentence)
    if not plan.of_kind.task:
        say(f"{schedule.about}, about {as_time(schedule.hours)} if this machine is as fast as assumed.")
        return
    say(f"Vocabulary: {plan.vocab_size:,} pieces, or fewer where the corpus allows no more.")
    say(f"{schedule}. The command, its lengths estimated:")
    say(f"\n{as_typed(train_command(places, arguments, plan, schedule))}")
    if not _can_train():
        say(f"\n{_CANNOT_TRAIN}")


def _read(path: Path) -> State | None:
    anew = "--overwrite begins anew"
    return State.read(path, "arguments", "inputs", writer="pyramidions train", remedy=anew)


def _can_train() -> bool:
    return find_spec("fairseq") is not None


def _check_fairseq(kind: str) -> None:
    if kind in KINDS and KINDS[kind].task and not _can_train():
        raise UserError(_CANNOT_TRAIN)


def _check_places(places: Places) -> None:
    refuse_foreign(places.model)
    work = places.work
    if work.exists() and not work.is_dir():
        raise UserError(f"The work folder {work} must be a folder, but is a file.")
    if work.is_dir() and any(work.iterdir()) and not places.state.exists():
        raise UserError(f"{work} holds files that `pyramidions train` did not make; give another MODEL.")


def _hold(places: Places) -> None:
    try:
        hold_folder(places.work)
    except BlockingIOError:
        raise UserError(f"Another `pyramidions train` works on {places.model}: wait for it, or stop it.") from None


def _begin(arguments: Arguments, places: Places, name: str, overwrite: bool, say: Say) -> State:
    if places.model.exists() and any(places.model.iterdir()) and not overwrite:
        raise UserError(f"{places.model} holds a model of another run; give another MODEL, or --overwrite.")
    _check_fairseq(arguments.kind)
    inputs = stamps(arguments.documents)
    plan, _ = make_plan(arguments)
    _check_fairseq(plan.kind)
    for sentence in plan.sentences(name, places.work):
        say(sentence)
    places.work.mkdir(parents=True, exist_ok=True)
    _hold(places)
    for entry in places.work.iterdir():
        # Replaced last: without it the folder would be refused as one that we did not make.
        if entry != places.state:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    return State.new(places.state, arguments=asdict(arguments), inputs=inputs, plan=asdict(plan))


def _refuse_differences(state: State, arguments: Arguments, places: Places) -> None:
    anew = "give another MODEL, or --overwrite to begin anew"
    if difference := arguments.difference(state.facts["arguments"]):
        raise UserError(f"{places.work} was begun with other arguments ({difference}): {anew}.")
    before = state.facts["inputs"]
    now = stamps(arguments.documents, before)
    if file := changed(before, now):
        raise UserError(f"{near(file)} has changed since {places.work} was begun: {anew}.")
