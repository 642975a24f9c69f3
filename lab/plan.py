"""Which steps a row takes, with their commands."""

import re
import sys
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from lab.catalogue import MARKED, PaperRow
from lab.run import RowStep, bits_of, joined
from lab.scale import Scale
from pyramidions.base.errors import UserError
from pyramidions.data.corpora.table import KNOWN
from pyramidions.files.processes import program
from pyramidions.models.experiment import read_experiment
from pyramidions.runs.steps import Command

GENERATED = "generate-test.txt"
_COMPOSING = Lock()


@cache
def composed(configs: Path, overrides: tuple[str, ...], base: str = "base") -> dict[str, Any]:
    """Return the settings of a run, as Hydra composes them from a base among the configs; callers do not change them.

    Raises:
        UserError: settings of documents that break a rule.
    """
    # Hydra composes one config at a time.
    with _COMPOSING:
        if base == "base":
            return read_experiment(str(configs / "base.yaml"), overrides).run
        from hydra import compose, initialize_config_dir
        from omegaconf import OmegaConf

        with initialize_config_dir(str(configs.resolve()), version_base="1.1"):
            run: Any = OmegaConf.to_container(compose(base, overrides=list(overrides)))
        return run


@dataclass(frozen=True)
class Machines:
    """What computes: no GPU is the CPU, and no number of documents that of the config."""

    gpus: int
    nodes: int = 1
    documents_per_gpu: int | None = None

    def __post_init__(self) -> None:
        if self.nodes > 1 and self.gpus == 0:
            raise UserError(f"--gpus must be at least 1 where --nodes is {self.nodes}, but is 0.")

    @property
    def processes(self) -> int:
        """Processes that train together."""
        return max(self.gpus, 1) * self.nodes

    def update_freq(self, documents: int, batch_size: int) -> int:
        """Return over how many batches gradients add up to about so many documents an update."""
        return max(1, round(documents / (self.processes * batch_size)))

    def documents_an_update(self, documents: int, batch_size: int) -> int:
        """Return how many documents an update really sees."""
        return self.update_freq(documents, batch_size) * self.processes * batch_size


@dataclass(frozen=True)
class Planner:
    """Knows the commands of every row.

    Attributes:
        out: where all results go.
        configs: the folder of configs, at this scale.
        plugin: what fairseq takes as --user-dir.
        corpora: name of a corpus ("arxiv") to its prepared folder, or to documents that are prepared under ``out``;
            a corpus that is missing or None is fetched from the hub.
        metrics: of the scores, ROUGE among them.
        seed: of the trainings, which then have a folder each; None for the config's.
        files: holds what ``configs`` would while nothing is written there; None for ``configs``.
    """

    out: Path
    configs: Path
    scale: Scale
    machines: Machines
    plugin: Path
    corpora: dict[str, Path | None]
    metrics: tuple[str, ...] = ("rouge",)
    seed: int | None = None
    files: Path | None = None

    def folder(self, row: PaperRow) -> Path:
        """Return where the results of a row lie, or those of the seed."""
        return self._folder_of(row.data, row.config)

    def _folder_of(self, data: str, config: str) -> Path:
        folder = self.out / data / config
        return folder if self.seed is None else folder / f"seed-{self.seed}"

    def _trained(self, folder: Path) -> Path:
        return folder / "checkpoints" / self.scale.checkpoint

    def data(self, corpus: str) -> Path:
        """Return the prepared folder of a corpus, with `MARKED` behind its name if it needs sentence markers."""
        name, marked, _ = corpus.partition(MARKED)
        given = self.corpora.get(name)
        if _characters(name) is not None:
            # Each number of pieces has a folder of its own.
            return given if given is not None and given.name == name else self.out / "data" / name
        if given is not None and (given / "manifest.json").is_file():
            return given
        return self.out / "data" / f"{name if given is None else given.name}{marked}"

    def prepare(self, corpus: str) -> RowStep | None:
        """Return how a corpus is prepared; None where it is."""
        name, marked, _ = corpus.partition(MARKED)
        data, given = self.data(corpus), self.corpora.get(name)
        if (data / "manifest.json").is_file():
            return None
        if (characters := _characters(name)) is not None:
            flags = self._of_characters(*characters, given, data)
        else:
            # The name on the hub: a folder of the corpus's own name may lie where the command runs.
            source = (str(KNOWN[name].hub),) if given is None else (str(given), "--skip-empty")
            markers = ("--sentence-markers",) if marked else ()
            flags = (*source, "--out", data, "--vocab-size", self.scale.vocabulary, *markers)
        command = Command(program("pyramidions", "prepare", *flags))
        return _step("prepare", (command,), data / "manifest.json", data.parent / f"{data.name}.prepare")

    def _of_characters(
        self, name: str, language: str, pieces: int | None, given: Path | None, data: Path
    ) -> tuple[Any, ...]:
        """Return the flags for a corpus of characters, from the hub or the training file of a folder of documents."""
        source = [name]
        if given is not None:
            texts = [path for path in sorted(given.glob("train.*")) if path.suffix not in (".bin", ".idx")]
            if not texts or (given / "manifest.json").is_file():
                raise UserError(f"--data must hold a prepared folder {data.name}, or train.jsonl, but is {given}.")
            source = [str(texts[0]), "--source-field", "article"]
        vocabulary = () if pieces is None else ("--pieces", min(pieces, self.scale.most_pieces or pieces))
        return (*source, "--characters", language, *self.scale.limits, "--out", data, *vocabulary)

    def settings(self, row: PaperRow) -> dict[str, Any]:
        """Return the settings of a row's run at this scale, but for where it reads and writes."""
        configs = self.configs if self.files is None else self.files
        return composed(configs, self._overrides(row), row.base)

    def _overrides(self, row: PaperRow) -> tuple[str, ...]:
        if not row.is_of_characters:
            return (*row.overrides, *self.scale.overrides)
        of_scale = (f"{key}={value}" for key, value in self.scale.of_characters.items())
        precision = () if self.machines.gpus else ("common.fp16=false",)
        return (*row.overrides, *of_scale, *self.scale.overrides, *precision)

    def train(self, row: PaperRow, batch_size: int) -> RowStep:
        """Return how a row is trained; ``batch_size`` documents at a time on each GPU.

        A language model has one GPU, whose update has as many windows as the paper's.
        """
        machines, folder = replace(self.machines, gpus=min(self.machines.gpus, 1), nodes=1), self.folder(row)
        words = [
            *program("fairseq-hydra-train", "--config-dir", self.configs.resolve(), "--config-name", row.base),
            *(*self._overrides(row), f"common.user_dir={_quoted(self.plugin)}"),
            *(f"task.data={_quoted(self.data(row.corpus))}", f"checkpoint.save_dir={_quoted(folder / 'checkpoints')}"),
        ]
        if not row.is_of_characters:
            machines = self.machines
            update_freq = machines.update_freq(self.scale.documents, batch_size)
            words += [f"dataset.batch_size={batch_size}", f"optimization.update_freq=[{update_freq}]"]
        if self.seed is not None:
            words.append(f"common.seed={self.seed}")
        if row.starts_from:
            begun = self._trained(self._folder_of(row.data, row.starts_from))
            words.append(f"checkpoint.finetune_from_model={_quoted(begun)}")
        # Said in any case: fairseq would take every GPU that it sees.
        words.append(f"distributed_training.distributed_world_size={machines.processes}")
        if not machines.gpus:
            words.append("common.cpu=true")
        if machines.nodes > 1:
            # Rank and address come from PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT.
            words = [
                *program("torchrun", "--nnodes", machines.nodes, "--nproc-per-node", machines.gpus, "--no-python"),
                *words,
            ]
        command = Command(tuple(words), tuple(range(machines.gpus)))
        made = folder / "checkpoints" / "checkpoint_last.pt" if row.is_of_characters else self._trained(folder)
        return _step("train", (command,), made, folder, nodes=machines.nodes, gpus=machines.gpus, trains=True)

    def test(self, row: PaperRow) -> RowStep:
        """Return how a language model is scored on the whole test split: each window's last quarter counts."""
        folder, window = self.folder(row), int(self.settings(row)["task"]["tokens_per_sample"])
        words = program(
            *("fairseq-eval-lm", self.data(row.corpus), "--user-dir", self.plugin),
            *("--task", "character_language_modeling", "--path", folder / "checkpoints" / "checkpoint_last.pt"),
            *("--gen-subset", "test", "--tokens-per-sample", window, "--context-window", window * 3 // 4),
            *("--batch-size", 16, *(() if self.machines.gpus else ("--cpu",))),
        )
        made = folder / "test.json"
        return self._on_one(
            "test", words, made, after=partial(bits_of, folder / "test.log", folder / "train.log", made)
        )

    def loss(self, row: PaperRow) -> RowStep:
        """Return how the loss of a row is measured, with the right document and with another."""
        made = self.folder(row) / "losses.json"
        words = program(
            *("pyramidions", "loss", self._trained(self.folder(row)), "--data", self.data(row.corpus)),
            *("--documents", self.scale.loss_documents, "--device", "cuda" if self.machines.gpus else "cpu"),
            *("--json", made),
        )
        return self._on_one("loss", words, made)

    def generate(self, row: PaperRow, batch_size: int) -> RowStep:
        """Return how the test documents are summarized: a share of them on each GPU."""
        folder = self.folder(row)
        words = program(
            "fairseq-generate",
            *(self.data(row.corpus), "--user-dir", self.plugin),
            *("--task", "long_document_summarization", "--gen-subset", "test"),
            *("--path", self._trained(folder), "--batch-size", batch_size),
        )
        gpus = self.machines.gpus
        results = [folder / "generate" / str(shard) for shard in range(max(gpus, 1))]
        commands = []
        for shard, result in enumerate(results):
            # fairseq-generate takes its share by these two, and ignores --num-shards and --shard-id.
            share = ("--distributed-world-size", str(len(results)), "--distributed-rank", str(shard))
            where = ("--results-path", str(result), *share, *(() if gpus else ("--cpu",)))
            commands.append(Command((*words, *where), (shard,) if gpus else ()))
        made = folder / GENERATED
        join = partial(joined, tuple(result / GENERATED for result in results), made)
        return _step("generate", tuple(commands), made, after=join, gpus=gpus)

    def score(self, row: PaperRow) -> RowStep:
        """Return how the summaries are scored."""
        folder = self.folder(row)
        made = folder / "scores.json"
        words = program("pyramidions", "score", folder / GENERATED, "--data", self.data(row.corpus), "--json", made)
        if self.metrics != ("rouge",):
            words = (*words, "--metrics", ",".join(self.metrics))
        return _step("score", (Command(words),), made)

    def time(self, row: PaperRow, batch_size: int, decodes: bool = True) -> RowStep:
        """Return how a row is timed, in turns with its reference."""
        folder = self.folder(row)
        made = folder / ("times.json" if decodes else "training-times.json")
        files = [self.configs / f"{config}.yaml" for config in dict.fromkeys((row.reference, row.config))]
        tokens = ",".join(map(str, self.scale.decode_tokens)) if decodes else "none"
        words = (
            *(sys.executable, "-m", "lab", "time", *files),
            *("--device", "cuda" if self.machines.gpus else "cpu", "--decode-tokens", tokens),
            *("--train-batch", self.scale.train_batch, "--micro-batch", min(batch_size, self.scale.train_batch)),
            *(*self.scale.timing, "--json", made),
        )
        return self._on_one("time" if decodes else "time-training", tuple(map(str, words)), made)

    def operators(self, benchmarks: Path) -> RowStep:
        """Return how the top-k operators of figures 5 and 6 are timed, by a program in the folder of benchmarks."""
        folder = self.out / "topk"
        words = (
            *(sys.executable, str(benchmarks / "topk.py"), "--plot", str(folder / "topk")),
            *("--device", "cuda" if self.machines.gpus else "cpu", *self.scale.operators),
        )
        return self._on_one("topk", words, folder / "topk.png")

    def _on_one(self, name: str, words: tuple[str, ...], made: Path, **more: Any) -> RowStep:
        """Return a step that computes on the first GPU, if there is any."""
        gpus = min(self.machines.gpus, 1)
        return _step(name, (Command(words, tuple(range(gpus))),), made, gpus=gpus, **more)


def _step(name: str, commands: tuple[Command, ...], made: Path, folder: Path | None = None, **needs: Any) -> RowStep:
    """Return a step whose log lies in a folder; None for that of what it makes."""
    return RowStep(name, commands, (made,), (folder or made.parent) / f"{name}.log", **needs)


def _characters(corpus: str) -> tuple[str, str, int | None] | None:
    """Return name, language and pieces of a corpus of characters, such as "wiki40b-fi-200"; None for documents."""
    found = re.fullmatch(r"(text8|wiki40b|cc100)(?:-(en|fi|he|vi))?(?:-(\d+))?", corpus)
    return None if found is None else (found[1], found[2] or "en", int(found[3]) if found[3] else None)


def _quoted(path: Path) -> str:
    """Return a path as a value of Hydra's, absolute, so that nothing in it is taken for syntax."""
    if re.fullmatch(r"[\w./-]+", str(path.absolute()), re.ASCII):
        return str(path.absolute())
    text = str(path.absolute()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
