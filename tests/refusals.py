"""What is refused names the option or the file."""

import re
from typing import Any

import pytest

from pyramidions.base.errors import UserError


def refused(name: str, kind: type[Exception] = UserError) -> Any:
    """Expect an error whose sentence has ``name`` in it."""
    return pytest.raises(kind, match=re.escape(name))
