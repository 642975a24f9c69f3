"""Training settings of an extractor for a corpus of a given size."""

import math
from typing import NamedTuple

from pyramidions.runs.measure.recipe import CorpusSize, rounded_up

#: Tokens a second that are assumed: one core of a server, and an A100.
CPU_TOKENS, GPU_TOKENS = 60_000, 1_500_000
_LONGEST = 8192  # tokens that are read of a document
_BATCH = 16_384  # tokens
# Documents that a run reads, at least one epoch: half an hour on a core, minutes on a GPU. 200 papers teach no more
# after ten epochs.
_READ = {False: 15_000, True: 120_000}
_MOST_EPOCHS = 10


class ExtractorRecipe(NamedTuple):
    """Settings for a corpus.

    Attributes:
        flags: of fairseq-train, but for its folders.
        epoch_updates, updates: of an epoch, and of the run.
        hours: estimated, of all workers together.
    """

    flags: tuple[str, ...]
    epoch_updates: int
    updates: int
    hours: float


def extractor_vocab_size(documents: int) -> int:
    """Return the number of pieces that suits a number of documents."""
    return 4000 if documents <= 2_000 else 16_000


def extractor_recipe(corpus: CorpusSize, gpus: int, hours: float | None = None) -> ExtractorRecipe:
    """Return the settings for a corpus.

    The learning rate falls to 0 by the end, so the number of updates is decided here.

    Args:
        corpus: what is known of it.
        gpus: that train; 0 for the CPU.
        hours: by the clock, that the training may take; fewer updates fit into fewer hours.
    """
    on_gpu, workers = gpus > 0, max(gpus, 1)
    longest = min(_LONGEST, rounded_up(corpus.source["p95"], 512))
    tokens = corpus.documents * min(longest, corpus.source["mean"])
    # Batches are not filled to the last token.
    epoch_updates = math.ceil(1.1 * tokens / (_BATCH * workers))
    updates = round(min(_MOST_EPOCHS, max(1.0, _READ[on_gpu] / corpus.documents)) * epoch_updates)
    speed = (GPU_TOKENS if on_gpu else CPU_TOKENS) * workers
    if hours is not None:
        # The rest is for validation, and for a slower machine.
        updates = max(1, min(updates, int(0.7 * hours * 3600 * speed / (_BATCH * workers))))
    # A stopped run loses a tenth at most.
    saves = ("--save-interval-updates", str(updates // 10), "--keep-interval-updates", "1")
    flags = (
        *("--arch", "extractor", "--max-source-positions", str(longest)),
        *("--criterion", "extractive_summarization", "--optimizer", "adam", "--clip-norm", "1.0"),
        *("--lr", "1e-3", "--lr-scheduler", "polynomial_decay", "--warmup-updates", str(min(200, updates // 10))),
        *("--total-num-update", str(updates), "--max-update", str(updates), "--max-tokens", str(_BATCH)),
        *("--eval-rouge", "--best-checkpoint-metric", "rouge1", "--maximize-best-checkpoint-metric"),
        *(saves if epoch_updates > updates // 5 else ()),
        "--no-epoch-checkpoints",
    )
    return ExtractorRecipe(flags, epoch_updates, updates, updates * _BATCH * workers / speed / 3600)
