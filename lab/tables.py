"""Tables in Markdown."""

import pandas as pd
import tabulate  # noqa: F401  (pandas writes Markdown with it; before the work, where it is not installed)


def markdown(table: pd.DataFrame) -> str:
    """Return a table; columns that are empty throughout are left out."""
    text = table.astype(object).where(table.notna(), "").map(lambda value: str(value).replace("|", "\\|"))
    text = text.loc[:, (text != "").any()]
    return str(text.to_markdown(index=False, disable_numparse=True))


def with_interval(value: float, low: float, high: float, digits: int) -> str:
    """Return "43.40 [43.10, 43.70]", without an interval that is not there, or "" without a value."""
    if pd.isna(value):
        return ""
    shown, *ends = (f"{number:,.{digits}f}".replace("-", "−") for number in (value, low, high))
    return shown if pd.isna(low) else f"{shown} [{', '.join(ends)}]"
