"""Beam search, held to fairseq's own."""

import itertools
from functools import partial
from typing import Any

import pytest
import torch
from fairseq.search import Sampling
from fairseq_searches import EOS, PAD, dictionary, faced, generated, rescored
from gpu_work import GpuWork, work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn import BeamSearch, Hypothesis, Transformer
from pyramidions.nn.functional.kernels import without_cudnn_attention
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
    projected = dict.fromkeys(("encoder_projections", "decoder_projections", "cross_projections"), projections)
    config = preset("pyramidion", **SMALL, **projected, output=output, **changes)
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


#: a decoder that hashes what it wrote
HASHING: dict[str, Any] = {
    "decoder_self_attention": "full | lsh(bucket_size=2, num_hashes=2, num_buckets=2, local_heads=1, local_window=4)",
}


@settings(max_examples=120, deadline=None)
@given(
    changes=st.sampled_from([{}, HASHING]),
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
    face, core = pair(seed, projections=projections, output=output, **changes)
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


def rows_of_each_step(model: Transformer) -> list[int]:
    """Return a list that grows with every step of decoding: how many hypotheses it took on."""
    rows: list[int] = []
    model.decoder.register_forward_hook(lambda module, inputs, output: rows.append(output.size(0)))
    return rows


@for_each("tokens", [1, 2, 9])
@for_each("beam", [1, 3])
def test_exactly_n_tokens_are_written_in_exactly_n_steps(tokens: int, beam: int) -> None:
    _, model = pair(seed=1)
    rows = rows_of_each_step(model)
    found = BeamSearch(beam, min_len=tokens - 1, max_len=tokens - 1)(model, documents(40, 7))
    # Nothing is written before the first step, so that a document has a single hypothesis there.
    assert rows == [2] + [2 * beam] * (tokens - 1)
    for hypotheses in found:
        # All beams of a first token that is forced to be the end are one.
        assert len(hypotheses) == (beam if tokens > 1 else 1)
        for hypothesis in hypotheses:
            assert hypothesis.tokens.tolist().index(EOS) == tokens - 1 == len(hypothesis.tokens) - 1


@pytest.mark.parametrize("changes", [{}, HASHING], ids=["full", "lsh"])
def test_a_beam_of_one_takes_the_most_probable_token(changes: dict[str, Any]) -> None:
    _, model = pair(seed=3, **changes)
    source = documents(21)
    ((hypothesis,),) = BeamSearch(1, min_len=0, max_len=10)(model, source)
    prefix = torch.tensor([[EOS]])
    for token in hypothesis.tokens:
        with torch.no_grad():
            assert token == model(source, prefix)[0, -1].index_fill(0, torch.tensor(PAD), -torch.inf).argmax()
        prefix = torch.cat([prefix, token.reshape(1, 1)], dim=1)


def test_documents_that_are_finished_leave_the_batch() -> None:
    _, model = pair(seed=30)
    rows = rows_of_each_step(model)
    found = BeamSearch(2, min_len=0, max_len=20)(model, documents(40, 25, 12, 6))
    last = [max(len(hypothesis.tokens) for hypothesis in hypotheses) for hypotheses in found]
    assert len(set(last)) > 1
    assert rows == [4] + [2 * sum(length > step for length in last) for step in range(1, max(last))]


@pytest.mark.parametrize("changes", [{}, HASHING], ids=["full", "lsh"])
def test_a_document_is_summarized_alike_in_any_company(changes: dict[str, Any]) -> None:
    _, model = pair(seed=30, **changes)
    search, source = BeamSearch(3, min_len=2, max_len=12), documents(40, 25, 12, 6)
    for row, hypotheses in enumerate(search(model, source)):
        (alone,) = search(model, source[row : row + 1])
        assert [h.tokens.tolist() for h in alone] == [h.tokens.tolist() for h in hypotheses]


def test_keys_and_values_of_the_memory_are_computed_once() -> None:
    _, model = pair(seed=1)
    projected: list[int] = []
    for layer in model.decoder.layers:
        v_proj = layer.sublayers["cross_attention"].function.projections.v_proj
        v_proj.register_forward_hook(lambda module, inputs, out: projected.append(out.size(0)))
    BeamSearch(4, min_len=8, max_len=8)(model, documents(40, 7, 9))
    assert projected == [3] * len(model.decoder.layers)


def test_the_best_hypotheses_come_first_and_the_rest_is_left_out() -> None:
    _, model = pair(seed=2)
    source = documents(30, 11)
    found = BeamSearch(4, min_len=1, max_len=9)(model, source)
    few = BeamSearch(4, min_len=1, max_len=9, best=2)(model, source)
    assert [[h.score for h in hypotheses] for hypotheses in few] == [[h.score for h in f[:2]] for f in found]


def test_no_ngram_is_written_twice() -> None:
    _, model = pair(seed=8)

    def pairs(ngram: int) -> list[tuple[int, int]]:
        ((best,),) = BeamSearch(2, min_len=20, max_len=20, no_repeat_ngram=ngram, best=1)(model, documents(33))
        return list(itertools.pairwise(best.tokens.tolist()[:-1]))

    assert len(set(pairs(0))) < len(pairs(0))
    assert len(set(pairs(2))) == len(pairs(2)) == 19


def test_what_the_mask_hides_is_not_read() -> None:
    _, model = pair(seed=2)
    source = documents(30)
    search = BeamSearch(2, min_len=4, max_len=9)
    hidden = torch.arange(30)[None] >= 12
    ((mine, _),) = search(model, source, hidden)
    assert torch.equal(mine.tokens, search(model, source[:, :12])[0][0].tokens)
    assert not torch.equal(mine.tokens, search(model, source)[0][0].tokens)


@for_each(
    ("arguments", "sentence"),
    [
        ({"beam": 0}, "`beam` must be at least 1, but is 0."),
        ({"min_len": 9}, "`min_len` must be at least 0 and at most `max_len`, but is 9, and `max_len` is 8."),
        ({"min_len": -1}, "`min_len` must be at least 0 and at most `max_len`, but is -1, and `max_len` is 8."),
        ({"length_penalty": float("nan")}, "`length_penalty` must be finite, but is nan."),
        ({"no_repeat_ngram": -1}, "`no_repeat_ngram` must be at least 0, but is -1."),
        ({"best": 3}, "`best` must be at least 1 and at most `beam`, 2, but is 3."),
        ({"beam": 15}, "`beam` must be at most 14, the vocabulary without padding and end, but is 15."),
        ({"eos": PAD}, "`eos` must be below 16, the vocabulary, and not 1, the padding, but is 1."),
        ({"eos": 16}, "`eos` must be below 16, the vocabulary, and not 1, the padding, but is 16."),
        ({"prefix": (4, 16)}, "`prefix` must be below 16, the vocabulary, and not 1, the padding, but is 16."),
        (
            {"max_len": 1, "prefix": (4, 5)},
            "`max_len` must be at least 2, the tokens that every summary begins with, but is 1.",
        ),
    ],
)
def test_an_argument_that_breaks_a_rule_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    _, model = pair(seed=0)
    with pytest.raises(ValueError) as refused:
        BeamSearch(**{"beam": 2, "min_len": 0, "max_len": 8, **arguments})(model, documents(5))
    assert str(refused.value) == sentence


def test_a_model_in_training_is_refused() -> None:
    _, model = pair(seed=0)
    with pytest.raises(ValueError, match="must be in evaluation mode to search, but is in training mode."):
        BeamSearch(1, 0, 1)(model.train(), documents(5))


def test_a_summary_that_cannot_be_is_an_error() -> None:
    _, model = pair(seed=0)
    # 14 tokens are neither padding nor the end, so that a 15th must be one of them again.
    assert len(BeamSearch(1, 14, 14, no_repeat_ngram=1)(model, documents(5))[0][0].tokens) == 15
    with pytest.raises(ValueError, match=r"^No summary of 15 to 15 tokens was found that holds every 1-gram once at"):
        BeamSearch(1, 15, 15, no_repeat_ngram=1)(model, documents(5))


def test_scores_that_are_no_numbers_are_an_error() -> None:
    _, model = pair(seed=0, sharpness=float("nan"))
    with pytest.raises(ValueError, match="The model's scores must be numbers, but are NaN."):
        BeamSearch(2, 0, 4)(model, documents(5))


def test_fairseqs_sampling_draws_from_our_models() -> None:
    face, core = pair(seed=1, sharpness=2.0)
    source = documents(40, 25, 7)
    lengths: dict[str, Any] = {"min_len": 2, "max_len_b": 12}
    best, nucleus = Sampling(DICTIONARY, sampling_topk=1), Sampling(DICTIONARY, sampling_topp=0.9)
    greedy = BeamSearch(1, 2, 12)(core, source)
    certain = generated(face, DICTIONARY, source, beam_size=1, **lengths, search_strategy=best)
    assert [d[0]["tokens"].tolist() for d in certain] == [text.tokens.tolist() for (text,) in greedy]
    torch.manual_seed(0)
    drawn = generated(face, DICTIONARY, source, beam_size=3, **lengths, search_strategy=nucleus)
    for document, texts in zip(source, drawn, strict=True):
        assert len({tuple(text["tokens"].tolist()) for text in texts}) == 3
        for text in texts:
            hypothesis = Hypothesis(text["tokens"], 0.0, text["positional_scores"])
            scores = rescored(core, document, hypothesis.tokens)
            # An end that the limit forces may stand outside of the nucleus.
            torch.testing.assert_close(hypothesis.token_scores[:-1], scores[:-1], rtol=0, atol=1e-4)


def work_of_ten_steps(forced: bool) -> GpuWork:
    """Return what ten steps take beyond ten others: neither the encoder nor the first step."""
    _, model = pair(seed=1, sharpness=1.0)
    # The end is never among the best, so that every step that looks for it does so in vain.
    model.decoder.embedder.tokens.weight.data[EOS] = 0.0
    source = documents(40, 31, 7)
    searches = [BeamSearch(2, min_len=steps if forced else 0, max_len=steps) for steps in (20, 10)]
    longer, shorter = (work_of(partial(search, model, source)) for search in searches)
    longer.kernels.subtract(shorter.kernels)
    longer.waits.subtract(shorter.waits)
    return longer


def test_the_host_waits_once_a_step_and_not_before_a_summary_may_end() -> None:
    assert work_of_ten_steps(forced=False).waits.total() == 10
    assert work_of_ten_steps(forced=True).waits.total() == 0


def test_masks_are_made_once_a_step_for_all_layers() -> None:
    kernels = work_of_ten_steps(forced=False).kernels
    # 20 for each of two layers (products, norms, sums, copies into the cache), 34 for the rest of a step.
    assert kernels.total() <= 10 * (2 * 20 + 34)
    assert all(kernels[name] == 0 for name in ("where", "bitwise_or", "all"))


def test_no_plan_of_cudnn_is_made_while_decoding() -> None:
    _, model = pair(seed=0)
    seen: list[bool] = []
    model.decoder.register_forward_hook(lambda *_: seen.append(torch.backends.cuda.cudnn_sdp_enabled()))
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        for enabled in (True, False):
            torch.backends.cuda.enable_cudnn_sdp(enabled)
            BeamSearch(1, 1, 1)(model, documents(5))
            assert torch.backends.cuda.cudnn_sdp_enabled() == enabled
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
    assert seen == [False] * 4


def test_of_two_threads_that_decode_the_last_one_turns_cudnn_back() -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    first, second = without_cudnn_attention(), without_cudnn_attention()
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        second.__exit__(None, None, None)
        assert torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
