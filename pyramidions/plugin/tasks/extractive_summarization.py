"""The task: long documents in, their best sentences out."""

from typing import Any, Optional

from fairseq.tasks import register_task

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.extract.selection import MMR_WEIGHT, Budget, SelectionRules
from pyramidions.models.config import MAX_SOURCE_POSITIONS
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig
from pyramidions.plugin.tasks.preprocessing import Length, Preprocessing, Setting
from pyramidions.plugin.tasks.run_config import model_name
from pyramidions.plugin.tasks.scored_task import ScoredTask
from pyramidions.plugin.tasks.sentence_extractor import SentenceExtractor
from pyramidions.plugin.tasks.splits import load_labelled_split, no_labels

_NAME = "extractive_summarization"


@register_task(_NAME, dataclass=ExtractiveSummarizationConfig)
class ExtractiveSummarizationTask(ScoredTask):
    """Extraction of sentences from documents in a folder made by `pyramidions prepare --labels`.

    Models take ``src_tokens`` (B, L) and return a score for each heading and sentence, (B, U).

    Args:
        cfg: what the user said.

    Raises:
        UserError: an option is out of its range.
    """

    cfg: ExtractiveSummarizationConfig
    loader = staticmethod(load_labelled_split)
    # `LearnedRanker` sees long documents in pieces, which have no end either.
    reads_end = False

    def __init__(self, cfg: ExtractiveSummarizationConfig) -> None:
        super().__init__(cfg)
        folder = DataFolder(cfg.data)
        lengths = {
            "max_source_positions": Length(cfg.max_source_positions, MAX_SOURCE_POSITIONS),
            "extract_words": Length(cfg.extract_words, _summary_words(folder), least=1, reason="one word"),
        }
        settings = {"redundancy": Setting(cfg.redundancy, "none"), "mmr_weight": Setting(cfg.mmr_weight, MMR_WEIGHT)}
        self.preprocessing = Preprocessing(folder, _NAME, lengths, settings)
        asked = {name: setting.asked for name, setting in settings.items() if setting.asked is not None}
        SelectionRules(Budget(), **asked).check()

    @property
    def extract_words(self) -> int:
        """Words of an extract."""
        return self.preprocessing.length("extract_words")

    def max_positions(self) -> int:
        """Return the most tokens of a document."""
        return self.preprocessing.length("max_source_positions")

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model.

        Raises:
            UserError: the data has no sentence markers, the model writes, or an option has no effect.
        """
        if self.cfg.mmr_weight is not None and (redundancy := self.preprocessing.setting("redundancy")) != "mmr":
            raise UserError(f"--mmr-weight is an option of --redundancy mmr, but --redundancy is {redundancy}.")
        if self.preprocessing.need_tokenizer().marker_id is None:
            raise no_labels(self.preprocessing.folder)
        if model_name(cfg) == "pyramidion":
            raise UserError(f"--task {_NAME} needs a model that rates sentences, such as --arch extractor.")
        return super().build_model(cfg, from_checkpoint)

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the criterion.

        Raises:
            UserError: it is made for models that write.
        """
        if cfg._name != _NAME:
            raise UserError(f"--task {_NAME} needs --criterion {_NAME}, but --criterion is {cfg._name}.")
        return super().build_criterion(cfg, from_checkpoint)

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> SentenceExtractor:
        """Build what extracts.

        Raises:
            UserError: a flag of beam search is given.
        """
        decoding.refuse(args, _NAME)
        return self._extractor()

    def validation_generator(self, model: Any) -> SentenceExtractor:
        """Return what extracts at validation."""
        return self._extractor()

    def _extractor(self) -> SentenceExtractor:
        setting = self.preprocessing.setting
        rules = SelectionRules(Budget(words=self.extract_words), setting("redundancy"), setting("mmr_weight"))
        return SentenceExtractor(self.preprocessing.need_tokenizer(), rules)


def _summary_words(folder: DataFolder) -> Optional[int]:
    """Return the mean words of the training summaries; None for a folder without them."""
    train = folder.manifest["splits"].get("train") if folder.manifest_path.exists() else None
    return None if train is None else max(1, round(train["target_words"]["mean"]))
