"""What README and docs/ name is there: links, files, commands and flags; the parts they add keep their contracts."""

import importlib.util
import itertools
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from argparse import SUPPRESS
from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import click
import pytest
from doc_pages import PAGES, ROOT, USER_DIR, blocks, commands, text
from fairseq import options
from hydra import compose, initialize_config_dir
from test_layering import MAY_IMPORT

import pyramidions.nn
import pyramidions.plugin
from lab.catalogue import read_catalogue
from lab.cli import main as lab
from pyramidions.base.registry import Registry
from pyramidions.cli import main
from pyramidions.data.corpora.table import KNOWN
from pyramidions.data.corpora.texts import TEXTS
from pyramidions.extract.methods import known_methods
from pyramidions.models import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS, PyramidionConfig
from pyramidions.nn import Transformer
from pyramidions.nn.attention import ATTENTION
from pyramidions.nn.decoder import DECODER
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.output import OUTPUT
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.positions import POSITIONS
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.stack import STACK
from pyramidions.nn.upsampling import UPSAMPLING
from pyramidions.runs.measure import CostPart, Lengths, compare, cost_of, shrink
from pyramidions.scoring import METRICS

TASK = ["data", "--user-dir", USER_DIR, "--task", "long_document_summarization"]
CHARACTERS = ["data", "--user-dir", USER_DIR, "--task", "character_language_modeling"]
EXTRACTION = ["data", "--user-dir", USER_DIR, "--task", "extractive_summarization"]
FOLDERS = {"pyramidions", "tests", "configs", "scripts", "docs", "data", "lab"}
TASKS = {
    *("long_document_summarization", "extractive_summarization", "character_language_modeling"),
    *("span_denoising", "toy_sequences"),
}
REGISTRIES: list[Registry[Any]] = [
    *(ATTENTION, PROJECTIONS, POSITIONS, POOLING, UPSAMPLING, SCORER, FEED_FORWARD, STACK, DECODER, OUTPUT)
]
# What a shell or Python brings; tests/test_packaging.py and tests/test_setup.py hold the lines of an installation.
SHELL = {"cat", "wait", "source", "pip", "ray", "python3.11", "tensorboard", "torchrun"}

PARAM = type(pytest.param())
flag_tables = runpy.run_path(str(ROOT / "docs" / "training_flags.py"))["tables"]

pages = pytest.mark.parametrize("page", PAGES)


def prose(page: str) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", text(page), flags=re.MULTILINE | re.DOTALL)


def spans(page: str) -> list[str]:
    """Return what stands in backticks."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def subcommand(name: str, group: click.Group = main) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None, name
    return found


@cache
def known_flags() -> set[str]:
    """Return every flag of `pyramidions` and of fairseq's commands with our task, model and criterion."""
    flags = {flag for parameter in main.params for flag in parameter.opts}
    for group in (main, lab):
        for name in group.list_commands(click.Context(group)):
            flags |= {flag for parameter in subcommand(name, group).params for flag in parameter.opts}
    extracts = ["--criterion", "extractive_summarization"]
    chosen = ["--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr-scheduler", "fixed", "--arch"]
    for parser, more in (
        (options.get_training_parser(), [*TASK, *chosen, "deep_pyramidion"]),
        (options.get_training_parser(), [*TASK, *chosen, "transformer"]),  # whose weights can be loaded
        (options.get_training_parser(), [*EXTRACTION, *chosen, "extractor", *extracts]),
        (options.get_training_parser(), [*TASK, *chosen, "deep_pyramidion", "--task", "span_denoising"]),
        (options.get_training_parser(), ["--user-dir", USER_DIR, "--task", "toy_sequences", *chosen, "vanilla"]),
        (
            options.get_training_parser(),
            [*CHARACTERS, *chosen, "hourglass_gumbel", "--criterion", "boundary_cross_entropy"],
        ),
        (options.get_eval_lm_parser(), [*CHARACTERS, "--path", "x"]),
        (options.get_generation_parser(interactive=True), [*TASK, "--path", "x"]),
    ):
        options.parse_args_and_arch(parser, input_args=more)
        flags |= {flag for action in parser._actions for flag in action.option_strings}
    return flags


@pages
def test_links_files_flags_and_commands_that_a_page_names_are_there(page: str) -> None:
    for link in re.findall(r"\]\((?!https://)([^)\s]+)\)", prose(page)):
        file, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / file).resolve() if file else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
    for span in spans(page):
        for word in span.split():
            if "/" in word and word.partition("/")[0] in FOLDERS:
                assert (ROOT / word).exists(), word
        for flag in re.findall(r"(?<!\S)--?[a-z][\w-]*", span.removeprefix("python -m lab ")):
            assert flag in known_flags(), flag
        for start, group in (("pyramidions ", main), ("python -m lab ", lab)):
            if span.startswith(start):
                assert span.removeprefix(start).split()[0] in group.list_commands(click.Context(group)), span


FAIRSEQS = {
    "fairseq-train": options.get_training_parser,
    "fairseq-generate": options.get_generation_parser,
    "fairseq-eval-lm": options.get_eval_lm_parser,
    "fairseq-interactive": options.get_interactive_generation_parser,
}


def parse(program: str, words: list[str]) -> None:
    """Parse a command, as its program does."""
    if program == "pyramidions":
        subcommand(words[0]).make_context(words[0], words[1:])
    elif [program, *words[:2]] == ["python", "-m", "lab"]:
        subcommand(words[2], lab).make_context(words[2], words[3:])
    elif program in FAIRSEQS:
        args = options.parse_args_and_arch(FAIRSEQS[program](), input_args=words)
        assert args.task in TASKS and args.user_dir == USER_DIR
    elif program == "fairseq-hydra-train":
        with initialize_config_dir(str(ROOT / "configs"), version_base="1.1"):
            assert compose("base", overrides=[word for word in words if word.startswith("+")]).model
    elif program == "scripts/reproduce/pretrained.sh":
        for folder, name in zip(("pretrained", "corpus"), words, strict=False):
            assert (ROOT / "configs" / folder / f"{name}.yaml").is_file()
    elif program.startswith("scripts/reproduce/"):
        script = (ROOT / program).read_text()
        if "run.sh" in script:
            # What a script calls, with its own words.
            *_, run = script.splitlines()
            targets = re.findall(r"\w+", run.partition('run.sh"')[2].removesuffix('"$@"')) or [Path(program).stem]
            subcommand("reproduce", lab).make_context("reproduce", [*targets, *words])
        else:
            # Its head explains options of its own.
            assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--\w+", script))
    elif program == "docker" and words[0] == "run":
        image = next(i for i, word in enumerate(words) if word.partition(":")[0] == "pyramidions")
        subcommand(words[image + 1]).make_context(words[image + 1], words[image + 2 :])
    elif program == "docker":
        assert all(f"\nARG {word}" in (ROOT / "Dockerfile").read_text() for word in words if word.endswith("="))
    elif program == "python":
        assert words[0] == "scripts/upgrade.py" and len(words) == 3
    elif program.startswith("scripts/"):
        assert (ROOT / program).is_file() and set(words) <= {"train", "dev"}
    else:
        assert program in SHELL, program


@pages
def test_every_command_parses(page: str) -> None:
    for program, *words in commands(page):
        parse(program, words)


def test_the_index_names_every_page_and_the_readme_is_read_in_five_minutes() -> None:
    links = {os.path.normpath(f"docs/{link}") for link in re.findall(r"\]\(([^)]+)\)", text("docs/README.md"))}
    assert set(PAGES) - {"README.md", "docs/README.md"} <= links
    assert len(text("README.md").encode()) <= 10_000
    assert [line for page in PAGES for line in text(page).splitlines() if len(line) > 120] == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed: pip install '.[docs]'")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    # What is generated is there: a command, a class, a file that a page links to.
    assert "--redundancy" in (tmp_path / "commands" / "index.html").read_text(encoding="utf-8")
    assert "from_pretrained" in (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    assert "<code>govreport_aspects</code> (Huang" in (tmp_path / "corpora" / "index.html").read_text(encoding="utf-8")
    assert "<code>--pooling-lengths</code>" in (tmp_path / "flags" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "repository" / "pyramidions" / "base" / "registry.py").is_file()


@pytest.mark.parametrize(
    ("kind", "task", "criterion"),
    [
        ("pyramidion", "long_document_summarization", "pooled_cross_entropy"),
        ("pyramidion_extractor", "extractive_summarization", "extractive_summarization"),
        ("pyramidion_lm", "character_language_modeling", "boundary_cross_entropy"),
    ],
)
def test_the_page_of_flags_has_what_our_parts_add_to_training(kind: str, task: str, criterion: str) -> None:
    parser = options.get_training_parser()
    before = {flag for action in parser._actions for flag in action.option_strings}
    chosen = ["--arch", kind, "--task", task, "--criterion", criterion, "--lr-scheduler", "linear_decay"]
    options.parse_args_and_arch(parser, input_args=["data", *chosen, "--optimizer", "sgd"])
    # Flags of older releases are read, and listed nowhere.
    shown = [action for action in parser._actions if action.help != SUPPRESS]
    added = {flag for action in shown for flag in action.option_strings} - before
    fairseqs = {"--momentum", "--weight-decay", "--wd", "--pad", "--eos", "--unk"}  # of its optimizer and its scorer
    blocks = re.split(r"^## ", flag_tables(), flags=re.MULTILINE)
    parts = (f"--arch {kind}\n", f"--task {task}\n", f"--criterion {criterion}\n", "--lr-scheduler linear_decay\n")
    listed = [re.findall(r"^\| `(--.*?)` \|", block, re.MULTILINE) for block in blocks if block.startswith(parts)]
    assert len(listed) == len(parts) and {flag for flags in listed for flag in flags} == added - fairseqs


def test_models_names_every_kind_and_field() -> None:
    named = set(spans("docs/models.md"))
    for registry in REGISTRIES:
        assert set(registry.names) <= named, registry.axis
    numbers = {"embed_dim", "ffn_embed_dim", "num_heads", "encoder_layers", "decoder_layers", "max_source_positions"}
    fields = {name for name in vars(PyramidionConfig()) if not name.endswith("dropout") and "decoding" not in name}
    assert fields - numbers <= named


def test_the_architecture_says_what_each_room_imports() -> None:
    table = text("docs/architecture.md").partition("\n## The rooms\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", table, re.MULTILINE)
    said = {room: set(re.findall(r"\w+", imports)) for room, imports in rows}
    may: dict[str, set[str]] = {}
    for layer, imports in MAY_IMPORT.items():
        if "." in layer and "__" not in layer:
            room = layer.split(".")[1]
            may.setdefault(room, set()).update({name.split(".")[0] for name in imports} - {room})
    rooms = set(may)
    assert said.pop("cli") - {"all", "but", "and"} == rooms - {"cli"} - may.pop("cli")
    assert said == may


#: What the page of papers names in backticks in the column `here` of any table, and must name.
NAMED = {
    name
    for line in text("docs/papers.md").splitlines()
    if line.startswith("| ")
    for name in re.findall(r"`([^`]+)`", line.split(" | ")[1])
}
TO_NAME = {
    *(*PRESETS, *EXTRACTOR_PRESETS, *LANGUAGE_MODEL_PRESETS, *METRICS.names, *KNOWN, *TEXTS, "table10"),
    *(row.table for row in read_catalogue(ROOT / "configs")),
}


def kinds_of_parts() -> set[str]:
    """Return the names in all registries of `pyramidions.nn`."""
    packages = (found.name for found in pkgutil.iter_modules(pyramidions.nn.__path__, "pyramidions.nn."))
    parts: list[Any] = [value for name in packages for value in vars(importlib.import_module(name)).values()]
    return {name for part in parts if isinstance(part, Registry) for name in part.names}


def test_the_page_of_papers_names_every_preset_metric_corpus_and_table_and_nothing_that_is_not_there() -> None:
    assert set() == TO_NAME - NAMED
    for name in NAMED - TO_NAME - kinds_of_parts() - {*known_methods()}:
        program, _, rest = name.partition(" ")
        if program == "pyramidions":
            command, *flags = rest.split()
            known = {flag for option in main.get_command(None, command).params for flag in option.opts}  # type: ignore[arg-type, union-attr]
            assert known.issuperset(flags), name
        else:
            assert (ROOT / name).is_file(), name


@pytest.fixture
def added(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Run the Python of adding-a-part.md; return its names, and forget its parts afterwards."""
    tables: list[dict[str, Any]] = [registry._makers for registry in REGISTRIES]
    before = [dict(table) for table in tables]
    of_checkout = [block for block in blocks("docs/adding-a-part.md", "python") if not block.startswith("# my_parts/")]
    (tmp_path / "page.py").write_text("\n".join(of_checkout), encoding="utf-8")
    yield runpy.run_path(str(tmp_path / "page.py"), run_name="pyramidions.page")
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


def promises(contract: str, kind: str) -> Iterator[tuple[Callable[..., None], dict[str, object]]]:
    """Yield each test of a contract with the arguments it is to have for a kind."""
    for name, test in runpy.run_path(str(ROOT / "tests" / "nn" / contract)).items():
        # The attention kind of the page computes every score, as it says.
        if not name.startswith("test_") or "grows" in name:
            continue
        tables: list[list[dict[str, object]]] = []
        for names, values in (mark.args[:2] for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"):
            names = re.findall(r"\w+", names) if isinstance(names, str) else names
            several = len(names) > 1
            sets = [each.values if isinstance(each, PARAM) else each if several else (each,) for each in values]
            tables.append([dict(zip(names, each, strict=True)) for each in sets])
        for parts in itertools.product(*tables):
            arguments = {name: value for part in parts for name, value in part.items()}
            if arguments.get("kind") == kind:
                yield test, arguments


@pytest.mark.parametrize(("room", "kind"), [("attention", "windowed"), ("pooling", "gated_topk"), ("scorer", "norm")])
def test_the_parts_of_the_page_keep_their_contracts(
    room: str, kind: str, added: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = set()
    for test, arguments in promises(f"{room}/test_contract.py", kind):
        patches = {"monkeypatch"} & signature(test).parameters.keys()
        test(**arguments, **dict.fromkeys(patches, monkeypatch))
        kept.add(test.__name__)
    assert len(kept) >= 4


def test_the_parts_of_the_page_can_be_chosen_and_counted(added: dict[str, Any]) -> None:
    config, model = added["config"], added["model"]
    assert isinstance(model, Transformer)
    assert model.encoder.layers[0].sublayers["self_attention"].function.attention.side == 128
    assert model.encoder.poolers["1"].train_operator is added["_gated_topk"]
    assert model.encoder.poolers["1"].scorer.order == 1.0
    found: Any = SCORER.build("norm", {"order": 2.0})
    assert found.order == 2.0
    assert compare(*shrink(config, Lengths(2048, 112))).agrees()
    cost = cost_of(config, Lengths(8192, 512))
    # Windowed attention computes every score of its two layers; the decoder reads 512 representations.
    assert cost.products[CostPart.ENCODER_ATTENTION] == 2 * 2 * 8192 * 8192 * 512
    assert cost.products[CostPart.CROSS_ATTENTION] == 2 * 2 * 512 * 512 * 512
