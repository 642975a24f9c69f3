"""Tables of the flags that our models, tasks, criterions and schedules add to fairseq-train; flags.md shows them.

python docs/training_flags.py
"""

from argparse import SUPPRESS
from collections.abc import Iterator
from dataclasses import MISSING, fields
from html import escape
from importlib.util import find_spec
from typing import Any

from pyramidions.base.arguments import flag_of

HEAD = "| flag | default | meaning |\n|---|---|---|"


def tables() -> str:
    """Return in Markdown a table for each part; a sentence where fairseq is missing."""
    if find_spec("fairseq") is None:
        return "The flags are missing here: fairseq, which has them, was not installed when this page was made.\n"
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    import pyramidions.plugin  # noqa: F401  (registers ours)

    kinds = {"--arch": MODEL_DATACLASS_REGISTRY, "--task": TASK_DATACLASS_REGISTRY}
    kinds |= {flag_of(name): REGISTRIES[name]["dataclass_registry"] for name in ("criterion", "lr_scheduler")}
    blocks = []
    for flag, parts in kinds.items():
        for name, config in parts.items():
            if config.__module__.startswith("pyramidions"):
                presets = sorted(f"`{arch}`" for arch, model in ARCH_MODEL_NAME_REGISTRY.items() if model == name)
                also = f"Its presets: {', '.join(presets)}.\n\n" if flag == "--arch" else ""
                rows = "\n".join(_rows(config(), is_task=flag == "--task"))
                blocks.append(f"## {flag} {name}\n\n{also}{HEAD}\n{rows}\n")
    return "\n".join(blocks)


def _rows(config: Any, *, is_task: bool) -> Iterator[str]:
    for field in fields(config):
        value, meaning = getattr(config, field.name), field.metadata.get("help", SUPPRESS)
        # What is taken from another part is listed there, or is fairseq's own.
        is_taken = str(value).startswith("${") or (field.name == "max_source_positions" and not is_task)
        if field.name.startswith("_") or is_taken or meaning == SUPPRESS:
            continue
        flag = "DATA" if field.name == "data" else flag_of(field.name)
        shown = "off" if value is False else "" if value in (None, MISSING, "???") else f"`{value}`"
        meaning = escape(meaning, quote=False).replace("|", r"\|")
        yield f"| `{flag}` | {shown} | {meaning} |"


if __name__ == "__main__":
    print(tables())
