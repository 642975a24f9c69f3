"""Windows by FlexAttention, by the operators of its kernels, beside windows in tiles."""

import pytest
import torch
import torch.nn.attention.flex_attention as torch_flex
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


def test_documents_of_other_lengths_are_not_compiled_for_anew() -> None:
    compiled = torch.compile(flex._attend, backend="aot_eager", fullgraph=True)

    def attend(length: int) -> Tensor:
        hidden = torch.zeros(2, length, dtype=torch.bool)
        return compiled(*torch.randn(3, 2, 3, length, 16), hidden, 64, True)

    with torch.no_grad():
        for length in (256, 384):
            attend(length)
        with torch.compiler.set_stance("fail_on_recompile"):
            assert all(attend(128 * count).isfinite().all() for count in range(4, 24))


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
        ("cuda", (8, 0), torch.bfloat16, None),
    ],
)
def test_a_device_without_the_kernels_is_told_once(
    device: str, capability: tuple[int, int], dtype: torch.dtype, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    flex._has_kernels.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a card")
    with pytest.warns(UserWarning) if reason else pytest.MonkeyPatch.context() as said:
        can = [flex._has_kernels(torch.device(device), dtype, 64) for _ in range(2)]
    assert can == [not reason] * 2
    if reason:
        assert [str(each.message).split(": ")[0] for each in said] == [f"`kernels` 'flex' is for GPUs, but {reason}"]


def test_kernels_of_a_config_reach_its_windows() -> None:
    made = build(preset("led", kernels="flex", embed_dim=16, ffn_embed_dim=16, num_heads=2), 50)
    found = {module.kernels for module in made.modules() if hasattr(module, "kernels")}
    assert found == {"flex"}
