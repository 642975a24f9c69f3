"""The task: long documents in, summaries out."""

from typing import Any

from fairseq.tasks import register_task

from pyramidions.base.notation import parse_options
from pyramidions.plugin.hooks import seed_of
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import LongDocumentSummarizationConfig
from pyramidions.plugin.tasks.copying import copying_batch
from pyramidions.plugin.tasks.document_task import WritingTask
from pyramidions.plugin.tasks.preprocessing import QUERIES, SOURCE_PREFIX, TAGS, Setting
from pyramidions.plugin.tasks.splits import load_split

_NAME = "long_document_summarization"


@register_task(_NAME, dataclass=LongDocumentSummarizationConfig)
class LongDocumentSummarizationTask(WritingTask):
    """Summarization of documents in a folder made by `pyramidions prepare`."""

    cfg: LongDocumentSummarizationConfig
    loader = staticmethod(load_split)

    def __init__(self, cfg: LongDocumentSummarizationConfig) -> None:
        super().__init__(
            cfg,
            _NAME,
            {QUERIES: Setting(None, False), TAGS: Setting(None, False), SOURCE_PREFIX: Setting(cfg.source_prefix, "")},
        )

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch and its gradients; in the first updates, that of copying its documents."""
        if update_num < self.cfg.copying_updates and "net_input" in sample:
            sample = copying_batch(sample, [seed_of(self.cfg), update_num], self.dictionary)
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def validation_generator(self, model: Any) -> Any:
        """Return beam search with the settings of --eval-rouge-args, else the model's own."""
        args = decoding.from_options(parse_options("eval_rouge_args", self.cfg.eval_rouge_args))
        return self.build_generator([model], args)
