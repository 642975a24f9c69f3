"""Sampled summaries: their distribution, and the rules that they keep."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import token_rows
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Sampling, Transformer

PAD, EOS, WORDS = 1, 2, 16
SMALL: dict[str, Any] = {
    "embed_dim": 16,
    "ffn_embed_dim": 32,
    "num_heads": 2,
    "self_attention": "blockwise(block_size=8)",
    "pooling_lengths": "16,4",
    "decoder_positions": "sinusoidal",
}


documents = partial(token_rows, vocabulary=WORDS, seed=5)


def model(seed: int = 0, sharpness: float = 4.0) -> Transformer:
    torch.manual_seed(seed)
    made = build(preset("pyramidion", **SMALL), WORDS, PAD).eval()
    # Untrained models find all tokens about as likely; these have an opinion.
    made.decoder.embedder.tokens.weight.data *= sharpness
    return made


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
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (2.5, 0, 1.0), (1.0, 3, 1.0), (1.6, 6, 0.8)],
)
def test_draws_have_the_probabilities_of_the_definition(temperature: float, top_k: int, top_p: float) -> None:
    writing, (document,) = model(3, sharpness=2.0), documents(30)
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


def test_a_later_token_is_drawn_behind_what_was_written() -> None:
    writing, (document,) = model(3, sharpness=2.0), documents(30)
    texts = sampled(Sampling(2, 2, seeds=range(1500)), writing, document)
    assert all(len(text) == 3 and text[-1] == EOS for text in texts)
    first = max(range(WORDS), key=lambda token: sum(text[0] == token for text in texts))
    second = [text[1] for text in texts if text[0] == first]
    probs = probabilities(writing, document, [first])
    probs[EOS] = 0.0
    likely = max(range(WORDS), key=probs.__getitem__)
    p = probs[likely] / sum(probs)
    deviation = math.sqrt(len(second) * p * (1 - p))
    assert abs(second.count(likely) - len(second) * p) < 4 * deviation


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
    writing, source = model(seed), documents(*lengths, seed=seed)
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
    writing, source = model(seed, sharpness=1.5), documents(30, 12, 1)
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
    writing, source = model(1, sharpness=1.0), documents(40, 25, 12, 6)
    together = Sampling(2, 12, seeds=(5, 6, 7, 8))(writing, source)
    for row, seed in enumerate((5, 6, 7, 8)):
        ((alone,),) = Sampling(2, 12, seeds=(seed,))(writing, source[row : row + 1])
        assert alone.tokens.tolist() == together[row][0].tokens.tolist()
    others = Sampling(2, 12, seeds=(9, 10, 11, 12))(writing, source)
    assert all(one.tokens.tolist() != other.tokens.tolist() for (one,), (other,) in zip(together, others, strict=True))
    state = torch.get_rng_state()
    Sampling(2, 12)(writing, source)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "arguments",
    [{"temperature": 0.0}, {"temperature": math.nan}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}, {"seeds": (1, 2)}],
    ids=str,
)
def test_an_argument_that_breaks_a_rule_is_named(arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=f"`{name}`"):
        Sampling(**{"min_len": 0, "max_len": 8, **arguments})(model(), documents(5))


def test_what_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(ValueError, match="15"):
        Sampling(15, 15, no_repeat_ngram=1)(model(), documents(5))
    with pytest.raises(ValueError, match="NaN"):
        Sampling(0, 4, top_k=3, top_p=0.5)(model(sharpness=float("nan")), documents(5))
