"""fairseq's search, for streams of characters."""

from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.text.tokenizer import BOS, UNK


class CharacterGenerator(SequenceGenerator):
    """Continues texts by characters of the alphabet up to the length that --max-len-a and --max-len-b allow.

    A stream has no ends to learn from: ``</s>``, ``<s>`` and ``<unk>`` are never written. So --min-len and --unkpen
    change nothing. Scores are those of all characters, a prompt's among them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.token_indices_to_suppress = torch.tensor([BOS, UNK])

    @torch.no_grad()
    def continued(self, prompts: Tensor) -> list[list[dict[str, Tensor]]]:
        """Return the hypotheses of each text, the best first.

        Args:
            prompts: (B, T), the characters that texts begin with, all of one length, which may be 0.

        Raises:
            UserError: the longest length leaves no room behind the prompts.
        """
        given = prompts.size(1)
        longest = min(int(self.max_len_a * given + self.max_len_b), self.max_len - 1)
        if longest <= given:
            raise UserError(
                "The longest text (--max-len-a times the prompt, plus --max-len-b) must be longer than its prompt of "
                f"{given} characters, but has {longest}."
            )
        self.min_len = longest
        found = self._generate({"net_input": {"src_tokens": prompts}}, prefix_tokens=prompts)
        return [self._without_ends(hypotheses) for hypotheses in found]

    def _without_ends(self, hypotheses: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        """Take off the ``</s>`` that the search puts behind the longest text, and its score."""
        for hypothesis in hypotheses:
            scores = hypothesis["positional_scores"][:-1]
            length = len(scores) ** self.len_penalty if self.normalize_scores else 1
            hypothesis |= {
                "tokens": hypothesis["tokens"][:-1],
                "positional_scores": scores,
                "score": scores.sum() / length,
            }
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis["score"].item())
