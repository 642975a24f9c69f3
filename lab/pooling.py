"""`python -m lab pooling`: what a decoder reads through a pooling, for how many bytes and seconds.

A row is a small model (2+2 layers, 128 wide, 4 heads, no dropout) with a pooling, trained from nothing. Beside it stand
a model that pools nothing, means, and controls that can hardly read: a memory of 4 vectors, of 1, and an empty one.
"""

import math
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from lab.environment import commit, hardware, versions
from lab.members import MEMBERS, register
from lab.pictures import draw_poolings
from lab.pooling_tasks import EOS, PAD, TASKS, Batch, Needles, Papers, Task
from lab.reproduce import numbers
from lab.tables import markdown, with_interval
from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_part
from pyramidions.base.strict_json import as_json_bytes, parse_json
from pyramidions.cli.options import PATH, user_dir_option
from pyramidions.files.atomic import write_file
from pyramidions.files.bounded import file_hash, read_regular
from pyramidions.files.progress import progress_bar
from pyramidions.inference.explanation import Explanation, trace
from pyramidions.inference.explanation_page import html_page
from pyramidions.inference.summary import Summary
from pyramidions.models import PyramidionConfig, build
from pyramidions.nn import BeamSearch, Transformer
from pyramidions.nn.attention.state import ProjectedMemory
from pyramidions.nn.output import PointerOutput
from pyramidions.nn.pooling import POOLING
from pyramidions.scoring.scores import pooled, pooled_difference

LAYERS = 2
_SHAPE: Mapping[str, Any] = {
    "embed_dim": 128,
    "ffn_embed_dim": 512,
    "num_heads": 4,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0),
}
#: A control: the decoder points to vectors, and keeps nothing of single tokens.
VECTORS_ALONE = "pointer(token_dim=0)"
ALL, NOTHING = "all vectors", "empty memory"
_WARM_UP, _CLIP_NORM = 100, 1.0
_POINTS = 6  # of a curve of losses
_WRITTEN, _TURNS = 64, 5  # tokens of a document that are written to be timed, and how often


class Row(NamedTuple):
    """A model: its name, and the fields in which it differs from the others."""

    name: str
    fields: Mapping[str, Any]

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return "".join(c if c.isalnum() or c in "-_=." else "_" for c in self.name)


def lengths(where: str, ratio: int, source: int) -> list[int | None]:
    """Return how many vectors each layer hands on, None for all, if a pooling leaves one of ``ratio``.

    ``where`` is early (behind the first layer), late (behind the last), or the factors of the last layers, as 2,2.
    """
    factors = {"early": [ratio, 1], "late": [1, ratio]}.get(where) or [int(step) for step in where.split(",")]
    factors = [1] * (LAYERS - len(factors)) + factors
    kept = np.cumprod(factors)
    return [None if factor == 1 else max(1, -(-source // int(of))) for factor, of in zip(factors, kept, strict=True)]


def rows(task: Task, kinds: Sequence[str], where: str, ratios: Sequence[int], output: str) -> list[Row]:
    """Return the rows of a table: the controls, then each pooling at each ratio, means first."""

    def row(name: str, kind: str, place: str, ratio: int) -> Row:
        kept = ",".join(map(str, lengths(place, ratio, task.source)))
        return Row(name, {"pooling": kind, "pooling_lengths": kept, "output": output})

    found = [
        Row(ALL, {"output": output}),
        row("4 vectors", "mean", "late", task.source // 4),
        row("1 vector", "mean", "late", task.source),
        Row(NOTHING, {**row("", "mean", "late", task.source).fields, "output": "tied"}),
    ]
    for ratio, kind in product(ratios, dict.fromkeys(("mean", *kinds))):
        found.append(row(f"{kind}, {where}, 1/{ratio}", kind, where, ratio))
        if kind == "mean" and output not in ("tied", VECTORS_ALONE):
            alone = row(f"{kind}, {where}, 1/{ratio}, no token keys", kind, where, ratio)
            found.append(alone._replace(fields={**alone.fields, "output": VECTORS_ALONE}))
    return found


def made(row: Row, task: Task, seed: int) -> Transformer:
    """Build the model of a row."""
    fields = {**_SHAPE, "max_source_positions": task.source, **task.fields, **row.fields}
    register()
    torch.manual_seed(seed)
    model = build(PyramidionConfig().replace(**fields), task.vocabulary, PAD, max_target_positions=task.target)
    if row.name == NOTHING:
        model.encoder.register_forward_hook(lambda _module, _input, encoded: _emptied(encoded))
    return model


def _emptied(encoded: Any) -> Any:
    memories = tuple(memory._replace(x=torch.zeros_like(memory.x)) for memory in encoded.memories)
    return encoded._replace(memories=memories)


def token_losses(model: Transformer, batch: Batch, source: Tensor) -> Tensor:
    """Return the loss of each token of the summaries given ``source`` (B, L), 0 where it does not count: (B, T)."""
    scores = model(source, F.pad(batch.target[:, :-1], (1, 0), value=EOS))
    # A pointer's output is normalised already, which a log-softmax leaves as it is.
    losses = F.nll_loss(scores.float().log_softmax(-1).transpose(1, 2), batch.target, reduction="none")
    return losses.masked_fill(~batch.counted, 0.0)


@torch.inference_mode()
def document_losses(model: Transformer, batches: Sequence[Batch]) -> dict[str, list[float]]:
    """Return the loss of each document, nats a token, with its own source and with that of the next document."""
    losses: dict[str, list[float]] = {"own": [], "another": []}
    others = torch.cat([batch.source for batch in batches]).roll(-1, 0).split([len(batch.source) for batch in batches])
    for batch, other in zip(batches, others, strict=True):
        for name, source in (("own", batch.source), ("another", other)):
            of_documents = token_losses(model, batch, source).sum(1) / batch.counted.sum(1)
            losses[name] += of_documents.tolist()
    return losses


@torch.inference_mode()
def bytes_read(model: Transformer, batch: Batch) -> float:
    """Return what a decoder may read of a document, bytes a token.

    That is all keys and values of memories, and what a pointer keeps; not the numbers of tokens, which every pointer
    needs, and which are the same in all rows.
    """
    source = batch.source[:1]
    memories = model.encoder(source, source.eq(PAD)).memories
    cache = model.decoder.new_cache()
    model.decoder(torch.full((1, 1), EOS), memories, cache)
    states = [state for layer in cache.states for state in layer if isinstance(state, ProjectedMemory)]
    read = [each for state in states for each in state.keys_values or ()]
    if (pointer := cache.prepared) is not None:
        read += [x for x in (pointer.keys, pointer.values, pointer.token_keys, pointer.key_bias) if x is not None]
    return sum(x.numel() * x.element_size() for x in read) / int(source.ne(PAD).sum())


@torch.inference_mode()
def copied(model: Transformer, batches: Sequence[Batch]) -> float | None:
    """Return which share of the summaries is copied; None where the output layer copies nothing."""
    if not isinstance(model.decoder.output, PointerOutput):
        return None
    shares = []
    for batch in batches:
        memories = model.encoder(batch.source, batch.source.eq(PAD)).memories
        found = model.decoder.copied(batch.target, memories, EOS)
        assert found is not None
        shares.append(found.sum(2)[batch.counted])
    return float(torch.cat(shares).mean())


@torch.inference_mode()
def seconds_a_token(model: Transformer, batch: Batch) -> float:
    """Return the processor time of writing a token of one document greedily, the median of turns."""
    source = batch.source[:1]
    memories = model.encoder(source, source.eq(PAD)).memories
    search = BeamSearch(1, _WRITTEN - 1, _WRITTEN - 1)
    turns = []
    for _ in range(_TURNS):
        begin = time.process_time()
        list(search.write(model, memories))
        turns.append((time.process_time() - begin) / _WRITTEN)
    return statistics.median(turns)


def train(row: Row, task: Task, seed: int, few: Sequence[Batch]) -> tuple[Transformer, float, list[list[float]]]:
    """Train a model; return it, the processor's seconds, and a curve: updates, seconds, and loss on ``few`` batches."""
    model = made(row, task, seed)
    optimizer = torch.optim.Adam(model.parameters(), task.rate, betas=(0.9, 0.98))
    curve, seconds = [], 0.0
    with progress_bar(f"{row.name}, seed {seed}", task.updates, "updates") as bar:
        for update, batch in enumerate(islice(task.training(seed), task.updates), 1):
            begin = time.process_time()
            for group in optimizer.param_groups:
                group["lr"] = task.rate * min(1.0, update / _WARM_UP)
            optimizer.zero_grad()
            (token_losses(model, batch, batch.source).sum() / batch.counted.sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP_NORM)
            optimizer.step()
            seconds += time.process_time() - begin
            bar.update()
            if update % max(1, task.updates // _POINTS) == 0:
                model.eval()
                curve.append([update, seconds, float(np.mean(document_losses(model, few)["own"]))])
                model.train()
    return model.eval(), seconds, curve


def measured(row: Row, task: Task, seed: int, folder: Path) -> dict[str, Any]:
    """Train a row with a seed and measure it; what was measured before with the same settings is read."""
    path = folder / row.folder / f"seed{seed}.json"
    fields = {**_SHAPE, **task.fields, **row.fields}
    settings = {"row": row.name, "seed": seed, "fields": fields, "code": own_code(row), **task.settings()}
    if path.exists():
        found = parse_json(read_regular(path))
        if not isinstance(found, dict) or found.get("settings") != settings:
            raise UserError(f"{path} is of other settings or data: choose another --out, or move it away.")
        return found
    batches = task.validation()
    model, seconds, curve = train(row, task, seed, batches[:4])
    result = {
        "settings": settings,
        "losses": document_losses(model, batches),
        "curve": curve,
        "bytes_a_token": bytes_read(model, batches[0]) if row.name != NOTHING else 0.0,
        "copied": copied(model, batches),
        "training_seconds": seconds,
        "writing_seconds_a_token": seconds_a_token(model, batches[0]),
        "parameters": sum(each.numel() for each in model.parameters()),
        "commit": commit(),
        "versions": versions(),
        "hardware": hardware("cpu"),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(task, Papers):
        write_file(path.with_suffix(".html"), provenance_page(model, task, batches[0], row.name).encode())
    write_file(path, as_json_bytes(result))
    return result


def own_code(row: Row) -> str | None:
    """Return the hash of the file with a row's pooling if it is not one of ours."""
    kind = POOLING[parse_part("pooling", row.fields.get("pooling", PyramidionConfig.pooling)).kind]
    is_ours = kind.__module__.startswith("pyramidions.")
    return None if is_ours else file_hash(Path(str(sys.modules[kind.__module__].__file__)))


def provenance_page(model: Transformer, task: Papers, batch: Batch, name: str) -> str:
    """Return a page that shows of the first paper of a batch which tokens reach which words of its abstract."""
    tokenizer = task.folder.tokenizer()
    source, target = (x[0][x[0] != PAD] for x in (batch.source, batch.target))
    summary = Summary(tokenizer.decode(target.tolist()), float("nan"), len(target), len(source), len(source))
    document, written = (tokenizer.spellings(ids.tolist()) for ids in (source, target))
    explanation = Explanation(summary, document, written, trace(model, source, target, EOS))
    return html_page(explanation, "a paper and its abstract", name)


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return one line a row, from the results of its seeds: losses with intervals over seeds and documents."""
    own = {name: np.array([one["losses"]["own"] for one in of]) for name, of in results.items()}
    lines = []
    for name, of in results.items():
        another = np.array([one["losses"]["another"] for one in of])
        shares = [one["copied"] for one in of if one["copied"] is not None]
        against = {f"over {ALL}": own[ALL], "over 4 vectors": own["4 vectors"]}
        lines.append(
            {
                "row": name,
                "bytes a token": f"{statistics.mean(one['bytes_a_token'] for one in of):,.0f}",
                "loss": with_interval(*pooled(own[name]), 3),
                **{
                    head: "" if other is own[name] else with_interval(*pooled_difference(own[name], other), 3)
                    for head, other in against.items()
                },
                "another costs": with_interval(*pooled(another - own[name]), 3),
                "copied": f"{statistics.mean(shares):.1%}" if shares else "",
                "seconds of training": f"{statistics.mean(one['training_seconds'] for one in of):,.0f}",
                "ms a token written": f"{1000 * statistics.mean(one['writing_seconds_a_token'] for one in of):.2f}",
                "seeds": ", ".join(str(one["settings"]["seed"]) for one in of),
            }
        )
    return pd.DataFrame(lines)


def by_seed(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return one line a row and seed, as numbers."""
    figures = ("bytes_a_token", "copied", "training_seconds", "writing_seconds_a_token", "parameters", "commit")
    return [
        {
            "row": name,
            "seed": one["settings"]["seed"],
            **{f"loss_{which}": statistics.mean(losses) for which, losses in one["losses"].items()},
            **{figure: one[figure] for figure in figures},
        }
        for name, of in results.items()
        for one in of
    ]


def gathered(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the results in a folder by the names of their rows, of the seeds that all of them have."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*/seed*.json")):
        result = parse_json(read_regular(path))
        found.setdefault(result["settings"]["row"], []).append(result)
    shared = set.intersection(*({one["settings"]["seed"] for one in of} for of in found.values()))
    found = {name: [one for one in of if one["settings"]["seed"] in shared] for name, of in found.items()}
    return dict(sorted(found.items(), key=lambda row: -row[1][0]["bytes_a_token"]))


def kinds_of_file(path: Path) -> list[str]:
    """Import a Python file, and return the poolings that it registers."""
    spec = spec_from_file_location(path.stem, path.absolute())
    if not path.is_file() or spec is None or spec.loader is None:
        raise UserError(f"A pooling must be a kind with its options or a Python file, but is {path}.")
    if path.stem not in sys.modules:
        sys.modules[path.stem] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    if getattr(sys.modules[path.stem], "__file__", None) != spec.origin:
        raise UserError(f"A file with a pooling must have a name that no other module has, but is {path}.")
    if not (kinds := [name for name in POOLING.names if name.startswith(f"{path.stem}.")]):
        raise UserError(f"{path} must register a pooling, but does not.")
    return kinds


def _where(_context: click.Context, _option: click.Parameter, text: str) -> str:
    steps = text.split(",")
    if text in ("early", "late") or (len(steps) <= LAYERS and all(re.fullmatch("[1-9][0-9]{0,3}", s) for s in steps)):
        return text
    raise click.BadParameter(f"{text!r} is neither early nor late nor factors of the last {LAYERS} layers, as 2,2.")


@click.command(short_help="Compare poolings with each other and with controls.")
@click.argument("poolings", nargs=-1, metavar="[POOLING|FILE.py]...")
@click.option("--task", "name", type=click.Choice(TASKS), default=TASKS[0], show_default=True, help="What is learned.")
@click.option("--data", type=PATH, help="Folder of papers that `pyramidions prepare` made; needed by --task papers.")
@click.option(
    "--where",
    default="late",
    show_default=True,
    callback=_where,
    help="Behind the first layer of the encoder (early), the last (late), or by factors of the last layers, as 2,2.",
)
@click.option(
    "--ratio",
    "ratios",
    default="4,16",
    show_default=True,
    callback=numbers,
    help="Tokens a vector. Ignored if --where lists factors.",
)
@click.option("--seeds", default="1,2,3", show_default=True, callback=numbers, help="Of the trainings of each row.")
@click.option("--output", help=f"Output layer of all rows.  [default: {MEMBERS} for papers, tied for needles]")
@click.option("--updates", type=click.IntRange(1), help="Of a training.  [default: that of the task]")
@click.option("--out", type=PATH, default=Path("poolings"), show_default=True, help="Folder of the results.")
@user_dir_option
def pooling(
    poolings: tuple[str, ...],
    name: str,
    data: Path | None,
    where: str,
    ratios: tuple[int, ...],
    seeds: tuple[int, ...],
    output: str | None,
    updates: int | None,
    out: Path,
) -> None:
    """Train small models with poolings, and say what each costs in loss, bytes and seconds.

    Each POOLING is a kind with its options, or a Python file that registers one. Every table also has a model that
    pools nothing, means, and controls that can hardly read: a memory of 4 vectors, of 1, and an empty one. A pooling is
    worth its bytes only where it is clear of these.

    A training takes at most 20 minutes of a core. Run the command again to continue: finished trainings are kept. The
    report, a picture, and for papers a page of each model are written to --out.

    \b
    Examples:
      python -m lab pooling soft_topk --task needles --ratio 4,16 --seeds 1
      python -m lab pooling 'soft_topk(base=10)' mine.py --data papers --where early
    """
    task: Task
    if name == "papers":
        if data is None:
            raise UserError("--task papers needs --data, a folder that `pyramidions prepare` made.")
        task = Papers(data)
    else:
        task = Needles()
    task.updates = updates or task.updates
    output = output or (MEMBERS if name == "papers" else "tied")
    kinds = [kind for each in poolings for kind in (kinds_of_file(Path(each)) if each.endswith(".py") else [each])]
    if where not in ("early", "late"):
        ratios = (math.prod(map(int, where.split(","))),)
    wanted = rows(task, kinds, where, ratios, output)
    for row in wanted:
        made(row, task, 1)  # a wrong option is refused before hours of training
    folder = out / name / Row(output, {}).folder
    for seed, row in product(seeds, wanted):
        measured(row, task, seed, folder)
    results = gathered(folder)
    report, lines = markdown(table(results)), pd.DataFrame(by_seed(results))
    write_file(folder / "report.md", f"# Poolings: {name}, {output}\n\n{report}\n".encode())
    write_file(folder / "report.csv", lines.to_csv(index=False).encode())
    write_file(folder / "losses.png", draw_poolings(lines))
    click.echo(f"{report}\n\nreport.md, report.csv and losses.png are in {folder}.")
