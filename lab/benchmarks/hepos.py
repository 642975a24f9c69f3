"""What a decoding step costs with HEPOS and with full cross-attention, by the processor's time.

    python lab/benchmarks/hepos.py --out lab/benchmarks/results/hepos-cpu.json
    python lab/benchmarks/hepos.py --tiny --documents 2 --memory 64 --stride 2 --repeats 2

Seconds are those that the processor worked for this program: they do not grow when others use the machine, too. Keys
and values of the memory are drawn at random, the same for both; how they are projected, and whole searches, are timed
by `generate.py --only hepos`. Both decoders are those of deep_blockwise, in float32, and write the same tokens.
"""

import argparse
import time

import torch
from side_by_side import EOS, FIRST, Figure, finish, parser, ratio

from lab.timing import Timed
from pyramidions.models import build, preset
from pyramidions.nn import Decoder, DecoderCache
from pyramidions.nn.attention.state import ProjectedMemory
from pyramidions.nn.sublayer import Memory

FULL, HEPOS = "full cross-attention", "HEPOS"


class Stepper:
    """A decoder that has read a memory and writes on, step by step.

    Args:
        decoder: in evaluation mode.
        args: of the program.
        vectors: of the memory that each head reads.
    """

    def __init__(self, decoder: Decoder, args: argparse.Namespace, vectors: int) -> None:
        self._decoder = decoder
        self._rows = args.documents * args.beam
        # Made in place of the projected memory, which must be a multiple of the stride to need no mask.
        empty = torch.zeros(args.documents, args.stride, decoder.embedder.tokens.embedding_dim)
        self._memory = (Memory(empty),)
        self._cache: DecoderCache = decoder.new_cache()
        self.step(EOS)
        draw = torch.Generator().manual_seed(args.seed)
        shape = (*self._projected[0].keys_values[0].shape[:2], vectors, self._projected[0].keys_values[0].size(3))
        keys = torch.randn(shape, generator=draw)
        for memory in self._projected:
            memory.keys_values = keys.clone(), keys.clone()

    @property
    def _projected(self) -> list[ProjectedMemory]:
        return [state for layer in self._cache.states for state in layer if isinstance(state, ProjectedMemory)]

    @property
    def kept(self) -> int:
        """Bytes of keys and values of the memory."""
        return sum(each.nbytes for memory in self._projected for each in memory.keys_values)

    def step(self, token: int = FIRST) -> None:
        """Write a token of each hypothesis."""
        self._decoder(torch.full((self._rows, 1), token), self._memory, self._cache)

    def seconds(self, steps: int) -> float:
        """Return the processor's seconds of a step."""
        begin = time.process_time()
        for _ in range(steps):
            self.step()
        return (time.process_time() - begin) / steps


def main() -> None:
    """Run the benchmark."""
    made = parser(__doc__, "hepos", devices=False)
    made.add_argument("--documents", type=int, default=8, help="(default: 8)")
    made.add_argument("--memory", type=int, default=8192, help="vectors of each document's (default: 8192)")
    made.add_argument("--beam", type=int, default=2, help="hypotheses of each (default: 2)")
    made.add_argument("--stride", type=int, default=4, help="of HEPOS (default: 4)")
    made.add_argument("--steps", type=int, default=3, help="of a turn (default: 3)")
    made.add_argument("--vocab-size", type=int, default=32768)
    made.add_argument("--tiny", action="store_true", help="models 16 wide, to try the program")
    args = made.parse_args()
    small = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2} if args.tiny else {}
    strided = {"cross_attention": f"hepos(stride={args.stride})"}
    torch.manual_seed(args.seed)
    steppers: dict[str, Stepper] = {}
    with torch.inference_mode():
        for name, fields, vectors in ((FULL, {}, args.memory), (HEPOS, strided, -(-args.memory // args.stride))):
            decoder = build(preset("deep_blockwise", **small, **fields), args.vocab_size).decoder.eval()
            steppers[name] = Stepper(decoder, args, vectors)
            steppers[name].seconds(1)
        turns = [{name: stepper.seconds(args.steps) for name, stepper in steppers.items()} for _ in range(args.repeats)]
    timed = {name: Timed([turn[name] for turn in turns], None) for name in steppers}
    less = steppers[FULL].kept / steppers[HEPOS].kept
    for name, stepper in steppers.items():
        print(f"{name}: {1000 * timed[name].median:.4g} ms a step, {stepper.kept:,} bytes kept")
    figures = [
        ratio(f"a step, {FULL} / {HEPOS}", timed[FULL], timed[HEPOS], 2.0),
        Figure("bytes kept of the memory", less, less, less, float(args.stride)),
    ]
    finish(args, figures, timed, kept={name: stepper.kept for name, stepper in steppers.items()})


if __name__ == "__main__":
    main()
