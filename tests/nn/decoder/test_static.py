"""Steps whose tensors stay in their places write what other steps write; a GPU is not needed to see it."""

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from tiny_presets import marked_documents, tiny_model
from torch.utils._python_dispatch import TorchDispatchMode

from pyramidions.models import PRESETS
from pyramidions.nn import BeamSearch, Hypothesis, Transformer
from pyramidions.nn.decoder.static import Record, as_cuda_graph

Compute = Callable[[], None]
PAD, ENDS = 1, (2, 11)
#: presets whose decoders differ in what they keep between steps
OTHER_STEPS = ("vanilla", "pyramidion_pointer", "lsh_hepos", "look_back", "hmnet", "scaling", "toy_terraformer")


def written(model: Transformer, record: Record | None, beam: int = 3, ends: Sequence[int] = (2,)) -> list[Hypothesis]:
    model.decoder.record = record
    least = 20 if len(ends) == 1 else 2
    return [best for best, *_ in BeamSearch(beam, least, 24, eos=ends)(model, marked_documents())]


class Recorder:
    """Stands for graphs: computes the same on the same tensors, and counts."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, compute: Compute, device: torch.device) -> Compute:
        self.made += 1
        compute()
        return compute


def same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    for mine, other in zip(found, expected, strict=True):
        assert torch.equal(mine.tokens, other.tokens)
        torch.testing.assert_close(mine.token_scores, other.token_scores, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OTHER_STEPS else pytest.mark.nightly) for name in PRESETS]
)
def test_every_preset_writes_the_same(name: str) -> None:
    model = tiny_model(name)
    recorder = Recorder()
    same(written(model, recorder), written(model, None))
    # Room is made for many steps, and anew where documents leave.
    assert bool(recorder.made) == model.decoder.steps_alike and recorder.made <= 3


def test_documents_may_leave_and_another_batch_may_come() -> None:
    model, recorder = tiny_model("pyramidion_pointer"), Recorder()
    for beam, ends in ((1, ENDS), (2, ENDS), (2, ENDS[:1])):
        expected = written(model, None, beam, ends)
        assert beam > 1 or len({len(each.tokens) for each in expected}) > 1
        same(written(model, recorder, beam, ends), expected)
    assert 3 < recorder.made < 9


@pytest.mark.parametrize("name", [pytest.param("deep_pyramidion", marks=pytest.mark.nightly), "pyramidion_pointer"])
def test_a_step_is_one_graph_and_is_compiled_once(name: str) -> None:
    model = tiny_model(name)

    def compiled(compute: Compute, device: torch.device) -> Compute:
        torch.compiler.reset()
        whole = torch.compile(compute, backend="aot_eager", fullgraph=True, dynamic=False)
        whole()

        def replay() -> None:
            with torch.compiler.set_stance("fail_on_recompile"):
                whole()

        return replay

    same(written(model, compiled), written(model, None))


def test_a_replayed_step_leaves_few_operators_to_the_host() -> None:
    model, counts = tiny_model("deep_pyramidion"), list[int]()

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            counts[-1] += 1
            return function(*args, **(kwargs or {}))

    model.decoder.record = lambda compute, device: Recorder()(compute, device) and (lambda: None)
    memories = model.encoder(marked_documents(), marked_documents().eq(PAD)).memories
    for most in (40, 50):
        counts.append(0)
        with Counting():
            list(BeamSearch(4, most, most).write(model, memories))
    assert (counts[1] - counts[0]) / 10 <= 60


def test_a_step_that_cannot_be_recorded_is_computed_and_said_once() -> None:
    model = tiny_model("pyramidion_pointer")

    def failing(compute: Compute, device: torch.device) -> Compute:
        compute()
        return as_cuda_graph(compute, device)

    expected = written(model, None)
    with pytest.warns(UserWarning, match=r"cannot be recorded, .* one by one: the device is 'cpu'\.") as said:
        same(written(model, failing), expected)
    assert len(said) == 1


def test_a_search_leaves_nothing_behind() -> None:
    model, kept = tiny_model("deep_pyramidion"), list[weakref.ref[Any]]()

    def record(compute: Compute, device: torch.device) -> Compute:
        kept.append(weakref.ref(compute.__self__))  # type: ignore[attr-defined]
        return Recorder()(compute, device)

    written(model, record)
    gc.collect()
    assert len(kept) == 1 and kept[0]() is None
