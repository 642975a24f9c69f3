"""The task: long documents in, their best sentences out."""

from typing import Any, Optional

import numpy as np
import torch
from fairseq.tasks import register_task
from torch import Tensor

from pyramidions.base.arguments import check_fields
from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_part
from pyramidions.data.folder import DataFolder
from pyramidions.data.labels import HEADING
from pyramidions.extract.selection import MMR_WEIGHT, Budget, SelectionRules, select
from pyramidions.models.config import MAX_SOURCE_POSITIONS, ExtractorConfig
from pyramidions.nn.selector import SELECTOR
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig
from pyramidions.plugin.tasks.document_task import DocumentTask
from pyramidions.plugin.tasks.preprocessing import Preprocessing, Setting
from pyramidions.plugin.tasks.splits import load_labelled_split, no_labels
from pyramidions.text.tokenizer import EOS, Tokenizer

_NAME = "extractive_summarization"


class SentenceExtractor:
    """Writes the best sentences of each document, in reading order, as its only hypothesis."""

    eos = EOS

    def __init__(self, tokenizer: Tokenizer, rules: SelectionRules) -> None:
        self.tokenizer = tokenizer
        self.rules = rules
        self.symbols_to_strip_from_output = {EOS}

    @torch.no_grad()
    def generate(
        self, models: list[Any], sample: dict[str, Any], prefix_tokens: Optional[Tensor] = None, **unused: Any
    ) -> list[list[dict[str, Any]]]:
        """Extract from a batch.

        All units are sentences where the batch has no ``labels`` (B, U).
        """
        for model in models:
            model.eval()
        net_input = sample["net_input"]
        if len(models) > 1 and any(getattr(model, "points", False) for model in models):
            raise UserError(
                f"--path must name one model with the selector pointer, whose choices have no mean, but names "
                f"{len(models)}."
            )
        allowed = sample["labels"] != HEADING if "labels" in sample else None
        scores = torch.stack([model(**net_input, allowed=allowed).float() for model in models]).mean(0)
        rows = zip(net_input["src_tokens"].tolist(), net_input["src_lengths"].tolist(), scores.tolist(), strict=True)
        return [[self._hypothesis(ids[:length], found)] for ids, length, found in rows]

    def _hypothesis(self, ids: list[int], scores: list[float]) -> dict[str, Any]:
        units = self.tokenizer.units_in(ids)
        texts = [self.tokenizer.decode(unit) for unit in units]
        # Truncation may leave nothing of the last sentence but its beginning.
        rated = np.array([score if text else -np.inf for text, score in zip(texts, scores, strict=False)])
        tokens: list[int] = []
        positional: list[float] = []
        chosen = select(texts, rated, self.rules)
        for number, index in enumerate(chosen):
            unit = [*([self.tokenizer.marker_id] if number else []), *units[index]]
            tokens += unit  # type: ignore[arg-type]
            positional += [scores[index]] * len(unit)
        mean = float(np.mean([scores[index] for index in chosen])) if chosen else 0.0
        return {
            "tokens": torch.tensor([*tokens, EOS]),
            "score": torch.tensor(mean),
            "positional_scores": torch.tensor([*positional, mean]),
            "attention": None,
            "alignment": None,
        }


@register_task(_NAME, dataclass=ExtractiveSummarizationConfig)
class ExtractiveSummarizationTask(DocumentTask):
    """Extraction of sentences from documents in a folder made by `pyramidions prepare --labels`.

    Models take ``src_tokens`` (B, L) and return a score for each heading and sentence, (B, U).
    """

    cfg: ExtractiveSummarizationConfig
    loader = staticmethod(load_labelled_split)
    # `LearnedRanker` sees long documents in pieces, which have no end either.
    reads_end = False
    model_does = "rates sentences"
    #: Whether the model selects sentences one by one.
    points = False

    def __init__(self, cfg: ExtractiveSummarizationConfig) -> None:
        super().__init__(cfg)
        folder = DataFolder(cfg.data)
        lengths = {
            "max_source_positions": Setting(cfg.max_source_positions, MAX_SOURCE_POSITIONS, is_needed=True),
            "extract_words": Setting(cfg.extract_words, _summary_words(folder), is_needed=True),
        }
        settings = {"redundancy": Setting(cfg.redundancy, "none"), "mmr_weight": Setting(cfg.mmr_weight, MMR_WEIGHT)}
        self.preprocessing = Preprocessing(folder, _NAME, {**lengths, **settings})
        asked = {name: setting.asked for name, setting in settings.items() if setting.asked is not None}
        check_fields(SelectionRules(Budget(), **asked))

    @property
    def extract_words(self) -> int:
        return self.preprocessing.length("extract_words")

    def max_positions(self) -> int:
        return self.preprocessing.length("max_source_positions")

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model."""
        if self.cfg.mmr_weight is not None and (redundancy := self.preprocessing.setting("redundancy")) != "mmr":
            raise UserError(f"--mmr-weight is an option of --redundancy mmr, but --redundancy is {redundancy}.")
        if self.preprocessing.need_tokenizer().marker_id is None:
            raise no_labels(self.preprocessing.folder)
        selector = getattr(cfg, "selector", ExtractorConfig.selector)
        self.points = SELECTOR[parse_part("selector", selector).kind].points
        return super().build_model(cfg, from_checkpoint)

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        if cfg._name != _NAME:
            raise UserError(f"--task {_NAME} needs --criterion {_NAME}, but --criterion is {cfg._name}.")
        return super().build_criterion(cfg, from_checkpoint)

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> SentenceExtractor:
        decoding.refuse(args, _NAME)
        return self._extractor()

    def validation_generator(self, model: Any) -> SentenceExtractor:
        return self._extractor()

    def _extractor(self) -> SentenceExtractor:
        setting = self.preprocessing.setting
        rules = SelectionRules(Budget(words=self.extract_words), setting("redundancy"), setting("mmr_weight"))
        return SentenceExtractor(self.preprocessing.need_tokenizer(), rules)


def _summary_words(folder: DataFolder) -> Optional[int]:
    """Return the mean words of the training summaries; None for a folder without them."""
    train = folder.manifest["splits"].get("train") if folder.manifest_path.exists() else None
    return None if train is None else max(1, round(train["target_words"]["mean"]))
