"""Words of a lexicon, written without spaces: a model that is surprised where they begin finds where they end."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.models import build_language_model, language_model_preset

LETTERS, FIRST, LENGTH = 10, 4, 96


def stream(characters: int) -> tuple[Tensor, Tensor]:
    """Return letters (N,), and whether each is the last of a word (N,)."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(4, 8, (30,), generator=generator).tolist()
    lexicon = [torch.randint(FIRST, FIRST + LETTERS, (length,), generator=generator) for length in lengths]
    words = [lexicon[number] for number in torch.randint(30, (characters // 4,), generator=generator).tolist()]
    ends = torch.cat([torch.arange(len(word)) == len(word) - 1 for word in words])
    return torch.cat(words)[:characters], ends[:characters]


def f1(found: Tensor, wanted: Tensor) -> float:
    return float(2 * (found & wanted).sum() / (found.sum() + wanted.sum()))


@pytest.mark.slow
def test_entropy_rises_where_a_word_begins_and_the_predictor_learns_it() -> None:
    torch.manual_seed(0)
    shape = {"embed_dim": 64, "ffn_embed_dim": 128, "num_heads": 4, "layers": "1,1,1", "dropout": 0.0}
    config = language_model_preset("hourglass_entropy", **shape, attention_dropout=0.0, activation_dropout=0.0)
    model = build_language_model(config, FIRST + LETTERS)
    letters, ends = (part.unfold(0, LENGTH + 1, LENGTH) for part in stream(40000))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(320):
        rows = torch.randint(8, len(letters), (16,))
        found = model.features(letters[rows, :-1])
        logits = model.logits(found.x)
        loss = F.cross_entropy(logits.flatten(0, 1), letters[rows, 1:].flatten())
        added = model.boundary_loss(found.segmentations, model.boundary_targets(logits))
        assert added is not None
        optimizer.zero_grad()
        (loss + added.mean() / LENGTH).backward()
        optimizer.step()
    # Windows that were not trained on; what comes first in one has too little to go by.
    found = model.eval().features(letters[:8, :-1])
    spikes = model.boundary_targets(model.logits(found.x))
    assert spikes is not None
    wanted = ends[:8, :-1][:, 16:]
    assert f1(spikes[:, 16:], wanted) >= 0.8
    assert f1(found.segmentations[0].boundaries[:, 16:] != 0, wanted) >= 0.8
