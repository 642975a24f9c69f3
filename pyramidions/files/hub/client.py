"""The library of the hub, and its errors as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library

#: Seconds until a hub that does not answer counts as unreachable.
PATIENCE = 10.0


class UnreachableError(Exception):
    """The hub does not answer; the message is a clause that says why."""


def library(user: str = "A model on the hub") -> Any:
    """Return the library.

    Args:
        user: what needs it, for the error.

    Raises:
        UserError: it is not installed.
    """
    return optional_library("huggingface_hub", user, "constants", "errors")


def address() -> str:
    """Return the hub's address, as the library has it from `HF_ENDPOINT`."""
    return str(library().constants.ENDPOINT)


@contextmanager
def as_sentences(name: str, doing: str = "read") -> Iterator[None]:
    """Turn errors of the library into ours.

    Args:
        name: of a model, for the error.
        doing: what was refused, for the error.

    Raises:
        UserError: the hub refuses.
        UnreachableError: it does not answer.
    """
    errors = library().errors
    try:
        yield
    except errors.GatedRepoError:
        raise UserError(
            f"{name} is gated: ask for access at {address()}/{name.partition('@')[0]}, then run `hf auth login`."
        ) from None
    except errors.RevisionNotFoundError:
        model, _, revision = name.partition("@")
        raise UserError(f"{model} has no revision {revision or 'main'} on the hub.") from None
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"{name} exists neither on this machine nor on the hub, or it is private and needs `hf auth login`."
        ) from None
    except errors.OfflineModeIsEnabled:
        raise UnreachableError("HF_HUB_OFFLINE is set") from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status >= 500:
            raise UnreachableError(f"its status is {status}") from None
        if status in (401, 403):
            raise UserError(f"The hub does not let you {doing} {name}: {_reason(error)}.") from None
        raise UserError(f"The hub refused {name}: {_reason(error)}.") from None
    except errors.LocalEntryNotFoundError:
        raise UnreachableError("the download was interrupted") from None
    except errors.HfHubHTTPError.__bases__ as error:
        # Its base is the class of all errors of the network, of whichever library of HTTP it uses.
        if isinstance(error, OSError) and not isinstance(error, ConnectionError | TimeoutError):
            raise
        raise UnreachableError(" ".join(str(error).split()) or type(error).__name__) from None


def _reason(error: Any) -> str:
    found = error.server_message or error.response.reason_phrase
    return f"{' '.join(found.split()).rstrip('.')} ({error.response.status_code})"
