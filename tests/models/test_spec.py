"""What a flat config says, in types."""

from typing import Any

from pyramidions.base.notation import Part
from pyramidions.models import preset
from pyramidions.models.parse import spec_of
from pyramidions.models.spec import EncoderSpec, LayerSpec, PoolingSpec, StageSpec

DENSE = Part("dense")
BLOCKS = LayerSpec(Part("blockwise", {"block_size": 512}), DENSE)


def test_what_is_upsampled_holds_all_that_follows() -> None:
    config = preset(
        "vanilla", encoder_layers=4, pooling="mean", pooling_lengths="None,64,16,None", upsampling="repeat",
        max_source_positions=128,
    )  # fmt: skip
    layer = LayerSpec(Part("full"), DENSE)
    pooling = [
        PoolingSpec(Part("mean"), length, window, upsampler=Part("repeat")) for length, window in ((64, 2), (16, 4))
    ]
    innermost = StageSpec((layer,), 16)
    inner = StageSpec((layer,), 64, pooling[1], (innermost,))
    outer = StageSpec((layer, layer), 128, pooling[0], (inner,))
    encoder = spec_of(config).encoder
    assert encoder.stages == (outer,)
    assert list(encoder.all_stages()) == [outer, inner, innermost]
    assert encoder.poolings == {1: pooling[0], 2: pooling[1]}


def test_poolings_are_numbered_by_layers_and_a_layer_that_a_pooler_owns_counts() -> None:
    first = PoolingSpec(Part("funnel"), 32, 2, layer=BLOCKS)
    second, third = (PoolingSpec(Part("mean"), length, 2) for length in (16, 8))
    inner = StageSpec((BLOCKS, BLOCKS), 32, second)
    encoder = EncoderSpec((StageSpec((BLOCKS,), 64, first, (inner,)), StageSpec((BLOCKS,), 16, third)))
    # Of the layers 0 to 4, the pooler after layer 0 owns layer 1.
    assert encoder.poolings == {0: first, 3: second, 4: third}


def test_each_layer_and_pooling_has_its_own_kind_and_options() -> None:
    config = preset(
        "vanilla",
        encoder_layers=3,
        decoder_layers=1,
        self_attention="full | blockwise(block_size=8) | blockwise(block_size=4)",
        pooling="mean | soft_topk(base=2.0)",
        pooling_lengths="64,None,16",
        scorer="linear | random(seed=3)",
        feed_forward="dense | dense | dense | dense(activation='gelu')",
    )
    spec = spec_of(config)
    assert [layer.attention for stage in spec.encoder.stages for layer in stage.layers] == [
        Part("full"),
        Part("blockwise", {"block_size": 8}),
        Part("blockwise", {"block_size": 4}),
    ]
    assert [(pooling.pooler, pooling.scorer) for pooling in spec.encoder.poolings.values()] == [
        (Part("mean"), None),
        (Part("soft_topk", {"base": 2.0}), Part("random", {"seed": 3})),
    ]
    assert spec.layers[0].feed_forward == Part("dense", {"activation": "gelu"})


def test_an_encoder_hands_on_what_its_last_stage_does() -> None:
    def handed_on(**fields: Any) -> int:
        config = preset("vanilla", **{"encoder_layers": 3, "max_source_positions": 64, **fields})
        return spec_of(config).encoder.handed_on

    assert handed_on() == 64
    assert handed_on(pooling_lengths="16,None,8") == 8
    assert handed_on(pooling_lengths="None,None,100") == handed_on(pooling_lengths="None,100,None") == 64
    assert handed_on(pooling="mean", pooling_lengths="16,8,None", upsampling="repeat") == 64
