"""The task: long documents in, summaries out."""

from typing import Any, Optional

from fairseq.tasks import register_task
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_options
from pyramidions.data.folder import DataFolder
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS
from pyramidions.plugin.hooks import block_ngrams, model_name
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.document_task import DocumentTask
from pyramidions.plugin.tasks.preprocessing import QUERIES, TAGS, Length, Preprocessing, Setting
from pyramidions.plugin.tasks.splits import load_split

_NAME = "long_document_summarization"


@register_task(_NAME, dataclass=LongDocumentSummarizationConfig)
class LongDocumentSummarizationTask(DocumentTask):
    """Summarization of documents in a folder made by `pyramidions prepare`.

    Args:
        cfg: what the user said.
    """

    cfg: LongDocumentSummarizationConfig
    loader = staticmethod(load_split)

    def __init__(self, cfg: LongDocumentSummarizationConfig) -> None:
        super().__init__(cfg)
        lengths = {
            "max_source_positions": Length(cfg.max_source_positions, MAX_SOURCE_POSITIONS),
            "max_target_positions": Length(cfg.max_target_positions, MAX_TARGET_POSITIONS),
        }
        settings = {QUERIES: Setting(None, False), TAGS: Setting(None, False)}
        self.preprocessing = Preprocessing(DataFolder(cfg.data), _NAME, lengths, settings)

    def max_positions(self) -> tuple[int, int]:
        """Return the most tokens of a document and of a summary."""
        return self.preprocessing.length("max_source_positions"), self.preprocessing.length("max_target_positions")

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, and what validation needs to write summaries with it.

        Raises:
            UserError: the model rates sentences.
        """
        if model_name(cfg) == "pyramidion_extractor":
            raise UserError(f"--task {_NAME} needs a model that writes, but --arch names an extractor.")
        return super().build_model(cfg, from_checkpoint)

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's generator with the user's settings, else the models' own."""
        decoding.fill_in(args, models)
        generator = super().build_generator(models, args, *rest, **kwargs)
        block_ngrams(generator, args.no_repeat_ngram_size)
        return generator

    def inference_step(
        self,
        generator: Any,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
    ) -> Any:
        """Write summaries of a batch; each begins with the tokenizer's prefix unless another is given."""
        prefix, source = self.preprocessing.need_tokenizer().prefix, sample["net_input"]["src_tokens"]
        if prefix_tokens is None and prefix:
            prefix_tokens = source.new_tensor(prefix).repeat(len(source), 1)
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    def validation_generator(self, model: Any) -> Any:
        """Return beam search with the settings of --eval-rouge-args, else the model's own."""
        args = decoding.from_options(parse_options(self.cfg.eval_rouge_args, "eval_rouge_args"))
        return self.build_generator([model], args)
