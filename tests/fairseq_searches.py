"""Our models with fairseq's face, for its searches, and what a model says of a text in one pass, for any search."""

from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf
from torch import Tensor

from pyramidions.nn import Transformer
from pyramidions.plugin.hooks import NGramBlocker
from pyramidions.plugin.models.pyramidion import PyramidionModel, PyramidionModelConfig

PAD, EOS = 1, 2


def dictionary(size: int) -> Dictionary:
    words = Dictionary()
    for number in range(size - len(words)):
        words.add_symbol(f"w{number}")
    return words


def faced(core: Transformer, words: Dictionary, **fields: Any) -> PyramidionModel:
    """Return a model with fairseq's face; ``fields`` are of its config."""
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words, max_positions=lambda: (64, 32))
    face = PyramidionModel.build_model(OmegaConf.structured(PyramidionModelConfig(**fields)), task).eval()
    face.encoder.core, face.decoder.core = core.encoder, core.decoder
    return face


def generated(
    model: PyramidionModel,
    words: Dictionary,
    source: Tensor,
    ngram: int = 0,
    prefix: tuple[int, ...] = (),
    **settings: Any,
) -> list[list[dict[str, Any]]]:
    """Return what fairseq's generator writes of each document, the best hypothesis first."""
    generator = SequenceGenerator([model], words, **settings)
    if ngram:
        # Its own blocks nothing on a CPU.
        generator.repeat_ngram_blocker = NGramBlocker(ngram)
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    forced = torch.tensor([prefix] * len(source)) if prefix else None
    found: list[list[dict[str, Any]]] = generator.generate([model], sample, prefix_tokens=forced)
    return found


def rescored(model: Transformer, document: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probability of each token (T) of a text about a document (L), by one pass without a cache."""
    prefix = torch.cat([torch.tensor([EOS]), tokens[:-1]])
    with torch.no_grad():
        log_probs = model(document[None], prefix[None])[0].log_softmax(-1)
    return log_probs.gather(1, tokens[:, None])[:, 0]
