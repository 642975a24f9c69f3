"""Summaries of documents, extracted or written by trained models, without fairseq.

Its public names are those of `pyramidions`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyramidions import *  # noqa: F403
else:
    from pyramidions import __all__ as __all__
    from pyramidions import __dir__ as __dir__
    from pyramidions import __getattr__ as __getattr__
