"""The task: passages of documents with missing spans in, the spans out."""

import logging
from typing import Any

from fairseq.tasks import register_task

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.verify import verify_split
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS
from pyramidions.plugin.tasks.config import SpanDenoisingConfig
from pyramidions.plugin.tasks.document_task import DocumentTask
from pyramidions.plugin.tasks.drawn_pairs import DrawnPairs
from pyramidions.plugin.tasks.preprocessing import Length, Preprocessing
from pyramidions.plugin.tasks.run_config import model_name, run_of
from pyramidions.plugin.tasks.span_dataset import Corruption, span_pairs
from pyramidions.plugin.tasks.spans import SpanNoise
from pyramidions.plugin.tasks.splits import indexed, is_shuffled

logger = logging.getLogger(__name__)
_NAME = "span_denoising"


@register_task(_NAME, dataclass=SpanDenoisingConfig)
class SpanDenoisingTask(DocumentTask):
    """Pretraining on the documents of a folder made by `pyramidions prepare` (Raffel et al. 2020, section 3.1.4).

    Each epoch reads a random passage of each document. Random spans of it are replaced by one sentinel each, the
    token for unknown characters, and the decoder writes them, each behind a sentinel. T5's sentinels are numbered;
    here their order says which is which, so that any vocabulary will do. With `copy_spans` the spans stay,
    marked, and the decoder copies them. Summaries are not read.

    Args:
        cfg: what the user said.

    Raises:
        UserError: an option is out of its range.
    """

    cfg: SpanDenoisingConfig

    def __init__(self, cfg: SpanDenoisingConfig) -> None:
        super().__init__(cfg)
        if not 0 < cfg.corrupted_share < 1:
            raise UserError(f"`corrupted_share` must be above 0 and below 1, but is {cfg.corrupted_share}.")
        if not 1 <= cfg.mean_span < float("inf"):
            raise UserError(f"`mean_span` must be at least 1, but is {cfg.mean_span}.")
        lengths = {
            "max_source_positions": Length(cfg.max_source_positions, MAX_SOURCE_POSITIONS),
            "max_target_positions": Length(cfg.max_target_positions, MAX_TARGET_POSITIONS),
        }
        self.preprocessing = Preprocessing(DataFolder(cfg.data), _NAME, lengths)
        self.noise = SpanNoise(cfg.corrupted_share, cfg.mean_span, cfg.copy_spans)

    def max_positions(self) -> tuple[int, int]:
        """Return the most tokens of what is left of a passage, and of its missing spans."""
        return self.preprocessing.length("max_source_positions"), self.preprocessing.length("max_target_positions")

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model.

        Raises:
            UserError: the model rates sentences.
        """
        if model_name(cfg) == "pyramidion_extractor":
            raise UserError(f"--task {_NAME} needs a model that writes, but --arch names an extractor.")
        return super().build_model(cfg, from_checkpoint)

    def loader(self, preprocessing: Preprocessing, split: str, *, check_hashes: bool, warn: bool) -> DrawnPairs:
        """Load the documents of a split.

        Raises:
            UserError: a file is missing or damaged; no passage fits the lengths; or the documents have queries.
        """
        folder, prefix = preprocessing.folder, preprocessing.need_tokenizer().prefix
        verify_split(folder, split, hashes=check_hashes)
        if folder.has_tags:
            raise UserError(f"--task {_NAME} reads documents without tags, but those of {folder.path} have some.")
        if folder.has_queries:
            raise UserError(
                f"--task {_NAME} reads documents without queries, but those of {folder.path} have some: prepare them "
                "without --query-field."
            )
        room = [length - len(prefix) - 1 for length in self.max_positions()]
        longest = self.noise.longest(*room)
        if not longest:
            raise UserError(
                "`max_source_positions` and `max_target_positions` must hold a passage of at least 2 tokens with a "
                f"missing span, but are {' and '.join(map(str, self.max_positions()))}."
            )
        texts = indexed(preprocessing, split, "source")
        sizes = " and ".join(map(str, self.noise.sizes(longest)))
        logger.info("%s: passages of up to %d tokens: %s in source and target", split, longest, sizes)
        run = run_of(self.cfg)
        corruption = Corruption(texts, self.noise, longest, 1 if run is None else run.common.seed)
        return span_pairs(corruption, preprocessing.dictionary, prefix, is_shuffled(split))
