"""Makes the files of this folder by release 0.1.0, and those of v0_2_0 by 0.2.0: trained models and what they compute.

They are the evidence that later versions read what those wrote, so they are made once, and only by that release. From
the repository's root:

    git worktree add ../v0_1_0 220c2a1    # 0e26640 for 0.2.0
    PYTHONPATH=../v0_1_0:tests python tests/v0_1_0/make.py

The folder then holds
    data/                    data folder of a toy corpus, by `pyramidions prepare` (of 0.1.0 only, as what is not NAME)
    NAME.pt.xz               `checkpoint_last.pt` of `fairseq-train` after 5 updates, Adam's state included
    NAME.export/             the same by `pyramidions export`
    NAME.json                outputs of the model, see tests/recorded_outputs.py; `resumed`: the losses of the next 3
                             updates, and the outputs after them
    generated.json           what `fairseq-generate` writes with one of them
    fairseq_transformer.pt.xz   weights of a Transformer of fairseq itself; its .json holds logits by fairseq
"""

import json
import lzma
import random
import shutil
import tempfile
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq_commands import run
from models_of_releases import (
    EXPORTED,
    FAIRSEQ,
    FOLDER,
    GENERATED,
    OF_0_1_0,
    OF_0_2_0,
    UPDATES,
    folder_of,
    generated,
    losses,
    training,
)
from recorded_outputs import PREFIX, documents, numbers, outputs

import pyramidions
from pyramidions.inference import load_model


def checked(*command: object, folder: Path) -> str:
    done = run(*command, folder=folder)
    assert done.returncode == 0, done.stdout
    return done.stdout


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value) + "\n")


def prepare(work: Path) -> None:
    """A corpus of made-up words: few characters make a small vocabulary."""
    draw = random.Random(1)
    words = ["ana", "banana", "nab", "ban", "sea", "seas", "tea", "teas", "neat", "east", "best", "beat", "set", "tent"]

    def text(count: int) -> str:
        return " ".join(draw.choice(words) for _ in range(count)) + "."

    (work / "corpus").mkdir()
    for split, count in (("train", 12), ("valid", 2), ("test", 3)):
        with (work / "corpus" / f"{split}.jsonl").open("w") as file:
            for number in range(count):
                record = {"id": f"{split}{number}", "article": text(draw.randint(3, 9)), "abstract": text(2)}
                file.write(json.dumps(record) + "\n")
    checked("pyramidions", "prepare", "corpus", "--out", "data", "--vocab-size", 20, "--model-type", "bpe", folder=work)


def main() -> None:
    models = {"0.1.0": [FAIRSEQ, *OF_0_1_0], "0.2.0": [*OF_0_2_0]}[pyramidions.__version__]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # Checkpoints hold the command line: relative paths tell nothing of this machine.
        (work / "pyramidions").symlink_to(Path(pyramidions.__file__).parent)
        if FAIRSEQ in models:
            prepare(work)
            shutil.rmtree(FOLDER / "data", ignore_errors=True)
            shutil.copytree(work / "data", FOLDER / "data")
        else:
            shutil.copytree(FOLDER / "data", work / "data")
        for name in models:
            checked(*training(name, "data", name, UPDATES, user_dir="pyramidions"), folder=work)
            checkpoint = Path(shutil.copy(work / name / "checkpoint_last.pt", work / f"{name}.pt"))
            if name == FAIRSEQ:
                by_fairseq(checkpoint, work / "data")
                continue
            pack(checkpoint)
            recorded = outputs(load_model(checkpoint).transformer)
            log = checked(*training(name, "data", name, UPDATES + 3, user_dir="pyramidions"), folder=work)
            after = outputs(load_model(work / name / "checkpoint_last.pt").transformer)
            write_json(
                folder_of(name) / f"{name}.json", {**recorded, "resumed": {"losses": losses(log), "outputs": after}}
            )
            if name in EXPORTED:
                shutil.rmtree(FOLDER / f"{name}.export", ignore_errors=True)
                checked("pyramidions", "export", f"{name}.pt", f"{name}.export", folder=work)
                shutil.copytree(work / f"{name}.export", FOLDER / f"{name}.export")
        if GENERATED in models:
            write_json(FOLDER / "generated.json", generated("data", f"{GENERATED}.pt", "pyramidions", work))


@torch.no_grad()
def by_fairseq(checkpoint: Path, data: Path) -> None:
    """Keep the weights of fairseq's own Transformer, and what it computes."""
    with torch.serialization.safe_globals([Namespace]):
        state = torch.load(checkpoint)
    words = Dictionary.load(str(data / "dict.txt"))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    model = TransformerModel.build_model(state["cfg"]["model"], task).eval()
    model.load_state_dict(state["model"])
    torch.save({"model": state["model"]}, checkpoint)
    pack(checkpoint)
    tokens = documents()
    logits, _ = model(tokens, tokens.ne(1).sum(1), torch.tensor([PREFIX] * len(tokens)))
    write_json(FOLDER / f"{FAIRSEQ}.json", {"logits": numbers(logits)})


def pack(checkpoint: Path) -> None:
    (folder_of(checkpoint.stem) / f"{checkpoint.name}.xz").write_bytes(lzma.compress(checkpoint.read_bytes(), preset=9))


if __name__ == "__main__":
    main()
