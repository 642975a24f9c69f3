"""What a GPU takes: on a GPU as it is, where there is one, and always on the CPU by the path that a GPU takes.

It needs torch, pytest and this package, not fairseq: any machine with a GPU will do.
"""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from gpu_work import work_of
from small_parts import ends_after
from tiny_presets import DROPOUTS, covering_presets, shrunk
from torch import Tensor

from lab.timing import clock
from pyramidions.models import PRESETS
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.attention import SlidingWindowAttention
from pyramidions.nn.functional import attention, dropout
from pyramidions.nn.functional.kernels import use_kernels
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import dense
from pyramidions.nn.sublayer import LayerContext, Memory

# cuBLAS reads it when it starts; without, it may add up in another order each time.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

VOCABULARY, PAD, EOS = 60, 1, 2
LENGTHS = [128, 50, 3]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
HAS_GPU = torch.cuda.is_available()
# One stands for all where there is no GPU.
on_a_gpu = pytest.mark.parametrize(
    "name", covering_presets() if HAS_GPU else [pytest.param("vanilla", marks=needs_gpu)]
)
#: models that drop in all ways; what else they compute is held to precisions and stacks in tests/models
DROPPING = covering_presets() if HAS_GPU else ["vanilla", "stride", "scaling"]
#: how often the encoder waits for a GPU to learn how many vectors a text becomes
OF_SEGMENTS = {"transpooler_segments": 1, "pyramidion_segments": 2}
#: models that look for the units of a text in its tokens, which a GPU holds
OF_UNITS = ("hat", "hmnet", "discourse_pointer")
#: models that look how many different tokens they may copy
OF_COPIES = [name for name, fields in PRESETS.items() if fields.get("output") == "pointer" and name not in OF_UNITS]
DEVICES = ["cpu", "cuda"] if HAS_GPU else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Return a device on which everything goes as on a GPU."""
    for module in (attention, dropout):
        monkeypatch.setattr(module, "draws_bernoulli", lambda x: False)
    monkeypatch.setattr(dense, "waits_for_host", lambda x: True)
    return torch.device(request.param)


@pytest.fixture
def gpu() -> torch.device:
    """Return a GPU, for what the CPU would compare with itself."""
    return torch.device("cuda")


def documents(lengths: list[int] = LENGTHS) -> Tensor:
    tokens = torch.randint(4, VOCABULARY, (len(lengths), 128), generator=torch.Generator().manual_seed(2))
    return tokens.masked_fill(torch.arange(128) >= torch.tensor(lengths)[:, None], PAD)


def step(model: Transformer, source: Tensor, lengths: list[int] | None = None) -> Tensor:
    """Compute gradients of a loss, and return it."""
    encoded = model.encoder(source, source.eq(PAD), lengths)
    logits = model.decoder(source[:, :3], encoded.memories)
    loss = F.cross_entropy(logits.flatten(0, 1).float(), source[:, :3].flatten())
    loss.backward()
    return loss


def gradients(model: Transformer) -> dict[str, Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def never_waiting(action: Callable[[], object], device: torch.device) -> None:
    """Do something that must not have the host wait for the device."""
    if device.type == "cpu":
        assert work_of(action).waits.total() == 0
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        action()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def assert_same_step(there: Transformer, here: Transformer, device: torch.device) -> None:
    """Compare a step that knows lengths with one that does not: loss and gradients."""
    source = documents()
    expected = step(here, source)
    found = step(there.to(device), source.to(device), LENGTHS)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    ours, theirs = gradients(there), gradients(here)
    assert ours.keys() == theirs.keys() and len(ours) > 20
    for key, gradient in theirs.items():
        torch.testing.assert_close(ours[key].cpu(), gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "most"), [("deep_blockwise", 560), ("deep_pyramidion", 750)])
def test_a_training_step_starts_few_kernels(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "computes_in_tiles", lambda x: False)
    monkeypatch.setattr(dense, "waits_for_host", lambda x: True)
    trained, source = shrunk(name), documents([128, 128])
    found = work_of(lambda: trained(source, source).sum().backward()).kernels.total()
    # A GPU waits for Python where they are small.
    assert found <= most


@contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


# The widest of all, which takes longest, has the parts of others.
@pytest.mark.parametrize("name", covering_presets(name for name in PRESETS if name != "scaling_17b"))
def test_a_step_repeats_itself_even_checkpointed_and_the_host_waits_for_nothing_that_it_could_know(
    name: str, device: torch.device
) -> None:
    found, source = [], documents().to(device)
    with deterministic():
        # What is computed again drops the same.
        for again in ({} if "stack" in PRESETS[name] else {"checkpoint_activations": True}, {}):
            trained = shrunk(name, **DROPOUTS, **again).to(device)
            torch.manual_seed(3)
            step(trained, source, LENGTHS)
            found.append(gradients(trained))
    assert all(gradient.isfinite().all() for gradient in found[0].values())
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-5)
    if name in OF_UNITS:
        return
    if name not in OF_SEGMENTS and name not in OF_COPIES:
        never_waiting(lambda: step(trained, source, LENGTHS), device)
        whole, padding_mask = [128, 128, 128], torch.zeros_like(source, dtype=torch.bool)
        never_waiting(lambda: trained.encoder(source, padding_mask, whole), device)
    if device.type == "cpu":
        # Lengths that are not known are asked for once.
        waits = OF_SEGMENTS.get(name, 0) + (name in OF_COPIES)
        assert work_of(lambda: trained.encoder(source, source.eq(PAD))).waits.total() == 1 + waits
        assert work_of(lambda: trained.encoder(source, source.eq(PAD), LENGTHS)).waits.total() == waits
        assert work_of(lambda: step(trained, source, LENGTHS)).waits.total() == waits


# Rounding decides which units a sparse layer chooses, and near 0 the logarithm of a score that Sinkhorn takes: both
# are compared in float64.
@on_a_gpu
def test_a_step_on_a_gpu_is_that_of_the_cpu(name: str, gpu: torch.device) -> None:
    dtype = torch.float64 if name in ("sinkhorn", "terraformer") else torch.float32
    assert_same_step(shrunk(name).eval().to(dtype), shrunk(name).eval().to(dtype), gpu)


@pytest.mark.parametrize("name", DROPPING)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dropout_as_on_a_gpu_gives_finite_gradients_in_every_precision(
    name: str, dtype: torch.dtype, device: torch.device
) -> None:
    trained = shrunk(name, **DROPOUTS).to(device)
    with torch.autocast(device.type, dtype):
        loss = step(trained, documents().to(device), LENGTHS)
    assert loss.isfinite() and all(gradient.isfinite().all() for gradient in gradients(trained).values())


@on_a_gpu
def test_decoding_on_a_gpu_writes_what_the_cpu_writes(name: str, gpu: torch.device) -> None:
    here, source = shrunk(name).eval(), documents()
    # Untrained models find all tokens about as likely; these have an opinion.
    here.decoder.embedder.tokens.weight.data *= 4
    search = BeamSearch(2, min_len=2, max_len=8)
    there = copy.deepcopy(here).to(gpu)
    for mine, other in zip(search(there, source.to(gpu)), search(here, source), strict=True):
        assert [h.tokens.tolist() for h in mine] == [h.tokens.tolist() for h in other]
        assert [h.score for h in mine] == pytest.approx([h.score for h in other], abs=1e-3)


def test_a_forced_step_of_decoding_never_waits(device: torch.device) -> None:
    decoder = shrunk("deep_pyramidion").eval().to(device).decoder
    memory, cache = torch.randn(2, 5, decoder.embedder.tokens.embedding_dim, device=device), decoder.new_cache()
    padding = torch.arange(5, device=device) >= torch.tensor([[5], [2]], device=device)
    tokens = torch.full((4, 1), EOS, device=device)
    order = torch.tensor([1, 0, 2, 2], device=device)

    @torch.no_grad()
    def write() -> None:
        decoder(tokens, (Memory(memory, padding),), cache)
        cache.reorder(order, 2)

    write()
    never_waiting(write, device)


@on_a_gpu
def test_evaluation_repeats_itself_on_a_gpu(name: str, gpu: torch.device) -> None:
    trained, source = shrunk(name, **DROPOUTS).eval().to(gpu), documents().to(gpu)
    first, second = (trained(source, source[:, :3]) for _ in range(2))
    # A GPU adds up segments and sections in any order, unless algorithms must be deterministic.
    any_order = name in OF_SEGMENTS or name == "discourse_pointer"
    torch.testing.assert_close(first, second, rtol=0, atol=1e-5 if any_order else 0)


@pytest.mark.parametrize("function", [dropout.drop, dropout.relu_drop])
def test_a_gpu_drops_as_often_as_the_probability_says(function: Any, device: torch.device) -> None:
    torch.manual_seed(0)
    x = torch.rand(1000, 1001, device=device).add_(0.1).requires_grad_()
    out = function(x, 0.3)
    kept = out != 0
    # five standard deviations of the mean of 1,001,000 values
    assert kept.float().mean().item() == pytest.approx(0.7, abs=5 * (0.3 * 0.7 / 1e6) ** 0.5)
    torch.testing.assert_close(out, x * kept / 0.7)
    torch.testing.assert_close(torch.autograd.grad(out.sum(), x)[0], kept / 0.7)


def test_attention_of_a_gpu_drops_weights_and_keeps_their_mean(device: torch.device) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, length, 64).to(device).expand(2000, -1, -1, -1) for length in (3, 50, 50))
    mean = attention.scaled_dot_product_attention(q, k, v, dropout=0.1).mean(dim=0)
    exact = attention.scaled_dot_product_attention(q[0], k[0], v[0])
    assert mean.allclose(exact, atol=0.05) and not mean.equal(exact)


@needs_gpu
@pytest.mark.filterwarnings("error:.kernels. 'flex'")
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_windows_by_flex_attention_are_those_of_fused_kernels(
    dtype: torch.dtype, most: float, gpu: torch.device
) -> None:
    torch.manual_seed(0)
    marked, padding = torch.arange(1100) < torch.tensor([[3], [1]]), ends_after(1100, 700)
    context = LayerContext(padding.to(gpu), marks=Marks(marked.to(gpu), 3))
    given, windows = torch.randn(3, 2, 2, 1100, 64, dtype=dtype, device=gpu), SlidingWindowAttention(256)
    found = []
    for kernels in ("auto", "flex"):
        use_kernels(windows, kernels)
        read = given.clone().requires_grad_()
        mixed = windows(*read, context).masked_fill((padding | marked).to(gpu)[:, None, :, None], 0.0)
        found.append((mixed, *torch.autograd.grad(mixed.square().sum(), read)))
    torch.testing.assert_close(*found, rtol=0, atol=most)


@needs_gpu
def test_a_gpu_has_a_clock_and_a_peak_of_memory() -> None:
    seconds, peak = clock(lambda: torch.zeros(2**20, device="cuda"), "cuda")
    assert 0 < seconds < 10 and peak is not None and peak >= 2**22


@needs_gpu
def test_a_checkpoint_on_the_cpu_loads_into_a_model_on_a_gpu() -> None:
    pytest.importorskip("fairseq")
    from types import SimpleNamespace

    from fairseq.data import Dictionary
    from omegaconf import OmegaConf

    from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig

    task = SimpleNamespace(source_dictionary=Dictionary(), target_dictionary=Dictionary(), max_positions=lambda: (9, 9))
    sizes = PyramidionModelConfig(embed_dim=16, ffn_embed_dim=32, num_heads=2, max_source_positions=9)
    config = OmegaConf.structured(sizes)
    trained = PyramidionModel.build_model(config, task)
    saved = copy.deepcopy(trained.state_dict())
    trained.cuda().load_state_dict(saved)
