"""How well are real documents read? Noise in extracts, headings found and words lost, on free documents of packages.

    python lab/benchmarks/reading.py documents --collect
    python lab/benchmarks/reading.py documents --out lab/benchmarks/results/benchmarks.csv
    python lab/benchmarks/reading.py documents --unjudged new.jsonl

The folder `reading` beside this program lists the documents, their headings, and judged sentences: the kind of noise
that a sentence is, or the hash of one that can stand in an extract. A sentence that nobody judged is counted apart, and
so are documents of the kind `unseen`: the rules that keep noise out were written without them (only the sentences of
hiporank are judged there, and no headings). `--unjudged` writes what nobody judged with "noise": null; with "" or a
kind of noise in its place, `--judged` adds it. `--collect` needs Debian's apt-get and dpkg-deb, and npm; lost words
need poppler's pdftotext.
"""

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from figures import Entry, add_output, markdown, save

from pyramidions.base.errors import UserError
from pyramidions.documents.source import Fields, read_files
from pyramidions.files.bounded import file_hash
from pyramidions.inference.extractor import Extractor, document_outline
from pyramidions.text.outline import Outline

GOLD = Path(__file__).with_name("reading")
METHODS = ("hiporank", "textrank", "biomedical", "lead")
WORDS = 220
#: The kind of documents that were chosen after the rules of fitness were written.
UNSEEN = "unseen"
LIGATURES = ("ff", "fi", "fl")
HEADINGS = ("headings, wanted", "headings, found", "headings, false")
_NUMBER = re.compile(
    r"^(?:(?:appendix|chapter|part|section)\s+)?(?:[A-Z]|\d+|[IVXLC]+)(?:\.\d+)*[.):]?\s+", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{4,}")


def documents() -> pd.DataFrame:
    """Return the documents: name, file, package, version, path in it, sha256, kind, format, language, licence..."""
    return pd.read_csv(GOLD / "documents.csv", dtype=str, keep_default_na=False)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as found:
        yield from map(json.loads, found)


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write objects as JSON lines."""
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def key(text: str) -> str:
    """Return what two writings of a sentence or a heading have in common."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())


def keys(heading: str) -> frozenset[str]:
    """Return the keys of a heading with and without its number."""
    # Some readers put a space between a Japanese and a Latin word.
    return frozenset(key(each).replace(" ", "") for each in (heading, _NUMBER.sub("", heading.strip()))) - {""}


def words_of(text: str) -> Counter[str]:
    """Count the words of four letters and more."""
    return Counter(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


# --------------------------------------------------------------------------------------------------------- collecting


def collect(folder: Path) -> None:
    """Fetch the documents that are missing from the packages of Debian."""
    folder.mkdir(parents=True, exist_ok=True)
    there = documents().file.map(lambda name: (folder / name).exists())
    for (package, version), wanted in documents()[~there].groupby(["package", "version"], sort=False):
        with tempfile.TemporaryDirectory() as work:
            print(f"{package} ...", flush=True)
            unpacked = unpack(package, version, Path(work))
            for each in wanted.itertuples():
                path = unpacked / each.path.lstrip("/")
                # Debian packs most documentation with gzip.
                held = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
                (folder / each.file).write_bytes(gzip.decompress(held) if each.path.endswith(".gz") else held)


def unpack(package: str, version: str, work: Path) -> Path:
    """Fetch a package of Debian, or of npm where its name begins so; return the folder of its files."""
    unpacked = work / "unpacked"
    if package.startswith("npm:"):
        name = f"{package.removeprefix('npm:')}@{version}"
        subprocess.run(["npm", "pack", "--silent", name], cwd=work, check=True, capture_output=True)
        (archive,) = work.glob("*.tgz")
        with tarfile.open(archive) as files:
            files.extractall(unpacked, filter="data")
    else:
        subprocess.run(["apt-get", "download", package], cwd=work, check=True, capture_output=True)
        (archive,) = work.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(unpacked)], cwd=work, check=True)
    return unpacked


def checked(folder: Path) -> pd.DataFrame:
    """Return the documents that are there as they were judged, and name the others."""
    known = documents()
    hashes = known.file.map(lambda name: file_hash(folder / name) if (folder / name).exists() else "")
    for each, found in zip(known.itertuples(), hashes, strict=True):
        if not found:
            print(f"{each.name} is missing: --collect fetches it.", file=sys.stderr)
        elif found != each.sha256:
            told = f"differs from the version {each.version} that was judged; it is left out."
            print(f"{each.name} {told}", file=sys.stderr)
    return known[hashes == known.sha256]


# ------------------------------------------------------------------------------------------------------------ judging


class Judged:
    """What sentences were judged to be.

    Attributes:
        noise: the kind of each sentence that is noise, by document.
        good: hashes of the other sentences, by document.
    """

    def __init__(self) -> None:
        rows = list(lines(GOLD / "judged.jsonl"))
        self.noise: dict[str, dict[str, str]] = {each["document"]: each["noise"] for each in rows}
        self.good: dict[str, set[str]] = {each["document"]: set(each["good"]) for each in rows}

    def kind(self, document: str, sentence: str) -> str | None:
        """Return the kind of noise that a sentence is, "" if it is none, None if nobody judged it."""
        known = {key(noise): kind for noise, kind in self.noise.get(document, {}).items()}
        if kind := known.get(key(sentence)):
            return kind
        return "" if hashed(sentence) in self.good.get(document, ()) else None

    def add(self, path: Path) -> None:
        """Add the sentences of a file that `--unjudged` wrote, and write the whole."""
        for each in lines(path):
            document, sentence, kind = each["document"], each["sentence"], each["noise"]
            noise, good = self.noise.setdefault(document, {}), self.good.setdefault(document, set())
            if kind:
                noise[sentence] = kind
            elif kind is not None:
                good.add(hashed(sentence))
        rows = (
            {"document": name, "noise": self.noise[name], "good": sorted(self.good[name])}
            for name in sorted(self.noise)
        )
        write_lines(GOLD / "judged.jsonl", rows)


def hashed(sentence: str) -> str:
    """Return what names a sentence that is no noise."""
    return hashlib.sha256(key(sentence).encode()).hexdigest()[:10]


# ---------------------------------------------------------------------------------------------------------- measuring


def read(path: Path) -> Outline:
    """Return the outline of a file."""

    def refuse(error: UserError) -> None:
        raise error

    (document,) = read_files([path], Fields(), refuse)
    return document_outline(document.text)


def headings(outline: Outline, gold: Iterable[str]) -> dict[str, int]:
    """Count the headings that are found, those that are wanted, and those that are none."""
    ours = Counter(keys(unit.text) for unit in outline.units if unit.is_heading)
    first = outline.units[0]
    wanted = [keys(heading) for heading in gold]
    found = 0
    for heading in wanted:
        match = next((each for each in ours if ours[each] and each & heading), None)
        if match is not None:
            ours[match] -= 1
            found += 1
    # The title of a document may not be among the headings.
    if first.is_heading and ours[title := keys(first.text)]:
        ours[title] -= 1
    false = sum(bool(each) for each in ours.elements())
    return dict(zip(HEADINGS, (len(wanted), found, false), strict=True))


def words_lost(path: Path, outline: Outline) -> dict[str, int]:
    """Compare the words of a PDF file with those of pdftotext: those that it has twice or more, and we never."""
    done = subprocess.run(["pdftotext", "-enc", "UTF-8", str(path), "-"], capture_output=True, check=False)
    if done.returncode:
        return {}
    ours = words_of(" ".join(unit.text for unit in outline.units)).keys()
    wanted = {word for word, count in words_of(done.stdout.decode("utf-8", "replace")).items() if count > 1}
    lost = wanted - ours
    broken = sum(any(ours & broken_at(word, ligature) for ligature in LIGATURES if ligature in word) for word in lost)
    return {"words of pdftotext": len(wanted), "words lost": len(lost), "words broken at a ligature": broken}


def broken_at(word: str, ligature: str) -> set[str]:
    """Return what a word becomes without its ligature, as "signicant"."""
    before, _, behind = word.partition(ligature)
    return {part for part in (before + behind, before + ligature[0] + behind) if len(part) > 3}


def measure(each: Any, path: Path, gold: dict[str, list[str]], judged: Judged) -> tuple[dict[str, int], list[str]]:
    """Return the counts of a document, and the extracted sentences that nobody judged."""
    outline, unjudged = read(path), []
    counts = dict.fromkeys(HEADINGS, 0) if each.kind == UNSEEN else headings(outline, gold[each.name])
    for method in METHODS:
        sentences = [found.text for found in Extractor(method).extract_file(path, words=WORDS).sentences]
        known = [judged.kind(each.name, sentence) for sentence in sentences]
        new = [sentence for sentence, kind in zip(sentences, known, strict=True) if kind is None]
        counts |= {f"{method}, sentences": len(sentences), f"{method}, noise": sum(map(bool, known))}
        counts[f"{method}, unjudged"] = len(new)
        unjudged += new
    return counts | (words_lost(path, outline) if each.format == "pdf" else {}), unjudged


# ---------------------------------------------------------------------------------------------------------- reporting


def share(part: float, whole: float) -> str:
    """Return a share in percent."""
    return f"{100 * part / whole:.1f}% ({part:.0f} of {whole:.0f})" if whole else "none"


def table(rows: pd.DataFrame) -> str:
    """Return the figures of all documents, and of each kind, in Markdown."""
    seen = rows[rows.kind != UNSEEN]
    groups = {"all": seen, UNSEEN: rows[rows.kind == UNSEEN]}
    groups |= {name: some for part in ("kind", "format") for name, some in seen.groupby(part, sort=False)}
    groups["not English"] = seen[seen.language != "en"]
    made = []
    for name, some in groups.items():
        sums = some.sum(numeric_only=True)
        cells = {"": name, "documents": len(some)}
        for method in METHODS:
            known = sums[f"{method}, sentences"] - sums[f"{method}, unjudged"]
            cells[f"noise, {method}"] = share(sums[f"{method}, noise"], known)
        cells["unjudged"] = f"{sum(sums[f'{method}, unjudged'] for method in METHODS):.0f}"
        cells["headings found"] = share(sums["headings, found"], sums["headings, wanted"])
        made.append({**cells, "false headings": f"{sums['headings, false']:.0f}"})
    told = markdown(pd.DataFrame(made))
    if "words lost" in seen:
        sums = seen.sum(numeric_only=True)
        lost = share(sums["words lost"], sums["words of pdftotext"])
        told += f"\n\nWords of PDF files lost: {lost}; broken at a ligature: {sums['words broken at a ligature']:.0f}."
    return told


def entries(rows: pd.DataFrame) -> Iterator[Entry]:
    """Yield the counts of each document."""
    for name, counts in rows.select_dtypes("number").iterrows():
        yield from (Entry(str(name), measure, count) for measure, count in counts.dropna().items())


def main() -> None:
    """Read all documents and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the documents")
    parser.add_argument("--collect", action="store_true", help="fetch what is missing from Debian's packages, and end")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the documents (default: all)")
    parser.add_argument("--unjudged", type=Path, help="write the extracted sentences that nobody judged")
    parser.add_argument("--judged", type=Path, help="add the sentences of such a file, judged")
    add_output(parser, "reading")
    given = parser.parse_args()
    if given.collect:
        collect(given.folder)
        return
    gold = {each["name"]: each["headings"] for each in lines(GOLD / "headings.jsonl")}
    judged = Judged()
    if given.judged is not None:
        judged.add(given.judged)
    chosen = checked(given.folder).set_index("name", drop=False)
    chosen = chosen[chosen.name.isin(given.only)] if given.only else chosen
    counts, unjudged = {}, {}
    for each in chosen.itertuples():
        counts[each.name], unjudged[each.name] = measure(each, given.folder / each.file, gold, judged)
        print(f"{each.name}:", ", ".join(f"{what} {count}" for what, count in counts[each.name].items()), flush=True)
    if not counts:
        raise SystemExit("None of the documents is there as it was judged.")
    rows = chosen.join(pd.DataFrame.from_dict(counts, orient="index"))
    print(f"\n{table(rows)}")
    if given.unjudged is not None:
        new = ((name, sentence) for name, sentences in unjudged.items() for sentence in dict.fromkeys(sentences))
        write_lines(given.unjudged, ({"document": name, "sentence": text, "noise": None} for name, text in new))
    save(given, entries(rows))


if __name__ == "__main__":
    main()
