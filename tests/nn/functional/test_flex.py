"""Windows by FlexAttention, by the operators of its kernels, beside windows in tiles."""

import pytest
import torch
import torch.nn.attention.flex_attention as torch_flex
from refusals import refused
from small_parts import ends_after
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.functional import attention, flex
from pyramidions.nn.functional.attention import tiled_attention
from pyramidions.nn.functional.kernels import use_kernels
from pyramidions.nn.functional.tiles import Band
from pyramidions.nn.marks import Marks
from pyramidions.nn.sublayer import LayerContext

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.mark.parametrize(
    ("length", "reach", "ahead", "further"),
    [(300, 64, True, 0), (300, 127, False, 0), (513, 128, True, 5), (700, 400, True, 130), (90, 3, True, 1)],
)
def test_flex_windows_and_their_gradients_are_those_of_tiles(
    length: int, reach: int, ahead: bool, further: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FlexAttention refuses gradients on a CPU, but its operators have them.
    monkeypatch.setattr(torch_flex, "_validate_device", lambda *given: None)
    torch.manual_seed(0)
    read = [torch.randn(2, 3, n, 16, dtype=torch.float64, requires_grad=True) for n in [length] * 3 + [further] * 2]
    hidden = ends_after(length, length // 2)
    far = (*read[3:], ends_after(further, 1)) if further else ()
    plan, found = Band(hidden, reach, True, ahead, *far), []
    for windows in (flex.flex_window, tiled_attention):
        mixed = windows(*read[:3], plan).masked_fill(hidden[:, None, :, None], 0.0)
        found.append((mixed, *torch.autograd.grad(mixed.square().sum(), read[: 5 if further else 3])))
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("reach", "ahead"), [(1, True), (127, True), (128, False), (256, True), (300, False)])
def test_kernels_skip_the_blocks_of_which_nothing_is_seen(reach: int, ahead: bool) -> None:
    hidden = torch.zeros(2, 640, dtype=torch.bool)
    hidden[1, 256:512], hidden[:, 530:] = True, True
    mask, place = flex.band_mask(hidden, 512, reach, ahead), torch.arange(640)
    distance = place[:512, None] - place
    near = (distance.abs() <= reach) & ((distance >= 0) | ahead)
    seen = (distance == 0) | ((near | (place >= 512)) & ~hidden[:, None])
    blocks = seen.unflatten(2, (5, 128)).unflatten(1, (4, 128))
    # (B, N, M, S, M) -> (B, N, S)
    assert mask.to_dense()[:, 0].bool().equal(blocks.any(dim=4).any(dim=2))
    whole = blocks.all(dim=4).all(dim=2).sum(dim=2)
    assert mask.full_kv_num_blocks is not None and mask.full_kv_num_blocks[:, 0].equal(whole.int())


def test_batches_of_any_size_are_few_graphs_with_the_gradients_of_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = 0

    def counted(graph: torch.fx.GraphModule, example: list[Tensor]) -> object:
        nonlocal graphs
        graphs += 1
        return graph

    monkeypatch.setattr(torch_flex, "_validate_device", lambda *given: None)
    monkeypatch.setattr(flex, "_attend", torch.compile(flex._attend, backend=counted, fullgraph=True))
    torch.manual_seed(0)
    for learns in (True, False):
        for batch, length, further, reach in [(2, 200, 1, 40), (3, 256, 2, 40), (1, 300, 1, 64), (2, 640, 3, 40)] * 2:
            # Heads stand beside each other, as projections leave them.
            read = [torch.randn(batch, n, 2, 16, requires_grad=learns) for n in [length] * 3 + [further] * 2]
            q, k, v, *far = (x.transpose(1, 2) for x in read)
            plan = Band(torch.zeros(batch, length, dtype=torch.bool), reach, True, True, *far, ends_after(*[1] * batch))
            plan = plan._replace(absent=ends_after(*[1] * batch, width=further))
            found = [windows(q, k, v, plan) for windows in (flex.flex_window, tiled_attention)]
            torch.testing.assert_close(*found, rtol=0, atol=1e-5)
            if learns:
                grads = [torch.autograd.grad(mixed.square().sum(), read) for mixed in found]
                torch.testing.assert_close(*grads, rtol=0, atol=1e-4)
    assert graphs <= 8


def test_windows_are_left_to_others_where_weights_are_dropped_or_queries_do_not_see_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flex, "_has_kernels", lambda *given: True)
    q, plan = torch.zeros(1, 2, 9, 16), Band(torch.zeros(1, 9, dtype=torch.bool), 2)
    assert flex.takes_flex(q, plan, 0.0)
    assert not flex.takes_flex(q, plan, 0.1)
    assert not flex.takes_flex(q, plan._replace(sees_itself=False), 0.0)
    assert not flex.takes_flex(q.to("meta"), plan, 0.0)


@pytest.mark.parametrize(
    ("kind", "options", "marked"),
    [
        ("sliding_window", {}, [3, 1]),
        ("sliding_window", {"dilation": 3, "dilated_heads": 1}, [1, 0]),
        ("strided", {"split_heads": True}, []),
    ],
)
@torch.no_grad()
def test_kinds_compute_the_same_by_flex(
    kind: str, options: dict[str, int], marked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    windows = ATTENTION.build(kind, {"window": 40, "dropout": 0.5, **options}).eval()
    q, k, v = torch.randn(3, 2, 3, 300, 16)
    marks = Marks(torch.arange(300) < torch.tensor(marked)[:, None], 3) if marked else None
    context = LayerContext(ends_after(300, 200), marks=marks)
    expected = windows(q, k, v, context)
    called: list[Tensor] = []
    monkeypatch.setattr(attention, "takes_flex", lambda q, plan, dropout: not called.append(q) and not dropout)
    use_kernels(windows, "flex")
    unread = ends_after(300, 200) if marks is None else ends_after(300, 200) | marks.marked
    found = windows(q, k, v, context)
    assert called
    torch.testing.assert_close(*(x.masked_fill(unread[:, None, :, None], 0.0) for x in (found, expected)))


@pytest.mark.parametrize(
    ("device", "capability", "dtype", "reason"),
    [
        ("cpu", None, torch.float32, "the device is 'cpu'"),
        ("cuda", (7, 5), torch.float32, "a card is too old"),
        ("cuda", (9, 0), torch.float64, "no kernel reads torch.float64 in heads of 64 dimensions"),
        ("cuda", (8, 0), torch.bfloat16, "triton is not installed"),
        ("cuda", (8, 0), torch.float16, None),
    ],
)
def test_a_device_without_the_kernels_is_told_once(
    device: str, capability: tuple[int, int], dtype: torch.dtype, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    flex._has_kernels.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")
    monkeypatch.setattr(flex, "find_spec", lambda name: None if dtype == torch.bfloat16 else name)
    with pytest.warns(UserWarning) if reason else pytest.MonkeyPatch.context() as said:
        can = [flex._has_kernels(torch.device(device), dtype, 64) for _ in range(2)]
    assert can == [not reason] * 2
    if reason:
        assert [str(each.message).split(": ")[0] for each in said] == [f"`kernels` 'flex' is for GPUs, but {reason}"]


def test_kernels_of_a_config_reach_its_windows() -> None:
    made = build(preset("led", kernels="flex", embed_dim=16, ffn_embed_dim=16, num_heads=2), 50)
    found = {module.window_kernels for module in made.modules() if hasattr(module, "window_kernels")}
    assert found == {"flex"}
    with refused("'flex' is for attention by sliding_window or strided(split_heads=True), but the model has none."):
        build(preset("vanilla", kernels="flex"), 50)
