"""Beam search, held to fairseq's own, and sampled summaries: their distribution, and the rules that they keep."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from fairseq_searches import EOS, PAD, dictionary, faced, generated, rescored
from gpu_work import GpuWork, work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Sampling, Transformer
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.plugin.models.pyramidion import PyramidionModel

WORDS = 16
SMALL: dict[str, Any] = {
    "embed_dim": 16,
    "ffn_embed_dim": 32,
    "num_heads": 2,
    "self_attention": "blockwise(block_size=8)",
    "pooling_lengths": "16,4",
    "decoder_positions": "sinusoidal",
}
DICTIONARY = dictionary(WORDS)


def pair(
    seed: int, sharpness: float = 4.0, projections: str = "dense", output: str = "tied", **changes: Any
) -> tuple[PyramidionModel, Transformer]:
    """Return one model, with fairseq's face and without."""
    crossing = () if "decoder" in changes else ("cross_projections",)
    projected = dict.fromkeys(("encoder_projections", "decoder_projections", *crossing), projections)
    config = preset("pyramidion", **{**SMALL, **projected, "output": output, **changes})
    torch.manual_seed(seed)
    core = build(config, WORDS, PAD).eval()
    # Untrained models find all tokens about as likely; these have an opinion.
    core.decoder.embedder.tokens.weight.data *= sharpness
    for weight in core.decoder.output.parameters():
        weight.data *= sharpness
    return faced(core, DICTIONARY, **vars(config)), core


def documents(*lengths: int, seed: int = 5) -> Tensor:
    tokens = torch.randint(4, WORDS, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    for row, length in enumerate(lengths):
        tokens[row, length - 1] = EOS
        tokens[row, length:] = PAD
    return tokens


#: decoders that hash what they wrote, and that read the encoder's output, or both of its streams, in front of it
DECODERS: list[dict[str, Any]] = [
    {},
    {"decoder_self_attention": "full | lsh(bucket_size=2, num_hashes=2, num_buckets=2, local_heads=1, local_window=4)"},
    {"decoder": "concatenated", "recurrence": "sru", "feed_forward": "sparse(block_size=4)"},
    {
        "decoder": "concatenated(reads_streams=True)",
        "stack": "reversible",
        "normalize_before": True,
        "output": "multiplicative",
        "pooling_lengths": None,
        "max_source_positions": 64,
    },
]


@settings(max_examples=24, deadline=None)
@given(
    changes=st.sampled_from(DECODERS),
    seed=st.integers(0, 1000),
    beam=st.integers(1, 6),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    min_len=st.integers(0, 8),
    more=st.integers(0, 12),
    penalty=st.sampled_from([0.0, 0.6, 1.0, 1.7]),
    ngram=st.integers(0, 3),
    prefix=st.sampled_from([(), (0,), (9, 5)]),
    projections=st.sampled_from(PROJECTIONS.names),
    output=st.sampled_from(OUTPUT.names),
)
def test_the_best_hypotheses_are_fairseqs(
    changes: dict[str, Any],
    seed: int,
    beam: int,
    lengths: list[int],
    min_len: int,
    more: int,
    penalty: float,
    ngram: int,
    prefix: tuple[int, ...],
    projections: str,
    output: str,
) -> None:
    face, core = pair(seed, **{"projections": projections, "output": output, **changes})
    source = documents(*lengths, seed=seed)
    max_len = max(min_len + more, len(prefix))
    # A prefix adds to fairseq's scores, which changes the order of texts of different length.
    penalty = 0.0 if prefix else penalty
    settings = {"beam_size": beam, "min_len": min_len, "max_len_b": max_len, "len_penalty": penalty}
    theirs = generated(face, DICTIONARY, source, ngram, prefix, **settings)
    ours = BeamSearch(beam, min_len, max_len, penalty, ngram, prefix=prefix)(core, source)
    for document, mine, other in zip(source, ours, theirs, strict=True):
        assert 1 <= len(mine) <= beam
        assert [h.score for h in mine] == sorted((h.score for h in mine), reverse=True)
        # Hypotheses that score alike may change places.
        if len(other) == 1 or other[0]["score"] - other[1]["score"] > 1e-3:
            assert mine[0].tokens.tolist() == other[0]["tokens"].tolist()
            given = other[0]["positional_scores"][: len(prefix)].sum()
            assert mine[0].score == pytest.approx((other[0]["score"] - given).item(), abs=1e-4)
        assert tuple(mine[0].tokens[: len(prefix)].tolist()) == prefix
        scores = rescored(core, document, mine[0].tokens)
        torch.testing.assert_close(mine[0].token_scores, scores, rtol=0, atol=1e-4)
        assert mine[0].score == pytest.approx(scores[len(prefix) :].sum().item() / len(scores) ** penalty, abs=1e-4)


def test_documents_that_are_finished_leave_the_batch() -> None:
    _, model = pair(seed=30)
    rows: list[int] = []
    model.decoder.register_forward_hook(lambda module, inputs, output: rows.append(output.size(0)))
    found = BeamSearch(2, min_len=0, max_len=20)(model, documents(40, 25, 12, 6))
    last = [max(len(hypothesis.tokens) for hypothesis in hypotheses) for hypotheses in found]
    assert len(set(last)) > 1
    # Nothing is written before the first step, so that a document has a single hypothesis there.
    assert rows == [4] + [2 * sum(length > step for length in last) for step in range(1, max(last))]


def test_keys_and_values_of_the_memory_are_computed_once() -> None:
    _, model = pair(seed=1)
    projected: list[int] = []
    for layer in model.decoder.layers:
        v_proj = layer.sublayers["cross_attention"].function.projections.v_proj
        v_proj.register_forward_hook(lambda module, inputs, out: projected.append(out.size(0)))
    BeamSearch(4, min_len=8, max_len=8)(model, documents(40, 7, 9))
    assert projected == [3] * len(model.decoder.layers)


def test_all_but_the_best_hypotheses_are_left_out_and_what_the_mask_hides_is_not_read() -> None:
    _, model = pair(seed=2)
    source = documents(30, 11)
    found = BeamSearch(4, min_len=1, max_len=9)(model, source)
    few = BeamSearch(4, min_len=1, max_len=9, best=2)(model, source)
    assert [[h.score for h in hypotheses] for hypotheses in few] == [[h.score for h in f[:2]] for f in found]
    search, hidden = BeamSearch(2, min_len=4, max_len=9), torch.arange(30)[None] >= 12
    ((mine, _),) = search(model, source[:1], hidden)
    assert torch.equal(mine.tokens, search(model, source[:1, :12])[0][0].tokens)
    assert not torch.equal(mine.tokens, search(model, source[:1])[0][0].tokens)


def work_of_ten_steps(forced: bool) -> GpuWork:
    """Return what ten steps take beyond ten others: neither the encoder nor the first step."""
    _, model = pair(seed=1, sharpness=2.0)
    # The end is never among the best, so that every step that looks for it does so in vain.
    model.decoder.embedder.tokens.weight.data[EOS] = 0.0
    source = documents(40, 31, 7)
    searches = [BeamSearch(2, min_len=steps if forced else 0, max_len=steps) for steps in (20, 10)]
    longer, shorter = (work_of(partial(search, model, source)) for search in searches)
    longer.kernels.subtract(shorter.kernels)
    longer.waits.subtract(shorter.waits)
    return longer


def test_the_host_waits_once_a_step_and_not_before_a_summary_may_end_and_masks_are_made_once() -> None:
    work = work_of_ten_steps(forced=False)
    assert work.waits.total() == 10 and work_of_ten_steps(forced=True).waits.total() == 0
    # 20 for each of two layers (products, norms, sums, copies into the cache), 34 for the rest of a step.
    assert work.kernels.total() <= 10 * (2 * 20 + 34)
    assert all(work.kernels[name] == 0 for name in ("where", "bitwise_or", "all"))


def probabilities(model: Transformer, document: Tensor, written: list[int]) -> list[float]:
    """Return how probable each token is behind a prefix, by the whole model."""
    with torch.no_grad():
        logits = model(document[None], torch.tensor([[EOS, *written]]))[0, -1]
    return [0.0 if token == PAD else value for token, value in enumerate(logits.softmax(-1).tolist())]


def kept(probs: list[float], temperature: float, top_k: int, top_p: float) -> list[float]:
    """Return the distribution that is sampled from, by its definition: a plain reference."""
    heated = [p ** (1 / temperature) for p in probs]
    heated = [p / sum(heated) for p in heated]
    best = sorted(range(len(heated)), key=lambda token: -heated[token])
    best = [token for token in best if heated[token] > 0][: top_k or None]
    total, nucleus, mass = sum(heated[token] for token in best), [], 0.0
    for token in best:
        nucleus.append(token)
        mass += heated[token] / total
        if mass >= top_p:
            break
    whole = sum(heated[token] for token in nucleus)
    return [heated[token] / whole if token in nucleus else 0.0 for token in range(len(heated))]


def sampled(search: Sampling, model: Transformer, document: Tensor) -> list[list[int]]:
    """Sample a summary with each of the search's seeds."""
    assert search.seeds is not None
    found = search(model, document.expand(len(search.seeds), -1))
    assert all(len(of_document) == 1 for of_document in found)
    return [hypothesis.tokens.tolist() for (hypothesis,) in found]


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (2.5, 0, 1.0), (1.0, 3, 1.0), (1.6, 6, 0.8)]
)
def test_draws_have_the_probabilities_of_the_definition(temperature: float, top_k: int, top_p: float) -> None:
    writing, (document,) = pair(3, sharpness=2.0)[1], documents(30)
    samples = 2000
    search = Sampling(0, 1, seeds=range(samples), temperature=temperature, top_k=top_k, top_p=top_p)
    counts = [0] * WORDS
    for tokens in sampled(search, writing, document):
        counts[tokens[0]] += 1
    expected = [samples * p for p in kept(probabilities(writing, document, []), temperature, top_k, top_p)]
    assert all(count == 0 for count, mean in zip(counts, expected, strict=True) if mean == 0)
    # Rare tokens are counted together, as the chi-square test wants it.
    cells = [(c, e) for c, e in zip(counts, expected, strict=True) if e >= 5]
    rest = (samples - sum(c for c, _ in cells), samples - sum(e for _, e in cells))
    cells += [rest] if rest[1] >= 5 else []
    freedom = len(cells) - 1
    assert freedom >= 1
    statistic = sum((c - e) ** 2 / e for c, e in cells)
    # Beyond this a fair sample falls once in ten thousand times (Wilson and Hilferty 1931).
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    options=st.sampled_from([{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-9}, {"temperature": 1e-30}]),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    ngram=st.integers(0, 2),
    prefix=st.sampled_from([(), (9, 5)]),
)
def test_drawing_of_one_token_is_greedy_search(
    seed: int, options: dict[str, Any], lengths: list[int], ngram: int, prefix: tuple[int, ...]
) -> None:
    writing, source = pair(seed)[1], documents(*lengths, seed=seed)
    rules: Any = (3, 9, 1.3, ngram, EOS)
    expected = BeamSearch(1, *rules, prefix=prefix)(writing, source)
    found = Sampling(*rules, prefix=prefix, **options)(writing, source)
    for (mine,), (best,) in zip(found, expected, strict=True):
        assert mine.tokens.tolist() == best.tokens.tolist()
        assert mine.score == pytest.approx(best.score, abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 1000),
    min_len=st.integers(0, 6),
    more=st.integers(0, 6),
    ngram=st.integers(0, 3),
    prefix=st.sampled_from([(), (0,), (9, 5)]),
    temperature=st.sampled_from([0.5, 1.0, 4.0]),
)
def test_sampled_summaries_keep_the_rules_and_tell_the_models_log_probabilities(
    seed: int, min_len: int, more: int, ngram: int, prefix: tuple[int, ...], temperature: float
) -> None:
    writing, source = pair(seed, sharpness=1.5)[1], documents(30, 12, 1)
    search = Sampling(
        min_len,
        max(min_len + more, len(prefix)),
        1.4,
        ngram,
        prefix=prefix,
        seeds=(seed, 7, 8),
        temperature=temperature,
    )
    for document, (found,) in zip(source, search(writing, source), strict=True):
        *words, end = found.tokens.tolist()
        assert end == EOS and PAD not in words and EOS not in words[max(min_len, len(prefix)) :]
        assert search.min_len <= len(words) <= search.max_len and tuple(words[: len(prefix)]) == prefix
        if ngram:
            ngrams = [tuple(words[i : i + ngram]) for i in range(len(prefix), len(words) - ngram + 1)]
            assert len(ngrams) == len(set(ngrams))
        with torch.no_grad():
            log_probs = writing(document[None], torch.tensor([[EOS, *words]]))[0].log_softmax(-1)
        scores = log_probs.gather(1, found.tokens[:, None])[:, 0]
        torch.testing.assert_close(found.token_scores, scores, rtol=0, atol=1e-4)
        assert found.score == pytest.approx(scores[len(prefix) :].sum().item() / len(scores) ** 1.4, abs=1e-4)


def test_a_draw_depends_on_its_seed_and_on_no_other_document() -> None:
    writing, source, ends = pair(1, sharpness=1.0)[1], documents(40, 25, 12, 6), (2, *range(10, 16))
    together = Sampling(2, 12, eos=ends, seeds=(5, 6, 7, 8))(writing, source)
    # Some leave the batch before the others.
    assert len({len(found.tokens) for (found,) in together}) > 1
    for row, seed in enumerate((5, 6, 7, 8)):
        ((alone,),) = Sampling(2, 12, eos=ends, seeds=(seed,))(writing, source[row : row + 1])
        assert alone.tokens.tolist() == together[row][0].tokens.tolist()
    others = Sampling(2, 12, seeds=(9, 10, 11, 12))(writing, source)
    assert all(one.tokens.tolist() != other.tokens.tolist() for (one,), (other,) in zip(together, others, strict=True))
    state = torch.get_rng_state()
    Sampling(2, 12)(writing, source)
    assert torch.equal(torch.get_rng_state(), state)


def test_no_plan_of_cudnn_is_made_while_decoding() -> None:
    _, model = pair(seed=0)
    seen: list[bool] = []
    model.decoder.register_forward_hook(lambda *_: seen.append(torch.backends.cuda.cudnn_sdp_enabled()))
    BeamSearch(1, 1, 1)(model, documents(5))
    assert seen == [False] * 2 and torch.backends.cuda.cudnn_sdp_enabled()


def test_a_summary_may_hold_every_token_once() -> None:
    # 14 tokens are neither padding nor the end.
    assert len(BeamSearch(1, 14, 14, no_repeat_ngram=1)(pair(seed=0)[1], documents(5))[0][0].tokens) == 15


# Probabilities of what follows a token: 4 and the end (2) behind 4, 4 behind the start.
FOLLOWS = {EOS: {4: 1.0}, 4: {4: 0.6, EOS: 0.4}}


@pytest.mark.parametrize(
    ("forced_end", "tokens", "probability"),
    [("counted", [4, 4, EOS], 0.6 * 0.4), ("uncounted", [4, 4, EOS], 0.6), ("no", [4, 4, 4], 0.6 * 0.6)],
)
def test_at_the_most_tokens_the_end_is_forced_and_counts_or_not(
    forced_end: Any, tokens: list[int], probability: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, core = pair(0)
    table = torch.full((WORDS, WORDS), 1e-9)
    for before, following in FOLLOWS.items():
        for token, share in following.items():
            table[before, token] = share
    monkeypatch.setattr(core.decoder, "forward", lambda read, *_: table[read].log())
    for writer in (BeamSearch(1, 0, 2, 0.0, forced_end=forced_end), BeamSearch(3, 2, 2, 0.0, forced_end=forced_end)):
        ((best, *_),) = writer(core, documents(5))
        assert best.tokens.tolist() == tokens and best.score == pytest.approx(math.log(probability), abs=1e-4)
    for wrong in (BeamSearch, Sampling):
        with pytest.raises(ValueError, match="forced_end"):
            wrong(*([1] if wrong is BeamSearch else []), 0, 2, forced_end="maybe")  # type: ignore[arg-type]


def test_a_search_without_early_stopping_finds_what_is_no_worse() -> None:
    better = 0
    for seed in range(6):
        _, core = pair(seed, sharpness=2.0)
        early, late = (
            BeamSearch(3, 0, 20, 2.0, early_stopping=early)(core, documents(9, 14, 30)) for early in (True, False)
        )
        for first, second in zip(early, late, strict=True):
            assert second[0].score >= first[0].score - 1e-6 and len(second) == 3
            better += second[0].score > first[0].score + 1e-3
    assert better
