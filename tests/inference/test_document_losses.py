from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused

from pyramidions.data.folder import DataFolder
from pyramidions.data.readers import Document
from pyramidions.inference.document_losses import FolderLosses, losses_and_copied, token_losses
from pyramidions.models import build, preset
from pyramidions.pretrained.saved_model import load_model
from pyramidions.scoring.examples import FolderDocuments
from pyramidions.text.tokenizer import PAD


def test_the_loss_is_that_of_the_text_and_of_the_next_ones(data: DataFolder, checkpoint: Path) -> None:
    model = load_model(checkpoint)
    found = list(FolderLosses(model, data, "valid", 3, "cpu"))
    references, texts = data.references("valid"), FolderDocuments(data, "valid")
    assert [each.id for each in found] == [reference.id for reference in references[:3]]
    # A split with fewer documents gives all of them.
    assert len(FolderLosses(model, data, "valid", 100, "cpu")) == 6

    def loss(text: int, summary: int) -> float:
        return float(token_losses(model, Document("", texts[text], references[summary].summary)).mean())

    assert [each.own for each in found] == pytest.approx([loss(n, n) for n in range(3)], rel=1e-4)
    # The last one gets the first one's.
    assert [each.another for each in found] == pytest.approx([loss(1, 0), loss(2, 1), loss(0, 2)], rel=1e-4)


def test_the_loss_of_a_token_is_its_negative_log_probability(checkpoint: Path) -> None:
    transformer = load_model(checkpoint).transformer
    source, target = torch.tensor([[7, 8, 9, 2]]), torch.tensor([[10, 11, 2]])
    log_probs = transformer(source, torch.tensor([[2, 10, 11]])).log_softmax(-1)[0].detach()
    expected = [-float(log_probs[n, token]) for n, token in enumerate((10, 11, 2))]
    losses, copied = losses_and_copied(transformer, source, target)
    assert np.allclose(losses, expected, atol=1e-6) and copied is None


@torch.no_grad()
def test_a_token_is_copied_where_the_document_has_it_and_the_gate_is_open() -> None:
    size = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "pooling_lengths": "8,2"}
    transformer = build(preset("pyramidion_pointer", **size), 16, PAD).eval()
    source, target = torch.tensor([[7, 8, 9, 10, 7, 2]]), torch.tensor([[10, 11, 7, 2]])

    def copied(bias: float) -> list[float]:
        pointer = transformer.decoder.output.pointer
        pointer.gate.bias.fill_(bias)
        pointer.value.weight.zero_(), pointer.gate.weight.zero_()
        _, found = losses_and_copied(transformer, source, target)
        assert found is not None
        return [round(share, 4) for share in found.tolist()]

    assert copied(-50) == [1, 0, 1, 1] and copied(50) == [0, 0, 0, 0]
    assert all(0 < share < 1 for share in copied(0)[::2])


def test_another_tokenizer_is_refused(data: DataFolder, checkpoint: Path, tmp_path: Path) -> None:
    other = DataFolder(tmp_path)
    for path in data.path.iterdir():
        (tmp_path / path.name).symlink_to(path)
    other.sentencepiece_path.unlink()
    # A field that the library does not know and keeps.
    other.sentencepiece_path.write_bytes(data.sentencepiece_path.read_bytes() + b"\xc2\x3e\x00")
    with refused("tokenizer"):
        FolderLosses(load_model(checkpoint), other, "valid", 3)
