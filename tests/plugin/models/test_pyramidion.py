"""The face that fairseq sees, against fairseq's own Transformer and its beam search."""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, build_model
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.sequence_generator import SequenceGenerator
from gpu_work import work_of
from omegaconf import OmegaConf
from refusals import refused
from tiny_presets import tiny_fields
from torch import Tensor

from pyramidions.models import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS
from pyramidions.models.formats import ARCHITECTURES, MODELS
from pyramidions.plugin.models.architectures import config_from
from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig

DOCUMENTS = [40, 23, 1]


def dictionary() -> Dictionary:
    words = Dictionary()
    words.add_symbol("<n>")
    for number in range(45):
        words.add_symbol(f"w{number}")
    return words


def task() -> Any:
    words = dictionary()
    return SimpleNamespace(source_dictionary=words, target_dictionary=words, max_positions=lambda: (64, 32))


def model(name: str = "deep_pyramidion", seed: int = 0, **overrides: Any) -> PyramidionModel:
    torch.manual_seed(seed)
    config = {**tiny_fields(name), "max_source_positions": 64, **overrides}
    if name == "deep_pyramidion":
        config |= {"self_attention": "blockwise(block_size=8)", "pooling_lengths": "None,16,4,None,None,None"}
    return PyramidionModel.build_model(OmegaConf.structured(PyramidionModelConfig(**config)), task()).eval()


def batch(*lengths: int) -> Tensor:
    tokens = torch.randint(4, 50, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(5))
    for row, length in enumerate(lengths):
        tokens[row, length - 1] = 2
        tokens[row, length:] = 1
    return tokens


@pytest.mark.parametrize(
    ("normalize_before", "output", "embedding"),
    [
        (False, "tied", {}),
        (True, "untied", {}),
        (True, "tied", {"layernorm_embedding": True, "no_scale_embedding": True}),
    ],
)
def test_weights_of_fairseqs_transformer_load_and_give_equal_outputs(
    normalize_before: bool, output: str, embedding: dict[str, bool]
) -> None:
    sizes = {"embed_dim": 16, "ffn_embed_dim": 32, "layers": 2, "attention_heads": 4}
    args = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in sizes.items()}
    norms = dict.fromkeys(("encoder_normalize_before", "decoder_normalize_before"), normalize_before)
    longest = {"max_source_positions": 64, "max_target_positions": 64}
    config = Namespace(**args, **norms, **longest, **embedding, share_all_embeddings=True)
    base_architecture(config)
    theirs = TransformerModel.build_model(config, task()).eval()
    same = {"normalize_before": normalize_before, "decoder_positions": "sinusoidal", **embedding}
    ours = model("vanilla", **same, output=output)
    ours.load_state_dict(theirs.state_dict())
    source, prefix = batch(*DOCUMENTS), batch(9, 5, 2)
    lengths = source.ne(1).sum(1)
    expected, got = theirs(source, lengths, prefix)[0], ours(source, lengths, prefix)[0]
    real = prefix.ne(1)
    torch.testing.assert_close(got[real], expected[real], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter:UserWarning")
def test_a_checkpoint_on_the_cpu_loads_into_a_model_on_another_device() -> None:
    # As fairseq does when it resumes on a GPU; "meta" is another device that every machine has.
    saved, elsewhere = model().state_dict(), model().to("meta")
    elsewhere.load_state_dict(saved)
    assert elsewhere.vocabulary.device.type == "meta"
    with refused("another vocabulary", ValueError):
        elsewhere.load_state_dict({**saved, "vocabulary": saved["vocabulary"] + 1})


def swapped() -> dict[str, Tensor]:
    """Return the weights of a model whose vocabulary has the same words in another order."""
    ours, other = model(), dictionary()
    other.symbols[10], other.symbols[11] = other.symbols[11], other.symbols[10]
    decoder = type(ours.decoder)(other, ours.decoder.core, 32)
    weights: dict[str, Tensor] = PyramidionModel(ours.config, ours.encoder, decoder).state_dict()
    return weights


def with_two_embeddings(key: str) -> dict[str, Tensor]:
    return {"decoder.embed_tokens.weight": torch.ones(2, 2), key: torch.zeros(2, 2)}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: model("vanilla", self_attention="linformer(compressed=4)", max_source_positions=48),
            "--max-source-positions must be at most 48, for which LinformerAttention has ",
        ),
        (
            lambda: model().load_state_dict(with_two_embeddings("decoder.output_projection.weight")),
            "must have one embedding for all (--share-all-embeddings)",
        ),
        (
            lambda: model().load_state_dict(with_two_embeddings("encoder.embed_tokens.weight")),
            "must have one embedding for all (--share-all-embeddings)",
        ),
        (lambda: model().load_state_dict(swapped()), "trained with another vocabulary than that of the data"),
        (
            lambda: model("deep_blockwise").load_state_dict(model().state_dict()),
            "another architecture than the settings say: encoder.core.poolers.1",
        ),
        (
            lambda: model("vanilla").load_state_dict(model("vanilla", embed_dim=32).state_dict()),
            "encoder.core.embedder.tokens.weight must be (50, 16), but is (50, 32)",
        ),
    ],
)
def test_what_does_not_fit_a_model_is_named(call: Callable[[], object], sentence: str) -> None:
    with refused(sentence, ValueError):
        call()


def test_hypotheses_of_a_document_share_its_memory_which_is_copied_only_when_a_document_leaves() -> None:
    ours, prefix = model(), batch(7, 7, 7).repeat_interleave(2, dim=0)
    encoded = ours.encoder(batch(*DOCUMENTS))
    memory = ours.encoder.reorder_encoder_out(encoded, torch.arange(3).repeat_interleave(2))
    assert memory.memories.each[0].x.size(0) == 3
    state: dict[str, Any] = {}
    ours.decoder(prefix[:, :4], memory, incremental_state=state)
    (cache,) = state.values()
    _, projected, _ = cache.states[0]
    keys, _ = projected.keys_values
    assert keys.size(0) == 3 and keys.is_contiguous()

    within = torch.tensor([1, 0, 3, 3, 4, 5])
    ours.decoder.reorder_incremental_state_scripting(state, within)
    assert projected.keys_values[0] is keys
    assert ours.encoder.reorder_encoder_out(memory, within).memories.each is memory.memories.each

    first_leaves = torch.tensor([3, 2, 4, 4])
    ours.decoder.reorder_incremental_state_scripting(state, first_leaves)
    memory = ours.encoder.reorder_encoder_out(memory, first_leaves)
    assert projected.keys_values[0].size(0) == 2
    left = prefix[within][first_leaves]
    after = ours.decoder(left[:, :5], memory, incremental_state=state)[0][:, -1]
    alone = ours.encoder(batch(*DOCUMENTS)[1:]), torch.tensor([0, 0, 1, 1])
    torch.testing.assert_close(
        after, ours.decoder(left[:, :5], ours.encoder.reorder_encoder_out(*alone))[0][:, -1], rtol=0, atol=1e-5
    )


def test_a_step_of_fairseqs_search_has_the_host_wait_for_nothing_of_ours() -> None:
    ours, prefix = model(), batch(7, 7, 7).repeat_interleave(2, dim=0)
    memory = ours.encoder.reorder_encoder_out(ours.encoder(batch(*DOCUMENTS)), torch.arange(3).repeat_interleave(2))
    state: dict[str, Any] = {}
    within = torch.tensor([1, 0, 3, 3, 4, 5])

    def step() -> None:
        length = next(iter(state.values())).length if state else 0
        ours.decoder(prefix[:, : length + 1], memory, incremental_state=state)
        ours.decoder.reorder_incremental_state_scripting(state, within)
        ours.encoder.reorder_encoder_out(memory, within)

    step()
    work = work_of(step)
    assert work.waits.total() == 0 and work.kernels.total() <= 150


@pytest.mark.parametrize("lengths", [DOCUMENTS, [40, 40, 40]])
def test_who_knows_the_lengths_need_not_wait_and_reads_a_full_memory_without_a_mask(
    lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, source, masks = model("vanilla"), batch(*lengths), []
    fused = torch.nn.functional.scaled_dot_product_attention

    def watched(*heads: Tensor, attn_mask: Any = None, **rest: Any) -> Tensor:
        masks.append(attn_mask)
        return fused(*heads, attn_mask=attn_mask, **rest)

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", watched)
    read = partial(ours, source, source.ne(1).sum(1), source[:, :5])
    assert work_of(partial(read, lengths=lengths)).waits.total() == 0
    assert any(mask is not None for mask in masks) == (lengths == DOCUMENTS)
    assert read()[0].equal(read(lengths=lengths)[0])


@pytest.mark.parametrize(("ensemble", "output"), [(1, "pointer"), (2, "tied")])
def test_beam_search_reports_the_mean_probabilities_of_the_full_forward(ensemble: int, output: str) -> None:
    models = [model(seed=seed, output=output) for seed in range(ensemble)]
    source = batch(*DOCUMENTS)
    generator = SequenceGenerator(models, dictionary(), beam_size=3, max_len_b=12)
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
    for row, hypotheses in enumerate(generator.generate(models, sample)):
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"][None]
            prefix = torch.cat([tokens.new_tensor([[2]]), tokens[:, :-1]], dim=1)
            probability = sum(m(source[row : row + 1], None, prefix)[0].softmax(-1) for m in models) / ensemble
            expected = probability.log().gather(-1, tokens[..., None])[0, :, 0]
            torch.testing.assert_close(hypothesis["positional_scores"], expected, rtol=0, atol=1e-5)


def test_padding_on_the_left_gives_the_same_output() -> None:
    ours, source = model(), batch(*DOCUMENTS)
    left = torch.stack([row.roll(int(row.eq(1).sum())) for row in source])
    prefix = batch(5, 5, 5)
    assert torch.equal(ours(left, None, prefix)[0], ours(source, None, prefix)[0])


@pytest.mark.parametrize("name", [*MODELS, "deep_pyramidion", "extractor_pointer", "hourglass_gumbel"])
def test_a_field_that_a_checkpoint_lacks_has_its_default_and_not_that_of_a_preset(name: str) -> None:
    """By way of fairseq, which fills in the fields of models, but not of their other architectures."""
    read: list[Any] = []

    def reading(kind: type[Any], config: Any) -> Any:
        read.append(config_from(kind, config))
        raise NotImplementedError

    kind = ARCHITECTURES[name]
    lengths = {"max_source_positions": 64} if "max_source_positions" in kind.__dataclass_fields__ else {}
    given = SimpleNamespace(source_dictionary=None, target_dictionary=None, max_positions=lambda: (64, 32))
    with pytest.MonkeyPatch.context() as patched, pytest.raises(NotImplementedError):
        patched.setattr(f"{ARCH_MODEL_REGISTRY[name].__module__}.config_from", reading)
        build_model(OmegaConf.create({"_name": name, "embed_dim": 8, "max_source_positions": 64}), given, True)
    assert read == [kind(embed_dim=8, **lengths)]


def test_no_plan_of_cudnn_is_made_where_the_model_does_not_train() -> None:
    ours, seen = model(), []
    for part in (ours.encoder.core.layers[0], ours.decoder.core.layers[0]):
        part.register_forward_hook(lambda *_: seen.append(torch.backends.cuda.cudnn_sdp_enabled()))
    for training in (False, True):
        ours.train(training)(batch(*DOCUMENTS), None, batch(7, 7, 7))
    assert seen == [False, False, True, True] and torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize(
    ("kind", "presets"),
    [("pyramidion", PRESETS), ("pyramidion_extractor", EXTRACTOR_PRESETS), ("pyramidion_lm", LANGUAGE_MODEL_PRESETS)],
)
def test_an_architecture_fills_in_what_the_command_line_left_open(kind: str, presets: dict[str, Any]) -> None:
    for name, given in presets.items():
        args = Namespace(embed_dim=99)
        ARCH_CONFIG_REGISTRY[name](args)
        assert vars(args) == {**given, "embed_dim": 99}, name
        assert ARCH_MODEL_NAME_REGISTRY[name] == kind


def test_an_architecture_leaves_a_whole_config_as_it_is() -> None:
    whole = OmegaConf.structured(PyramidionModelConfig(**{**PRESETS["vanilla"], "dropout": 0.7}))
    ARCH_CONFIG_REGISTRY["vanilla"](whole)
    assert whole.dropout == 0.7
