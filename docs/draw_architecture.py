"""Draws docs/architecture.svg from the presets: how many vectors each layer works on, and what the decoder reads.

python docs/draw_architecture.py
"""

from pathlib import Path
from xml.sax.saxutils import escape

from pyramidions.base.notation import parse_part
from pyramidions.models import PyramidionConfig, preset
from pyramidions.models.stages import parse_pooling_lengths

SOURCE = 8192
PANEL, GAP, LEFT, TOP = 400, 70, 40, 72
ROW, BAR = 44, 24
STYLE = """
  .ground { fill: #ffffff } text { font: 13px sans-serif; fill: #1f2933 } .title { font-weight: bold; font-size: 15px }
  .note { fill: #52606d } .block { fill: #9fb8d9; stroke: #ffffff } .pooled { fill: #f0a35e; stroke: #ffffff }
  .funnel { fill: #f7d9bd } .decoder { fill: #8fbf9a; stroke: #ffffff } .line { stroke: #8fbf9a; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) { .ground { fill: #1f2933 } text { fill: #f5f7fa } .note { fill: #cbd2d9 }
    .block, .pooled, .decoder { stroke: #1f2933 } .funnel { fill: #6b4a2c } }
"""


def consumed(config: PyramidionConfig) -> list[int]:
    """Return how many vectors each encoder layer works on, and last what the decoder reads."""
    pooled = parse_pooling_lengths(config.pooling_lengths, config.encoder_layers)
    lengths = [SOURCE]
    for layer in range(config.encoder_layers):
        lengths.append(min(lengths[-1], pooled.get(layer, lengths[-1])))
    return lengths


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return a line of text, its middle at ``x``."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" class="{kind}">{escape(words)}</text>'


def panel(name: str, left: float) -> list[str]:
    """Return one architecture: its encoder from the bottom up, its decoder on top."""
    config = preset(name)
    lengths = consumed(config)
    block = parse_part("self_attention", config.self_attention).options.get("block_size", SOURCE)
    middle = left + PANEL / 2
    bottom = TOP + ROW * config.encoder_layers
    parts = [text(middle, TOP - 18, name, "title")]
    for layer, length in enumerate(lengths[:-1]):
        y = bottom - ROW * layer
        width = PANEL * length / SOURCE
        kind = "block" if length == SOURCE else "pooled"
        for start in range(0, length, block):
            x = middle - width / 2 + PANEL * start / SOURCE
            wide = PANEL * min(block, length - start) / SOURCE
            parts.append(f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{BAR}" class="{kind}"/>')
        label = f"layer {layer + 1}: {length:,} vectors"
        where = (middle, y + 16) if length == SOURCE else (middle + width / 2 + 78, y + 16)
        parts.append(text(*where, label))
        after = PANEL * lengths[layer + 1] / SOURCE
        if lengths[layer + 1] < length:
            corners = [
                (middle - width / 2, y),
                (middle - after / 2, y - ROW + BAR),
                (middle + after / 2, y - ROW + BAR),
                (middle + width / 2, y),
            ]
            points = " ".join(f"{x:g},{y:g}" for x, y in corners)
            parts.append(f'<polygon points="{points}" class="funnel"/>')
            parts.append(text(middle, y - 5, f"soft top-{lengths[layer + 1]:,}", "note"))
    y = bottom - ROW * config.encoder_layers
    parts.append(f'<line x1="{middle:g}" x2="{middle:g}" y1="{y + ROW:g}" y2="{y + BAR - 4:g}" class="line"/>')
    parts.append(f'<rect x="{left:g}" y="{y - 4:g}" width="{PANEL}" height="{BAR}" class="decoder"/>')
    reads = f"decoder, {config.decoder_layers} layers that each read {lengths[-1]:,} vectors"
    parts.append(text(middle, y + 12, reads))
    pairs = sum(length * min(block, length) for length in lengths[:-1]) / 1e6
    parts.append(text(middle, bottom + 58, f"encoder attention: {pairs:,.1f} million pairs", "note"))
    share = f"{100 * lengths[-1] / SOURCE:g}%"
    parts.append(text(middle, bottom + 78, f"memory of the decoder: {share} of the document", "note"))
    return parts


def figure() -> str:
    """Return the figure as SVG."""
    names = ("deep_blockwise", "deep_pyramidion")
    rows = max(preset(name).encoder_layers for name in names)
    width = 2 * LEFT + len(names) * PANEL + (len(names) - 1) * GAP
    height = TOP + ROW * rows + 100
    parts = [text(width / 2, 24, "A document of 8,192 tokens, one rectangle a block of 512", "note")]
    for number, name in enumerate(names):
        parts += panel(name, LEFT + number * (PANEL + GAP))
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
        ' aria-label="Vectors per layer of deep_blockwise and deep_pyramidion">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" class="ground"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(svg) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("architecture.svg").write_text(figure(), encoding="utf-8")
