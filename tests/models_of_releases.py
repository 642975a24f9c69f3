"""The models that older releases left in tests/v0_1_0 and tests/v0_2_0, and the commands that made them."""

import json
import re
from pathlib import Path
from typing import Any

from fairseq_commands import run

FOLDER = Path(__file__).parent / "v0_1_0"
UPDATES = 5

BLOCKS = ["--self-attention-args", '{"block_size": 8}']
LSH = '{"bucket_size": 4, "num_hashes": 2, "local_heads": 1, "window": 4}'
#: what each model of a release is made of, beside the sizes that all share
OF_0_1_0: dict[str, list[str]] = {
    "vanilla": ["--arch", "vanilla"],
    "pyramidion": ["--arch", "pyramidion", *BLOCKS, "--pooling-lengths", "16,8"]
    + ["--scorer", "nonlinear", "--normalize-before"],
    "funnel": ["--arch", "funnel", *BLOCKS, "--pooling-lengths", "16,None,None", "--encoder-layers", "3"],
    "power": ["--arch", "power", *BLOCKS, "--pooling-lengths", "16,8"],
    "lsh": ["--arch", "lsh", "--self-attention-args", LSH],
    "deep_pyramidion": ["--arch", "deep_pyramidion", *BLOCKS, "--pooling-lengths", "None,16,8,None"]
    + ["--encoder-layers", "4", "--checkpoint-activations"],
}
HASHED = '{"bucket_size": 4, "num_hashes": 2, "local_heads": 0}'
OF_0_2_0: dict[str, list[str]] = {
    "terraformer": ["--arch", "terraformer", "--encoder-layers", "4", "--feed-forward-args", '{"block_size": 8}']
    + ["--self-attention", "lsh,sliding_window,strided,efficient"]
    + ["--self-attention-args", f'[{HASHED}, {{"window": 4}}, {{"window": 4, "stride": 3}}, {{"window": 4}}]']
    + ["--decoder-self-attention-args", HASHED, "--decoder-args", '{"longest_memory": 32}']
    + ["--recurrence-args", '{"dim": 4}'],
}
MODELS = {**OF_0_1_0, **OF_0_2_0}
EXPORTED = ("pyramidion", "funnel")
GENERATED = "pyramidion"
FAIRSEQ = "fairseq_transformer"


def folder_of(name: str) -> Path:
    """Return where the files of a model lie; all share the data in v0_1_0."""
    return FOLDER.parent / "v0_2_0" if name in OF_0_2_0 else FOLDER


_SIZES = ["--embed-dim", "8", "--ffn-embed-dim", "16", "--num-heads", "2", "--decoder-layers", "1"]
_SIZES += ["--dropout", "0", "--attention-dropout", "0", "--activation-dropout", "0"]
_SIZES += ["--criterion", "pooled_cross_entropy"]
_THEIRS = ["--arch", "transformer", "--share-all-embeddings", "--criterion", "cross_entropy", "--dropout", "0"]
for _side in ("encoder", "decoder"):
    _THEIRS += [f"--{_side}-embed-dim", "8", f"--{_side}-ffn-embed-dim", "16", f"--{_side}-layers", "2"]
    _THEIRS += [f"--{_side}-attention-heads", "2"]


def training(name: str, data: object, save_dir: object, updates: int, user_dir: object) -> list[object]:
    """Return the `fairseq-train` command of a model; where it has a checkpoint, it goes on from there."""
    shape = _THEIRS if name == FAIRSEQ else [*MODELS[name], *_SIZES]
    # Without dropout nothing is random but the order of the documents.
    return [
        *("fairseq-train", data, *_task(user_dir), *shape, "--save-dir", save_dir, "--max-update", updates),
        *("--max-source-positions", 32, "--max-target-positions", 12, "--batch-size", 4, "--num-workers", 0),
        *("--optimizer", "adam", "--lr", 0.01, "--lr-scheduler", "fixed", "--clip-norm", 1, "--seed", 1),
        *("--disable-validation", "--no-epoch-checkpoints", "--log-format", "json", "--log-interval", 1),
    ]


def losses(log: str) -> dict[str, list[str]]:
    """Loss and norm of the gradients by update, with the digits that fairseq prints."""
    lines = [json.loads(line) for line in re.findall(r"train_inner \| (\{.*\})$", log, re.MULTILINE)]
    return {line["num_updates"]: [line["loss"], line["gnorm"]] for line in lines}


def generated(data: object, checkpoint: object, user_dir: object, folder: Path | None = None) -> dict[str, list[Any]]:
    """Write a summary of each test document by `fairseq-generate`; return score and text by index."""
    command = ["fairseq-generate", data, *_task(user_dir), "--gen-subset", "test", "--path", checkpoint]
    search = ["--beam", 3, "--min-len", 3, "--max-len-b", 8, "--no-repeat-ngram-size", 2, "--batch-size", 2]
    done = run(*command, *search, folder=folder)
    assert done.returncode == 0, done.stdout
    found = re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", done.stdout, re.MULTILINE)
    return {index: [float(score), text] for index, score, text in sorted(found)}


def _task(user_dir: object) -> list[object]:
    return ["--user-dir", user_dir, "--task", "long_document_summarization", "--cpu"]
