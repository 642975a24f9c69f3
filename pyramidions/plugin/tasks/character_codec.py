"""Characters as fairseq's commands read and write them."""

from pyramidions.text.alphabets import LINE_END, Alphabet
from pyramidions.text.tokenizer import SPACE


class CharacterCodec:
    """The letters of a language behind fairseq's interface for subword units.

    Args:
        alphabet: the letters.
    """

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def encode(self, text: str) -> str:
        """Return the symbols of a text, joined by spaces, after what `pyramidions prepare` does to texts."""
        return " ".join(self.alphabet.clean(text).strip().replace(" ", SPACE).replace("\n", LINE_END))

    def decode(self, symbols: str) -> str:
        """Return the text of symbols joined by spaces, in one line."""
        return "".join(symbols.split()).replace(SPACE, " ")
