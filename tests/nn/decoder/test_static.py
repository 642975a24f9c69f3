"""Steps whose tensors stay in their places write what other steps write; a GPU is not needed to see it."""

from collections.abc import Callable, Sequence

import pytest
import torch
from tiny_presets import tiny_fields
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pyramidions.models import PRESETS, build
from pyramidions.models.config import PyramidionConfig, config_as
from pyramidions.nn import BeamSearch, Hypothesis, Transformer
from pyramidions.nn.decoder import captured
from pyramidions.nn.decoder.static import Record

PAD, ENDS = 1, (2, 11)
#: presets whose decoders differ in what they keep between steps
OTHER_STEPS = ("vanilla", "pyramidion_pointer", "lsh_hepos", "look_back", "hmnet", "scaling", "toy_terraformer")


def tiny(name: str) -> Transformer:
    torch.manual_seed(0)
    fields = {**tiny_fields(name), "max_source_positions": 600}
    return build(config_as(PyramidionConfig, fields), 100, PAD, marker_idx=4).eval()


def documents() -> Tensor:
    tokens = torch.randint(5, 100, (3, 64), generator=torch.Generator().manual_seed(1))
    tokens[:, ::15] = 4
    tokens[1, 50:] = PAD
    return tokens


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record steps that serve twice."""
    monkeypatch.setattr(captured, "WORTH", 2)


def written(model: Transformer, record: Record | None, beam: int = 3, ends: Sequence[int] = (2,)) -> list[Hypothesis]:
    model.decoder.captured_steps.record = record
    least = 20 if len(ends) == 1 else 2
    return [best for best, *_ in BeamSearch(beam, least, 24, eos=ends)(model, documents())]


def again(compute: Callable[[], None]) -> Callable[[], None]:
    """Stand for a graph: compute the same on the same tensors."""
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
    model = tiny(name)
    same(written(model, again), written(model, None))
    assert (model.decoder.captured_steps._latest is not None) == model.decoder.recorded(again)


def test_documents_may_leave_and_another_batch_may_come() -> None:
    model, made = tiny("pyramidion_pointer"), list[int]()

    def counted(compute: Callable[[], None]) -> Callable[[], None]:
        made.append(1)
        return again(compute)

    for beam, ends in ((1, ENDS), (2, ENDS), (2, ENDS[:1])):
        expected = written(model, None, beam, ends)
        assert beam > 1 or len({len(each.tokens) for each in expected}) > 1
        same(written(model, counted, beam, ends), expected)
    assert made


@pytest.mark.parametrize("name", [pytest.param("deep_pyramidion", marks=pytest.mark.nightly), "pyramidion_pointer"])
def test_a_step_is_one_graph_and_is_compiled_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured, "WORTH", 8)
    model = tiny(name)

    def compiled(compute: Callable[[], None]) -> Callable[[], None]:
        torch.compiler.reset()
        whole = torch.compile(compute, backend="aot_eager", fullgraph=True, dynamic=False)
        whole()

        def replay() -> None:
            with torch.compiler.set_stance("fail_on_recompile"):
                whole()

        return replay

    same(written(model, compiled), written(model, None))


def test_a_replayed_step_leaves_few_operators_to_the_host() -> None:
    """A GPU would launch these one by one; the issue of Python's time is theirs alone."""
    model, counts = tiny("deep_pyramidion"), list[int]()

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            counts[-1] += 1
            return function(*args, **(kwargs or {}))

    for most in (40, 50):
        counts.append(0)
        model.decoder.captured_steps.record = lambda compute: again(compute) and (lambda: None)
        memories = model.encoder(documents(), documents().eq(PAD)).memories
        with Counting():
            list(BeamSearch(4, most, most).write(model, memories))
    assert (counts[1] - counts[0]) / 10 <= 60


def test_a_failed_recording_leaves_steps_as_they_were() -> None:
    model = tiny("deep_pyramidion")

    def failing(compute: Callable[[], None]) -> Callable[[], None]:
        compute()
        raise RuntimeError("no graph")

    expected = written(model, None)
    with pytest.raises(RuntimeError, match="no graph"):
        written(model, failing)
    same(written(model, None), expected)
