"""The pipeline "summarization" that transformers had until version 4, with the same call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pyramidions.base.arguments import Count, CountOrZero, Range, checked, shown
from pyramidions.base.device import Device
from pyramidions.base.errors import UserError
from pyramidions.inference.summarizer import Summarizer


class SummarizationPipeline:
    """Summarizes as transformers' pipeline did; `pipeline` makes one.

    Attributes:
        summarizer: what writes, for all that this call lacks.
    """

    def __init__(self, summarizer: Summarizer) -> None:
        self.summarizer = summarizer

    @checked
    def __call__(
        self,
        texts: str | Sequence[str],
        *,
        max_length: Annotated[int, Range(3)] | None = None,
        min_length: CountOrZero | None = None,
        num_beams: Count | None = None,
        length_penalty: float | None = None,
        no_repeat_ngram_size: CountOrZero | None = None,
        do_sample: bool = False,
        truncation: bool = False,
        batch_size: Count = 8,
    ) -> list[dict[str, str]]:
        """Summarize a text or several, each of any length; `None` uses the model's decoding default.

        Args:
            texts: one, or a list.
            max_length, min_length: 2 above `max_len`, and 1 above `min_len`, of `Summarizer.summarize`.
            num_beams, length_penalty, no_repeat_ngram_size: its `beam`, `length_penalty` and `no_repeat_ngram`.
            do_sample: must be False.
            truncation: read only the beginning of a text that is too long for the model.
            batch_size: as there.

        Returns:
            For each text a dictionary with its `summary_text`.

        Raises:
            UserError: as `Summarizer.summarize`, in its names.
        """
        if do_sample:
            raise UserError("`do_sample` must be False, but is True: `sampling` of `Summarizer.summarize` samples.")
        summaries = self.summarizer.summarize(
            [texts] if isinstance(texts, str) else texts,
            max_len=None if max_length is None else max_length - 2,
            min_len=None if min_length is None else max(min_length - 1, 0),
            beam=num_beams,
            length_penalty=length_penalty,
            no_repeat_ngram=no_repeat_ngram_size,
            long="truncate" if truncation else None,
            batch_size=batch_size,
        )
        return [{"summary_text": summary.text} for summary in summaries]


@checked
def pipeline(
    task: str, model: str | Path, device: Device | Annotated[int, Range(-1)] | None = None
) -> SummarizationPipeline:
    """Return what summarizes as transformers' pipeline did.

    Args:
        task: "summarization".
        model: as in `Summarizer.from_pretrained`.
        device: as there, or the number of a GPU; -1 is the CPU.

    Raises:
        UserError: another task; or as there.
    """
    if task != "summarization":
        raise UserError(f"`task` must be 'summarization', but is {shown(task)}.")
    if isinstance(device, int):
        device = f"cuda:{device}" if device >= 0 else "cpu"
    return SummarizationPipeline(Summarizer.from_pretrained(model, device))
