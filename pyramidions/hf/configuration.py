"""The config of a model of ours, as transformers reads and writes it."""

from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS
from pyramidions.models.formats import FORMAT
from pyramidions.pretrained.export_folder import CODE
from pyramidions.pretrained.model_kinds import SUMMARIZER
from pyramidions.pretrained.own_files import AUTO_MAP, CODE_TEXT
from pyramidions.pretrained.places import MODEL_TYPE
from pyramidions.pretrained.saved_model import SavedModel, description
from pyramidions.text.tokenizer import BOS, EOS, PAD


class PyramidionsConfig(PreTrainedConfig):
    """What config.json of an export says.

    Attributes:
        format: of ``model``; today's is read alone.
        kind: "summarizer".
        model: the fields of a `PyramidionConfig`.
        vocab_size: number of pieces, the special ones included.
        prefix: ids that each text begins with, such as that of `<s>`.
        max_source_positions: most tokens of a document, its end included.
        max_target_positions: most tokens of a summary, its end included.
        marker_id: of the piece before sentences or lines, if there is one.
        name_end_id: of the piece behind the name that a line begins with, if there is one.
        document_separator_id: of the piece behind each of several documents, if there is one.
        queries: the model answers queries.
        source_prefix: stands before each document; the tokenizer puts it there.
        source: what is known of the weights that the model started from.

    Raises:
        UserError: it describes no summarizer.
    """

    model_type: ClassVar[str] = MODEL_TYPE
    # Of these, no metric is computed, and documents of a batch differ in their lengths.
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["cache", "encoder_last_hidden_state"]

    format: int = FORMAT
    kind: str = SUMMARIZER.name
    model: dict[str, Any] = field(default_factory=dict)
    vocab_size: int = 0
    prefix: list[int] = field(default_factory=list)
    max_source_positions: int = MAX_SOURCE_POSITIONS
    max_target_positions: int = MAX_TARGET_POSITIONS
    marker_id: int | None = None
    name_end_id: int | None = None
    document_separator_id: int | None = None
    queries: bool = False
    source_prefix: str = ""
    source: dict[str, Any] | None = None
    bos_token_id: int | None = BOS
    pad_token_id: int = PAD
    eos_token_id: int = EOS
    decoder_start_token_id: int = EOS
    is_encoder_decoder: bool = True

    def __post_init__(self, **others: Any) -> None:
        # Those of an export, of weights that change here.
        others.pop("sha256", None)
        if self.kind != SUMMARIZER.name:
            raise UserError(f"`kind` must be {SUMMARIZER.name} for transformers, but is {shown(self.kind)}.")
        super().__post_init__(**others)

    @classmethod
    def from_saved(cls, model: SavedModel) -> "PyramidionsConfig":
        """Return the config of a model that `load_model` read."""
        return cls(**description(model))

    def save_pretrained(self, save_directory: str | PathLike[Any], push_to_hub: bool = False, **others: Any) -> None:
        """Write config.json, and the file that `trust_remote_code` needs."""
        self.auto_map = AUTO_MAP
        Path(save_directory).mkdir(parents=True, exist_ok=True)
        (Path(save_directory) / CODE).write_text(CODE_TEXT, encoding="utf-8")
        super().save_pretrained(save_directory, push_to_hub, **others)

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = None) -> None:
        """Do nothing: what is saved names the classes here, and holds no copy of them."""
