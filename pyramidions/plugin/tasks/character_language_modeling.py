"""The task: predict each character of a stream from those before it."""

import logging
from typing import Any, Optional

import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.folder import CHARACTERS
from pyramidions.files.progress import counted
from pyramidions.nn.boundaries import Boundaries
from pyramidions.plugin.hooks import block_ngrams, seed_of
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.character_windows import CharacterWindows
from pyramidions.plugin.tasks.config import CharacterLanguageModelingConfig
from pyramidions.plugin.tasks.learning import ScorerRate
from pyramidions.plugin.tasks.splits import is_shuffled
from pyramidions.plugin.tasks.training_run import TrainingRun
from pyramidions.plugin.tasks.training_task import TrainingTask
from pyramidions.text.alphabets import LINE_END, Alphabet
from pyramidions.text.tokenizer import BOS, PAD, UNK

logger = logging.getLogger(__name__)
_NAME = "character_language_modeling"


class CharacterCodec:
    """The letters of a language behind fairseq's interface for subword units."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        symbols = "".join(alphabet.symbols)
        self._symbols = str.maketrans(alphabet.characters, symbols)
        self._characters = str.maketrans(symbols, alphabet.characters)

    def encode(self, text: str) -> str:
        return " ".join(self.alphabet.clean(text).strip(" \n").translate(self._symbols))

    def decode(self, symbols: str) -> str:
        clean = "".join(symbols.split()).translate(self._characters)
        return self.alphabet.written(clean).replace("\n", LINE_END)


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

        The prompts (B, T) are all of one length, which may be 0.
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


@register_task(_NAME, dataclass=CharacterLanguageModelingConfig)
class CharacterLanguageModelingTask(TrainingTask):
    """Language modeling on a folder made by `pyramidions prepare --characters` (Nawrot et al. 2023, section 4).

    `fairseq-eval-lm` scores each character of a split once, in windows that overlap by --context-window: its loss in
    base 2 is the bits per character. `fairseq-interactive` continues lines of text, and `fairseq-generate` the
    first --prefix-size characters of each window of a split.
    """

    cfg: CharacterLanguageModelingConfig
    model_does = "predicts characters"

    def __init__(self, cfg: CharacterLanguageModelingConfig) -> None:
        super().__init__(cfg)
        if cfg.tokens_per_sample < 1:
            raise UserError(
                "`tokens_per_sample` must be at least 1, and above --context-window where that is given, but is "
                f"{cfg.tokens_per_sample}" + (" with it taken off." if cfg.tokens_per_sample < 0 else ".")
            )
        self.folder = CharacterFolder(cfg.data)
        self.alphabet = self.folder.alphabet
        self.dictionary = Dictionary.load(str(self.folder.dictionary_path))

    def state_dict(self) -> dict[str, Any]:
        return {CHARACTERS: self.alphabet.name}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        name = state_dict.get(CHARACTERS, self.alphabet.name)
        if name != self.alphabet.name:
            raise UserError(
                f"The checkpoint is of the alphabet {name!r}, but {self.folder.path} of {self.alphabet.name!r}."
            )

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split."""
        cfg, is_training = self.cfg, is_shuffled(split)
        stream = self.folder.tokens(split, check_hashes=cfg.check_data)
        if is_training and len(stream) < cfg.tokens_per_sample:
            raise UserError(
                f"`tokens_per_sample` must be at most the {counted(len(stream), 'character')} of {split}, but is "
                f"{cfg.tokens_per_sample:,}."
            )
        ends = self.folder.boundaries(split, check_hashes=cfg.check_data) if cfg.piece_boundaries else None
        seed = seed_of(cfg) if is_training else None
        windows = CharacterWindows(stream, cfg.tokens_per_sample, boundaries=ends, seed=seed)
        logger.info("%s: %s in %s", split, counted(len(stream), "character"), counted(len(windows), "window"))
        self.datasets[split] = windows

    def get_batch_iterator(self, dataset: Any, max_tokens: Any = None, max_positions: Any = None, **kwargs: Any) -> Any:
        """Return an iterator over batches that hold every window."""
        longest = int(dataset.sizes.max())
        kind = "window" if isinstance(dataset, CharacterWindows) else "prompt"
        for most, name in ((max_tokens, "--max-tokens"), (max_positions, "the positions of the model")):
            if most is not None and longest > most:
                raise UserError(f"A {kind} of {longest:,} characters must fit {name}, but the most is {most:,}.")
        return super().get_batch_iterator(dataset, max_tokens, **kwargs)

    def eval_lm_dataloader(
        self, dataset: CharacterWindows, batch_size: Optional[int] = None, context_window: int = 0, **kwargs: Any
    ) -> Any:
        """Return the batches of `fairseq-eval-lm`, which has taken ``context_window`` off the length of a window."""
        windows = dataset.with_context(context_window)
        batches = self.get_batch_iterator(windows, max_sentences=batch_size, **kwargs)
        return batches.next_epoch_itr(shuffle=False)

    def begin_learning(self, model: Any, training: TrainingRun) -> Optional[ScorerRate]:
        """Settle what learns."""
        criterion, kinds = training.run.criterion._name, {type(each) for each in model.modules()}
        if criterion != "boundary_cross_entropy" and any(
            issubclass(kind, Boundaries) and kind.loss is not Boundaries.loss for kind in kinds
        ):
            raise UserError(
                f"Boundaries that learn need --criterion boundary_cross_entropy, but --criterion is {criterion}."
            )
        return super().begin_learning(model, training)

    # Writing

    def build_bpe(self, args: Any) -> CharacterCodec:
        """Return the alphabet as fairseq's commands use it: between text and symbols joined by spaces."""
        other = args if isinstance(args, str) else getattr(args, "_name", None)
        if other is not None:
            raise UserError(f"The alphabet is the data's, but --bpe asks for {other!r}.")
        return CharacterCodec(self.alphabet)

    def build_generator(self, models: list[Any], args: Any, seq_gen_cls: Any = None, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's search, which writes characters of the alphabet alone."""
        decoding.check_heeded(args, _NAME)
        generator = super().build_generator(models, args, seq_gen_cls or CharacterGenerator, *rest, **kwargs)
        block_ngrams(generator, args.no_repeat_ngram_size)
        return generator

    def build_dataset_for_inference(
        self, src_tokens: list[Tensor], src_lengths: list[int], **unused: Any
    ) -> LanguagePairDataset:
        """Return the texts that are to be continued; ``</s>`` moves from their ends to their beginnings."""
        prompts = [tokens.roll(1) for tokens in src_tokens]
        return LanguagePairDataset(prompts, src_lengths, self.dictionary, left_pad_source=False)

    def inference_step(
        self, generator: Any, models: list[Any], sample: Any, prefix_tokens: Optional[Tensor] = None, **kwargs: Any
    ) -> list[list[dict[str, Tensor]]]:
        """Continue the texts of a batch.

        ``prefix_tokens`` (B, T) is padded on the right; None stands for what the batch shows behind the first place.
        """
        if not isinstance(generator, CharacterGenerator):  # --score-reference
            return super().inference_step(generator, models, sample)
        if prefix_tokens is None:
            # What is written begins behind </s>.
            prefix_tokens = sample["net_input"]["src_tokens"][:, 1:]
        lengths = prefix_tokens.ne(PAD).sum(dim=1)
        found: list[list[dict[str, Tensor]]] = [[] for _ in prefix_tokens]
        # The search counts from the beginning of the longest: texts of other lengths would be cut elsewhere.
        for length in lengths.unique().tolist():
            rows = torch.nonzero(lengths == length).flatten()
            for row, hypotheses in zip(rows.tolist(), generator.continued(prefix_tokens[rows, :length]), strict=True):
                found[row] = hypotheses
        return found
