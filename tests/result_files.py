"""Result files and a small catalogue, written by hand."""

import copy
import json
from pathlib import Path
from typing import Any

HEAD = (
    "table,row,config,data,starts_from,reference,architecture,encoder_lengths,decoder_length,block_size,"
    "encoder_layers,decoder_layers,train_s,infer256_s,infer512_s,r1,r1_low,r1_high,r2,r2_low,r2_high"
)
VANILLA = "table2/03_vanilla_8k"
POOLED = "table2/08_transpooler_8k_2k"
DEEP = "figure4/pyramidion_16_layers"
CATALOGUE = f"""{HEAD}
table2,3,{VANILLA},arxiv,,{VANILLA},vanilla,8192,8192,,2,2,4.46,6.56,13.27,41.8,41.6,42.1,16.1,15.9,16.4
table2,8,{POOLED},arxiv,,{VANILLA},transpooler,8192,2048,512,2,2,1.26,2.71,5.51,42.7,42.4,43.0,16.7,16.5,16.9
table2,11,table2/11_lsh_8k,arxiv,,{VANILLA},lsh,8192,8192,,2,2,1.69,,13.41,35.7,35.5,36.0,11.2,11.1,11.4
table4,mean,table4/mean,arxiv,,{POOLED},transpooler,"2048,2048",512,512,2,2,,,,38.1,,,13.9,,
figure4,pyramidion-16,{DEEP},arxiv,,figure4/vanilla_16_layers,pyramidion,"8192,8192>2048>512,512",512,512,16,16,,,,,,,,,
"""
_TIMING = {"mean": 0.3, "standard_deviation": 0.01, "median": 0.3}
RESULT = {
    "config": POOLED,
    "data": "arxiv",
    "corpus": {"name": "arxiv", "documents": {"train": 203037, "valid": 6436, "test": 6440}},
    "scale": "paper",
    "data_hash": "3f5c",
    "commit": "8dd1a12",
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "hardware": {"device": "NVIDIA H200", "threads": 8, "gpus": 8, "nodes": 1},
    "seed": 1,
    "training": {"seconds": 3600.0, "updates": 1000, "epochs": 3, "best": {"metric": "rouge2", "value": 16.0}},
    "generation": {"seconds": 60.0},
    "scores": {
        "signature": "rouge-score 0.1.2 | n=6440",
        "rouge1": {"mean": 43.4, "low": 43.1, "high": 43.7},
        "rouge2": {"mean": 16.6, "low": 16.4, "high": 16.8},
        "rougeL": {"mean": 20.0, "low": 19.8, "high": 20.2},
        "rougeLsum": {"mean": 38.0, "low": 37.8, "high": 38.2},
    },
    "times": {
        "reference": VANILLA,
        "repeats": 5,
        "train_batch": 64,
        "decode_batch": 8,
        "precision": "fp32",
        "device": "NVIDIA H200",
        "decode_tokens": [256, 512],
        # Four times faster, between 3.2 and 5 times.
        "train_step": {**_TIMING, "ratio_to_reference": {"medians": 0.25, "low": 0.2, "high": 0.3125}},
        "decode_256": {**_TIMING, "ratio_to_reference": {"medians": 0.5, "low": 0.4, "high": 0.625}},
        "decode_512": {**_TIMING, "ratio_to_reference": {"medians": 0.4, "low": 0.32, "high": 0.5}},
    },
}
DELETED = object()


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return a result with other values, by dotted names."""
    result = copy.deepcopy(RESULT)
    for name, value in changes.items():
        *parts, last = name.split(".")
        place: Any = result
        for part in parts:
            place = place[part]
        if value is DELETED:
            del place[last]
        else:
            place[last] = value
    return result


def write(out: Path, config: str = POOLED, changes: dict[str, Any] | None = None, data: str = "arxiv") -> Path:
    """Write a result of a config on a corpus."""
    path = out / data / config / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(changed({"config": config, "data": data, **(changes or {})})))
    return path


def write_topk(out: Path) -> None:
    """Write what the benchmark of top-k leaves."""
    folder = out / "topk"
    folder.mkdir(parents=True)
    (folder / "topk.png").write_bytes(b"\x89PNG\r\n of the benchmark")
    about = {"command": "x", "commit": "38ff4f9", "machine": "x86_64, 2 threads", "seed": 1, "summary": "sorting pays"}
    (folder / "topk.json").write_text(json.dumps(about))
