"""Trains the sentencepiece model of a corpus, and writes it as fairseq's dictionary."""

import io
import random
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import sentencepiece

from pyramidions.base.arguments import Count, OneOf, Range, check_fields
from pyramidions.base.errors import UserError
from pyramidions.data.readers import Document
from pyramidions.text.detection import detect_language
from pyramidions.text.language import Language
from pyramidions.text.tokenizer import (
    BOS,
    EOS,
    NAME_END,
    PAD,
    SENTENCE_MARKER,
    SPECIALS,
    TURN_MARKER,
    UNK,
    SentencePieceTokenizer,
    Tokenizer,
)

MODEL_TYPES = ("unigram", "bpe")
MOST_PIECES = 2**24
#: The order of sums in training depends on the number of threads, and so does the model: the number is the same on
#: every machine.
THREADS = 16
# sentencepiece silently skips longer sentences, so texts without a full stop are cut.
_MAX_CHARACTERS = 4096
_MAX_BYTES = 4 * _MAX_CHARACTERS


class VocabSizeError(UserError):
    """A corpus is too small for a vocabulary."""

    def __init__(self, message: str, most: int = 0) -> None:
        super().__init__(message)
        self.most = most


@dataclass(frozen=True)
class Settings:
    """Settings that determine a vocabulary, together with the documents."""

    vocab_size: int = 32768  # number of pieces, the four special ones included
    model_type: Annotated[str, OneOf(MODEL_TYPES)] = "unigram"
    character_coverage: Annotated[float, Range(0.98, 1)] = 0.9995  # share of the text's characters that get a piece
    sentence_markers: bool = False  # reserve `<sentence>`, which then stands before each sentence
    turn_markers: bool = False  # reserve `<turn>`, which then stands before each line, and `</name>`, behind its name
    fold_case: bool = False  # read capitals as small letters, for a corpus without capitals; documents may have some
    sentences: Count = 500_000  # at most this many sentences of the train split train the vocabulary
    seed: int = 1  # of the random choice of these sentences

    def __post_init__(self) -> None:
        check_fields(self)
        if self.sentence_markers and self.turn_markers:
            raise UserError("`sentence_markers` and `turn_markers` exclude each other.")
        if not len(SPECIALS) < self.vocab_size <= MOST_PIECES:
            raise UserError(
                f"`vocab_size` must be above {len(SPECIALS)}, the number of special pieces, and at most "
                f"{MOST_PIECES:,}, but is {self.vocab_size}."
            )
        if not -(2**63) <= self.seed < 2**63:
            raise UserError(f"`seed` must be a number of 64 bits, but is {self.seed}.")


def training_sentences(documents: Iterable[Document]) -> Iterator[str]:
    """Yield the normalised sentences of documents, summaries and queries, cut to what sentencepiece accepts."""
    for document in documents:
        split = Language(document.language or detect_language(document.source)).sentences
        for text in (document.source, document.target, document.query):
            for sentence in split(text or ""):
                for begin in range(0, len(sentence), _MAX_CHARACTERS):
                    yield sentence[begin : begin + _MAX_CHARACTERS]


def sample(items: Iterable[str], size: int, seed: int) -> list[str]:
    """Draw `size` items, each with the same chance, in one pass and in memory for `size` items.

    Vitter, 1985, "Random sampling with a reservoir", algorithm R. All items when there are no more.
    """
    draw = random.Random(seed)
    kept: list[str] = []
    for position, item in enumerate(items):
        if position < size:
            kept.append(item)
        elif (place := draw.randrange(position + 1)) < size:
            kept[place] = item
    return kept


def train_tokenizer(sentences: list[str], settings: Settings) -> Tokenizer:
    """Train a sentencepiece model with fairseq's special ids; the same sentences give the same bytes."""
    with _normalisation(settings.fold_case) as normalisation:
        model = train_model(
            iter(sentences),
            "vocab_size",
            settings.vocab_size,
            model_type=settings.model_type,
            character_coverage=settings.character_coverage,
            bos_id=BOS,
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNK,
            control_symbols=[SENTENCE_MARKER] * settings.sentence_markers
            + [TURN_MARKER, NAME_END] * settings.turn_markers,
            max_sentence_length=_MAX_BYTES,
            **normalisation,
        )
    return SentencePieceTokenizer(model)


@contextmanager
def _normalisation(fold_case: bool) -> Iterator[dict[str, str]]:
    """Give the trainer's options: texts come normalised, and at most their capitals are changed."""
    if not fold_case:
        yield {"normalization_rule_name": "identity"}
        return
    every = map(chr, range(sys.maxunicode + 1))
    # One letter becomes one letter: İ would become two signs.
    small = {letter: letter.lower() for letter in every if letter != letter.lower() and len(letter.lower()) == 1}
    # sentencepiece takes rules of one's own from a file alone.
    with NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.writelines(f"{ord(letter):X}\t{ord(lower):X}\n" for letter, lower in small.items())
        rules.flush()
        yield {"normalization_rule_tsv": rules.name}


def train_model(sentences: Iterator[str], name: str, size: int, **options: Any) -> bytes:
    """Train a sentencepiece model of normalised sentences."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            vocab_size=size,
            num_threads=THREADS,
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        raise _training_error(str(error), name, size) from None
    return model.getvalue()


def _training_error(message: str, name: str, size: int) -> UserError:
    is_usual = name == "vocab_size" and size == Settings.vocab_size
    said = f"{size}, the default" if is_usual else f"{size}"
    if largest := re.search(r"value <= (\d+)", message):
        told = f"`{name}` must be at most {largest[1]} for a corpus of this size, but is {said}."
        return VocabSizeError(told, int(largest[1]))
    if smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return UserError(
            f"`{name}` must be at least {smallest[1]}, the number of the corpus's characters and special pieces, but "
            f"is {said}."
        )
    return UserError(f"sentencepiece cannot be trained on this corpus: {message}.")


def dictionary_lines(tokenizer: Tokenizer) -> str:
    """Return the text of fairseq's `dict.txt`: every piece after the special ones, with an unused count."""
    return "".join(f"{piece} 1\n" for piece in tokenizer.pieces()[len(SPECIALS) :])
