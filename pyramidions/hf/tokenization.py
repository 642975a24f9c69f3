"""A tokenizer of ours with the interface of transformers."""

from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from transformers import PreTrainedTokenizer

from pyramidions.base.arguments import Range, check
from pyramidions.base.errors import UserError
from pyramidions.pretrained.own_files import TOKENIZER_MAP, tokenizer_fields
from pyramidions.pretrained.saved_model import SavedModel
from pyramidions.text.tokenizer import JsonTokenizer, Numbering, SentencePieceTokenizer, Tokenizer

# Of what tokenizer_config.json says. transformers itself writes 10 ** 30 for a length without limit.
_RULES: dict[str, Any] = {
    "tokenizer": Tokenizer | None,
    "source_prefix": str,
    "queries": bool,
    "max_target_positions": Annotated[int, Range(2)] | None,
    "model_max_length": Annotated[int, Range(2)] | None,
    "max_len": Annotated[int, Range(2)] | None,
    "padding_side": Literal["left", "right"],
    "truncation_side": Literal["left", "right"],
    "model_input_names": list[str],
}


class PyramidionsTokenizer(PreTrainedTokenizer):
    """Turns texts into the ids that our own tokenizer makes of them.

    A document gets the source prefix in front, and `</s>` behind; a summary (``text_target``) has no source prefix. For
    a model that answers queries, call it with the query and the document: the query ends with `</s>`, too. No text is
    read as a special piece. Batches are padded on the right.

    Args:
        sentencepiece_file: sentencepiece.model.
        json_file: tokenizer.json, in place of it.
        tokenizer: of ours, in place of both.
        source_prefix: stands before each document, as "summarize: " does in T5.
        queries: the model answers queries.
        max_target_positions: most tokens of a summary, for truncation; None for ``model_max_length``.
        special_token_ids: of the model, where they are not those of `prepare`; see `Numbering`.
        others: as in transformers; ``model_max_length`` is the most tokens of a document, all that stands around it
            included.

    Raises:
        UserError: there is no file, or it is damaged, or an argument breaks a rule, or special tokens are not those of
            the file: `<s>` or a language, `<pad>`, `</s>` and `<unk>`.
    """

    vocab_files_names: dict[str, str] = {  # noqa: RUF012  (the base class has it of instances)
        "sentencepiece_file": SentencePieceTokenizer.file_name,
        "json_file": JsonTokenizer.file_name,
    }
    model_input_names: list[str] = ["input_ids", "attention_mask"]  # noqa: RUF012
    _auto_map: ClassVar[dict[str, Any]] = TOKENIZER_MAP

    def __init__(
        self,
        sentencepiece_file: str | None = None,
        json_file: str | None = None,
        tokenizer: Tokenizer | None = None,
        source_prefix: str = "",
        queries: bool = False,
        max_target_positions: int | None = None,
        special_token_ids: dict[str, int] | None = None,
        **others: Any,
    ) -> None:
        said = {"source_prefix": source_prefix, "queries": queries, "max_target_positions": max_target_positions}
        check({"tokenizer": tokenizer, **said, **others}, _RULES)
        file = sentencepiece_file or json_file
        if tokenizer is None and file is None:
            names = " or ".join(self.vocab_files_names.values())
            raise UserError(f"A tokenizer must have a file {names}, but has none.")
        self._ours = ours = tokenizer or Tokenizer.from_file(str(file), Numbering.recorded(special_token_ids))
        self._ids = {name: number for number, name in enumerate(self._ours.pieces())}
        if (most := others.get("model_max_length")) is not None:
            self._ours.room(most, "model_max_length")
        markers = self._ours.marker_id, self._ours.name_end_id, self._ours.document_separator_id
        self._markers = {i for i in markers if i is not None}
        # Not `<unk>`, which stands for text.
        named = {"bos_token": ours.bos, "pad_token": ours.pad, "eos_token": ours.eos, "unk_token": ours.unk}
        self._special = {ours.pad, ours.eos, *(() if ours.bos is None else (ours.bos,))} | self._markers
        self._source_prefix = source_prefix
        self._queries = queries
        self.max_target_positions = max_target_positions
        self._reads = True
        for name, i in named.items():
            piece = None if i is None else ours.names([i])[0]
            if (given := others.setdefault(name, piece)) is not None and str(given) != piece:
                raise UserError(f"`{name}` must be {piece}, but is {str(given)!r}.")
        others |= {"split_special_tokens": True, "token_type_ids_include_special_tokens": False}
        # Which it would look for in tokenizer.json.
        others.pop("tokenizer_file", None)
        # What is saved says so, too.
        super().__init__(**said, special_token_ids=ours.special_tokens or None, **others)

    def __call__(self, *texts: Any, **others: Any) -> Any:
        """Tokenize texts, as in transformers; summaries are truncated to ``max_target_positions``."""
        if (most := self.max_target_positions) is not None:
            others.setdefault("max_target_length", min(most, others.get("max_length") or most))
        return super().__call__(*texts, **others)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *arguments: Any, **others: Any) -> Any:
        """Read the tokenizer of an export, or what `save_pretrained` wrote; arguments are those of transformers.

        Raises:
            UserError: as the class; or an argument would change what config.json says of the model.
        """
        for name in ("source_prefix", "queries"):
            if name in others:
                raise UserError(f"`{name}` must not be given: the model was trained with what its export says.")
        return super().from_pretrained(pretrained_model_name_or_path, *arguments, **others)

    @classmethod
    def from_saved(cls, model: SavedModel) -> "PyramidionsTokenizer":
        """Return the tokenizer of a model that `load_model` read."""
        return cls(tokenizer=model.tokenizer, **tokenizer_fields(model))

    @property
    def source_prefix(self) -> str:
        """What stands before each document, as config.json says, too."""
        return self._source_prefix

    @property
    def queries(self) -> bool:
        """The model answers queries, as config.json says, too."""
        return self._queries

    @property
    def vocab_size(self) -> int:
        """Number of pieces, the special ones included."""
        return len(self._ids)

    def tokenize(self, text: str, **others: Any) -> list[str]:  # type: ignore[override]
        """Return the pieces of a text; it is never read as special pieces, whatever ``split_special_tokens`` says."""
        return super().tokenize(text, **{**others, "split_special_tokens": True})

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all pieces."""
        return dict(self._ids)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Return ids as the model reads them.

        Args:
            token_ids_0: of a document or a summary; of the query, if there is one.
            token_ids_1: of the document behind the query.

        Raises:
            UserError: the model needs a query and there is none, or the other way round.
        """
        if not self._reads:
            return self._ours.framed(token_ids_0)
        if self.queries and token_ids_1 is None:
            raise UserError("The model answers queries: give the query, and the document as `text_pair`.")
        if not self.queries and token_ids_1 is not None:
            raise UserError("`text_pair` must not be given: the model was trained without queries.")
        before = self._ours.encode(self.source_prefix)
        if token_ids_1 is None:
            return self._ours.framed(token_ids_0, before)
        return self._ours.framed(token_ids_1, [*before, *token_ids_0, self._ours.eos])

    def prepare_for_model(self, ids: list[int], pair_ids: list[int] | None = None, *others: Any, **more: Any) -> Any:
        """Truncate, frame and pad ids; a query has no markers."""
        if pair_ids is not None:
            ids = [i for i in ids if i not in self._markers] or [self._ours.unk]
        return super().prepare_for_model(ids, pair_ids, *others, **more)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return the number of tokens around a text, or around a query and a document."""
        around = len(self._ours.prefix) + 1 + pair
        return around + (len(self._ours.encode(self.source_prefix)) if self._reads else 0)

    def get_special_tokens_mask(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None, already_has_special_tokens: bool = False
    ) -> list[int]:
        """Return 1 for each special piece, 0 for others, `<unk>` among them."""
        whole = already_has_special_tokens
        ids = token_ids_0 if whole else self.build_inputs_with_special_tokens(token_ids_0, token_ids_1)
        return [int(i in self._special) for i in ids]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Return the text of pieces."""
        return self._ours.decode_pieces(tokens)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str]:
        """Write the file of our tokenizer; return its path."""
        before = f"{filename_prefix}-" if filename_prefix else ""
        path = Path(save_directory) / f"{before}{self._ours.file_name}"
        path.write_bytes(self._ours.model_bytes)
        return (str(path),)

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Do nothing, as that of the config."""

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return self._ours.encode_as_pieces(text)

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids.get(token, self._ours.unk)

    def _convert_id_to_token(self, index: int) -> str:
        return self._ours.names([index])[0]

    def _decode(
        self,
        token_ids: int | list[int],
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **_: Any,
    ) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        if skip_special_tokens:
            text = self._ours.decode(ids)
        else:
            runs = groupby(ids, key=self._special.__contains__)
            text = "".join("".join(self._ours.names(run)) if named else self._ours.decode(run) for named, run in runs)
        return self.clean_up_tokenization(text) if clean_up_tokenization_spaces else text

    def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        for token in new_tokens or []:
            if str(token) not in self._ids:
                raise UserError(f"The vocabulary must stay the {self.vocab_size:,} pieces, but {str(token)!r} is none.")
        return super()._add_tokens(new_tokens, special_tokens)

    # transformers calls these around `text_target`.
    def _switch_to_target_mode(self) -> None:
        self._reads = False

    def _switch_to_input_mode(self) -> None:
        self._reads = True
