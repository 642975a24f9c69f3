"""How probable a text is for a language model of characters, after another one."""

from pathlib import Path

import numpy as np
import torch
from small_language_models import saved
from tables import for_each

from pyramidions.inference.character_likelihood import CharacterLikelihood
from pyramidions.inference.saved_model import load_language_model

PAIRS = [("", "bees fly"), ("foxes dig deep", "bees fly"), ("dogs", "they bark, and bark"), ("bees", "a")]


@torch.no_grad()
def likelihood(path: Path, given: str, text: str) -> float:
    """Return the mean log-probability of a text's characters, in one pass without a batch."""
    model = load_language_model(path)
    clean = model.alphabet.clean(text)
    whole = f"{given} {clean}" if given else clean
    ids = [2, *model.alphabet.encode(whole).tolist()]
    log_probs = model.network(torch.tensor([ids])).double().log_softmax(-1)[0]
    begin = len(ids) - len(clean)
    return float(np.mean([log_probs[place - 1, ids[place]] for place in range(begin, len(ids))]))


@for_each("kind", ["vanilla", "fixed_2", "gumbel"])
def test_it_is_the_mean_log_likelihood_of_each_character_after_the_others(kind: str, tmp_path: Path) -> None:
    path = saved(tmp_path, kind)
    found = CharacterLikelihood.from_pretrained(path)(PAIRS)
    np.testing.assert_allclose(found, [likelihood(path, *pair) for pair in PAIRS], atol=1e-5)


def test_of_a_long_pair_the_beginning_is_left_out(tmp_path: Path) -> None:
    rated = CharacterLikelihood.from_pretrained(saved(tmp_path, "vanilla", window=16))
    first, second, alone = rated([("bees " * 20, "fly"), ("foxes " + "bees " * 20, "fly"), ("", "bees " * 20)])
    assert first == second < 0 and alone < 0


def test_a_text_without_letters_has_no_likelihood_and_models_have_names(tmp_path: Path) -> None:
    rated = [CharacterLikelihood.from_pretrained(saved(tmp_path, "vanilla", seed=seed)) for seed in (0, 1)]
    assert rated[0]([("bees", "...")]).tolist() == [0]
    assert rated[0].name.startswith("characters sha256:") and rated[0].name != rated[1].name
