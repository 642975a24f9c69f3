"""The page: what was run on what, the paper's tables and figures beside ours, and what is missing."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from lab import seeds_page
from lab.catalogue import LECTURE_TABLES, NEIGHBOURS, SPARSE_TABLES, SYSTEM_TABLES, PaperRow
from lab.comparison import PAPER_DOCUMENTS, Line, has_papers_data, shown
from lab.notes import LEGEND, LEGEND_OF_THE_PAPER, NOTES, TITLES
from lab.paper_tables import (
    NOT_RUN,
    further_table,
    layers_table,
    pretraining_table,
    quality_table,
    row_name,
    seconds_table,
    systems_table,
)
from lab.results import Hardware, Result, TopK
from lab.seeds import SeededRow
from pyramidions.files.progress import counted
from pyramidions.markdown import plain

TITLE = "# The paper's tables and figures, and ours"
_WIDTH = 110
#: What the trainings of a row have in common.
_COMMON = ("Scale", "Hardware", "Commit", "Versions", "Data", "Scores")
#: Names of phases, and how many tokens the paper decodes in each.
_PHASES = {"train_s": ("Training step", None), "infer256_s": ("Decoding", 256), "infer512_s": ("Decoding", 512)}
_CORPORA = {"arxiv": "arXiv", "pubmed": "PubMed", "govreport": "GovReport"}
_TOPK = "Figures 5 and 6: seconds of top-k operators, and likeness of their result to that of hard top-k"


def page(lines: Sequence[Line], topk: TopK | None, plots: Mapping[str, str], seeded: Sequence[SeededRow] = ()) -> str:
    """Return the report in Markdown.

    Args:
        lines: all rows of the paper.
        topk: where figures 5 and 6 come from; None if they were not measured.
        plots: file names beside the page, by "figure4", "topk" and "losses".
        seeded: rows that were trained for several seeds. Where nothing else was run, the page is about them alone.
    """
    results = list({id(line.result): line.result for line in lines if line.result}.values())
    compared = _compared([line.row for line in lines], seeded, plots) if seeded else []
    if seeded and not results and topk is None:
        return "\n\n".join([TITLE, *compared]) + "\n"
    parts = [TITLE, *_warnings(results, lines), _filled(summary(lines, topk))]
    if results:
        comparable = any(not line.time_obstacle for line in lines if line.result)
        legend = (*LEGEND, *LEGEND_OF_THE_PAPER) if comparable else LEGEND
        parts += [_facts(results), "## How to read this", _bullets(legend)]
    for table in TITLES:
        if chosen := shown(lines, table):
            parts += [f"## {TITLES[table]}", *_section(table, chosen)]
            if table == "figure4":
                parts += _image(table, TITLES[table], plots)
    if further := [line for line in lines if line.result and line.result.scores and line.result.scores.further]:
        parts += ["## Other metrics", "\n".join(further_table(further))]
    if topk is not None:
        parts += [f"## {_TOPK}", *_image("topk", _TOPK, plots)]
        parts.append(_filled(f"From `topk/topk.csv`: {plain(topk.machine)}; commit {plain(topk.commit)}."))
        parts.append(_filled(f"What the benchmark says: {plain(topk.summary)}."))
    parts += ["## What is missing", _missing(lines, topk)]
    if compared:
        parts += ["# Rows compared with each other", *compared]
    return "\n\n".join(parts) + "\n"


def _compared(catalogue: Sequence[PaperRow], seeded: Sequence[SeededRow], plots: Mapping[str, str]) -> list[str]:
    """Return what is said of rows that were trained for several seeds."""
    results = [result for row in seeded for result in row.results.values()]
    parts = [*map(_warning, seeds_page.warnings(seeded)), _filled(seeds_page.summary(seeded)), _facts(results, _COMMON)]
    parts += ["## How to read the comparison", _bullets(seeds_page.LEGEND)]
    parts += _image("losses", "Loss of each row with its own document and with another", plots)
    between = seeds_page.differences(seeded)
    for title, table in (*seeds_page.sections(catalogue, seeded), *([between] if between else [])):
        parts += [f"## {title}", "\n".join(table)]
    if lacking := seeds_page.missing(seeded):
        parts += ["## What seeds lack", _bullets(lacking)]
    return parts


def summary(lines: Sequence[Line], topk: TopK | None) -> str:
    """Say how much was run."""
    lines = [line for line in lines if line.row.config]
    partly = sum(line.result is not None and bool(line.missing) for line in lines)
    without = sum(line.result is None for line in lines)
    run = len(lines) - partly - without
    return (
        f"Of {counted(len(lines), 'row')} {run} run, {partly} partly run, {without} not run; "
        f"figures 5 and 6 {'not ' if topk is None else ''}run."
    )


def _warnings(results: Sequence[Result], lines: Sequence[Line]) -> list[str]:
    warnings = []
    tiny = sum(result.scale != "paper" for result in results)
    size = next((result.scale for result in results if result.scale != "paper"), "tiny")
    useless = (
        f"ROUGE and times of {size} models say nothing about the paper's claims, only that every row runs; the paper's "
        "figures are left out."
    )
    if tiny == len(results) > 0:
        warnings.append(f"**{size.capitalize()} models.** All results here are of {size} scale. {useless}")
    elif tiny:
        some = f"{tiny} of {counted(len(results), 'result')} {'is' if tiny == 1 else 'are'} of tiny scale"
        marked = "Do not compare rows marked “tiny” with others."
        warnings.append(f"**Mixed scales.** {some}, the others of the paper's. {useless} {marked}")
    if len({result.hardware for result in results}) > 1:
        warnings.append(
            "**Mixed hardware.** Results come from different machines: do not compare seconds of different rows. "
            "Each speed-up is still from one run on one machine."
        )
    if any(
        len({r.data_hash for r in results if r.data == data and r.data_hash}) > 1 for data in {r.data for r in results}
    ):
        warnings.append("**Mixed data.** Results on one corpus come from different preparations of it.")
    for told, data in {_of_data(r): r.data for r in results if r.corpus and not has_papers_data(r)}.items():
        train, test = PAPER_DOCUMENTS[data]
        warnings.append(
            f"**Other data.** {told}. The paper's corpus has {train:,} for training and {test:,} for testing: its "
            "ROUGE is left out."
        )
    if any(result.scores and not result.corpus for result in results):
        warnings.append("**Unknown data.** A result does not say what it was trained on: ROUGE is not compared.")
    if others := [line for line in lines if not line.is_comparable and line.row.table != "table4"]:
        warnings.append(f"**Other references.** {counted(len(others), 'row')} timed against another than the paper's.")
    return [_warning(text) for text in warnings]


def _warning(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="> ", subsequent_indent="> ")


def _facts(results: Sequence[Result], chosen: Sequence[str] | None = None) -> str:
    """Say what was run on what; where results differ in it, how many are of which kind; None chooses all facts."""
    facts: list[tuple[str, Callable[[Result], str | None]]] = [
        ("Scale", lambda r: r.scale),
        ("Hardware", lambda r: _hardware(r.hardware)),
        ("Commit", lambda r: r.commit),
        ("Versions", lambda r: ", ".join(f"{name} {version}" for name, version in r.versions.items())),
        *(("Data", _of_corpus(data, _data)) for data in sorted({r.data for r in results})),
        *(
            ("Scores", _of_corpus(data, lambda r: r.scores.signature if r.scores else None))
            for data in sorted({r.data for r in results})
        ),
        ("Times", _setting),
        ("Seed", lambda r: str(r.seed)),
    ]
    bullets = []
    for name, read in (fact for fact in facts if chosen is None or fact[0] in chosen):
        found: dict[str, list[str]] = {}
        for result in results:
            if (value := read(result)) is not None:
                found.setdefault(value, []).append(result.config)
        if len(found) == 1:
            bullets.append(f"{name}: {plain(next(iter(found)))}")
        elif found:
            bullets.append(f"{name}, **mixed**:")
            bullets += [f"\t{_which(configs)}: {plain(value)}" for value, configs in found.items()]
        else:
            bullets.append(f"{name}: {NOT_RUN}")
    return _bullets(bullets)


def _which(configs: list[str]) -> str:
    return ", ".join(f"`{config}`" for config in configs) if len(configs) <= 3 else f"{len(configs)} results"


def _of_corpus(data: str, read: Callable[[Result], str | None]) -> Callable[[Result], str | None]:
    return lambda result: read(result) if result.data == data else None


def _data(result: Result) -> str | None:
    return None if result.data_hash is None else f"{_of_data(result)}; hash {result.data_hash}"


def _of_data(result: Result) -> str:
    """Name the data that was used, which may be a sample in place of the paper's corpus."""
    if result.corpus is None:
        return f"{_CORPORA[result.data]}, or what stood for it"
    uses = {"train": "training", "valid": "validation", "test": "testing"}
    found = result.corpus.documents
    counts = [f"{found[split]:,} for {use}" for split, use in uses.items() if split in found]
    stands = "" if has_papers_data(result) else f" in place of {_CORPORA[result.data]}"
    return f"{result.corpus.name}{stands}, documents: {', '.join(counts)}"


def _hardware(hardware: Hardware) -> str:
    text = f"{hardware.device}, {counted(hardware.threads, 'thread')}"
    if hardware.gpus:
        text += f", {counted(hardware.gpus, 'GPU')}"
    return text if hardware.nodes == 1 else f"{text} on each of {hardware.nodes} machines"


def _setting(result: Result) -> str | None:
    times = result.times
    if times is None:
        return None
    written = f" of {' and '.join(map(str, times.decoded))} tokens" if times.decoded else ""
    return (
        f"{counted(times.repeats, 'turn')}, training batch {times.train_batch}, decoding batch {times.decode_batch}"
        f"{written}, {times.precision}, one {times.device} (paper: 64, and 8 of 256 and 512 tokens)"
    )


def _section(table: str, lines: Sequence[Line]) -> list[str]:
    """Return what stands below a heading."""
    parts = [_filled(note) for of, applies, note in NOTES if of == table and any(map(applies, lines))]
    if table == "figure4":
        return [*parts, "\n".join(layers_table(lines))]
    if table == "sparse_table8":
        return [*parts, "\n".join(pretraining_table(lines)), *_said(lines)]
    if table in SYSTEM_TABLES:
        return [*parts, "\n".join(systems_table(lines)), *_said(lines)]
    if any("train_s" in line.row.paper for line in lines):
        references = dict.fromkeys(f"`{line.row.reference}`" for line in lines)
        parts.insert(0, _filled(f"× is the speed-up over {', '.join(references)}."))
    if table != "table10":
        return [*parts, "\n".join(quality_table(lines))]
    for phase in _PHASES:
        parts += [f"### {_phase_title(lines, phase)}", "\n".join(seconds_table(lines, phase))]
    return parts


def _phase_title(lines: Sequence[Line], phase: str) -> str:
    title, papers = _PHASES[phase]
    if papers is None:
        return title
    timed = [line.result.times for line in lines if line.result and line.result.times]
    ours = {times.tokens[phase] for times in timed if phase in times.phases}
    return f"{title} {papers} tokens" + (f" (ours: {' or '.join(map(str, sorted(ours)))})" if ours - {papers} else "")


def _said(lines: Sequence[Line]) -> list[str]:
    """Return what papers say of rows besides, one sentence for each remark."""
    rows: dict[str, list[str]] = {}
    for line in lines:
        if line.row.note and not line.score_obstacle:
            rows.setdefault(line.row.note, []).append(row_name(line))
    return [_filled(f"The paper of {' and '.join(names)}: {plain(note)}.") for note, names in rows.items()]


def _image(name: str, title: str, plots: Mapping[str, str]) -> list[str]:
    return [f"![{title}]({quote(plots[name])})"] if name in plots else []


def _missing(lines: Sequence[Line], topk: TopK | None) -> str:
    bullets, absent, systems = [], [], []
    for table in dict.fromkeys((*TITLES, *(line.row.table for line in lines))):
        members = [line for line in lines if line.row.table == table and line.row.config]
        name = TITLES.get(table, table).partition(":")[0]
        if without := sum(line.result is None for line in members):
            if table in (*LECTURE_TABLES, *SPARSE_TABLES, NEIGHBOURS):
                systems.append(f"{name} {without} of {len(members)}")
            else:
                absent.append(f"{name.lower()} {without} of {len(members)}")
        bullets += [
            f"{name}, row {row_name(line)}, {plain(line.status)}"
            for line in members
            if line.result is not None and line.missing
        ]
    if absent:
        bullets.append(f"Rows that were not run: {', '.join(absent)}.")
    if systems:
        bullets.append(f"Rows that are not of the paper, without a result: {', '.join(systems)}.")
    if topk is None:
        bullets.append(f"Figures 5 and 6, {NOT_RUN}: `scripts/reproduce/figure5.sh` makes them.")
    return _bullets(bullets) if bullets else "Nothing."


def _bullets(texts: Sequence[str]) -> str:
    """Return a list; what begins with a tab is one level deeper."""
    lines = []
    for text in texts:
        indent = "  " if text.startswith("\t") else ""
        lines.append(_filled(text.strip(), f"{indent}- ", f"{indent}  "))
    return "\n".join(lines)


def _filled(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
