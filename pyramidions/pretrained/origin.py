"""Where the weights come from that a model started from."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_LONGEST = 200  # letters of a value


class Origin(NamedTuple):
    """The pretrained model that a model started from."""

    source: str  # its name on the Hugging Face hub, or that of a folder
    family: str  # its family of models
    revision: str | None = None  # its commit on the hub; None for a folder
    licence: str | None = None  # of its weights, as its card says; None if it does not

    def known(self) -> dict[str, str]:
        """Return the known facts as plain values."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    @property
    def on_hub(self) -> bool:
        """Whether the source is a name on the hub."""
        return self.revision is not None


def origin_of(values: Any) -> Origin | None:
    """Return what a checkpoint or an export says about its origin; None if it says nothing of the kind."""
    if not isinstance(values, Mapping):
        return None
    known = {name: values.get(name) for name in Origin._fields}
    said = {name: value[:_LONGEST] for name, value in known.items() if isinstance(value, str) and value}
    return Origin(**said) if {"source", "family"} <= said.keys() else None
