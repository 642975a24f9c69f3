"""Records what every model is and computes in this state of the code, to compare later states with.

PYTHONPATH=.:tests python tests/golden/make.py [OUT]
"""

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from golden_models import cost, entries, fields_of, outputs, shapes, small

GOLDEN = Path(__file__).parent / "golden.json.xz"


def recorded() -> dict[str, Any]:
    """Return all of it: the models by their fields, and which of them each preset and file is."""
    names: dict[str, str] = {}
    models: dict[str, Any] = {}
    for name, read in entries().items():
        entry = read()
        fields = fields_of(entry.config)
        key = names[name] = json.dumps([type(entry.config).__name__, fields, entry.lengths], sort_keys=True)
        if key not in models:
            config, lengths = small(entry)
            models[key] = {
                "shapes": shapes(entry),
                "cost": cost(entry),
                "small": {"fields": fields_of(config), "lengths": lengths, "logits": outputs(config, lengths)},
            }
            print(name, file=sys.stderr, flush=True)
    return {"names": names, "models": models}


def write(path: Path) -> None:
    """Write it to a compressed file."""
    path.write_bytes(lzma.compress(json.dumps(recorded(), sort_keys=True).encode(), preset=9))


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
