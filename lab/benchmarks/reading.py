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
import csv
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
from typing import Any, NamedTuple

from figures import Entry, add_output, save

from pyramidions.base.errors import UserError
from pyramidions.documents.source import Fields, read_files
from pyramidions.inference.extractor import Extractor, document_outline
from pyramidions.text.outline import Outline

GOLD = Path(__file__).with_name("reading")
METHODS = ("hiporank", "textrank", "biomedical", "lead")
WORDS = 220
#: The kind of documents that were chosen after the rules of fitness were written.
UNSEEN = "unseen"
UNMARKED = {"wanted": 0, "found": 0, "false": 0, "missed": [], "false ones": []}
LIGATURES = ("ff", "fi", "fl")
_NUMBER = re.compile(
    r"^(?:(?:appendix|chapter|part|section)\s+)?(?:[A-Z]|\d+|[IVXLC]+)(?:\.\d+)*[.):]?\s+", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{4,}")


class Document(NamedTuple):
    """A row of `documents.csv`."""

    name: str
    file: str
    package: str
    version: str
    path: str
    sha256: str
    kind: str
    format: str
    language: str
    licence: str
    producer: str


def documents() -> list[Document]:
    """Return the documents."""
    with (GOLD / "documents.csv").open(newline="", encoding="utf-8") as rows:
        return [Document(**row) for row in csv.DictReader(rows)]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as found:
        yield from map(json.loads, found)


def key(text: str) -> str:
    """Return what two writings of a sentence or a heading have in common."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())


def keys(heading: str) -> set[str]:
    """Return the keys of a heading with and without its number."""
    # Some readers put a space between a Japanese and a Latin word.
    return {key(each).replace(" ", "") for each in (heading, _NUMBER.sub("", heading.strip()))} - {""}


# --------------------------------------------------------------------------------------------------------- collecting


def collect(folder: Path) -> None:
    """Fetch the documents that are missing from the packages of Debian."""
    folder.mkdir(parents=True, exist_ok=True)
    missing: dict[str, list[Document]] = {}
    for each in documents():
        if not (folder / each.file).exists():
            missing.setdefault(each.package, []).append(each)
    for package, wanted in missing.items():
        with tempfile.TemporaryDirectory() as work:
            print(f"{package} ...", flush=True)
            unpacked = unpack(package, wanted[0].version, Path(work))
            for each in wanted:
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


def checked(folder: Path) -> list[Document]:
    """Return the documents that are there as they were judged, and name the others."""
    found = []
    for each in documents():
        path = folder / each.file
        if not path.exists():
            print(f"{each.name} is missing: --collect fetches it.", file=sys.stderr)
        elif hashlib.sha256(path.read_bytes()).hexdigest() != each.sha256:
            print(
                f"{each.name} differs from the version {each.version} that was judged; it is left out.", file=sys.stderr
            )
        else:
            found.append(each)
    return found


# ------------------------------------------------------------------------------------------------------------ judging


class Judged:
    """What sentences were judged to be.

    Attributes:
        noise: the kind of each sentence that is noise, by document.
        good: hashes of the other sentences, by document.
    """

    def __init__(self) -> None:
        self.noise: dict[str, dict[str, str]] = {}
        self.good: dict[str, set[str]] = {}
        for each in lines(GOLD / "judged.jsonl"):
            self.noise[each["document"]] = each["noise"]
            self.good[each["document"]] = set(each["good"])

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
        rows = [
            {"document": name, "noise": self.noise[name], "good": sorted(self.good[name])}
            for name in sorted(self.noise)
        ]
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        (GOLD / "judged.jsonl").write_text(text, encoding="utf-8")


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


def headings(outline: Outline, gold: Iterable[str]) -> dict[str, Any]:
    """Count the headings that are found, those that are not, and those that are none."""
    ours = Counter(frozenset(keys(unit.text)) for unit in outline.units if unit.is_heading)
    first = outline.units[0]
    found, missed = 0, []
    for heading in gold:
        match = next((each for each in ours if ours[each] and each & keys(heading)), None)
        if match is None:
            missed.append(heading)
        else:
            ours[match] -= 1
            found += 1
    # The title of a document may not be among the headings.
    if first.is_heading and ours[title := frozenset(keys(first.text))]:
        ours[title] -= 1
    false = [min(each) for each in ours.elements() if each]
    return {"wanted": found + len(missed), "found": found, "false": len(false), "missed": missed, "false ones": false}


def words_lost(path: Path, outline: Outline) -> dict[str, Any] | None:
    """Compare the words of a PDF file with those of pdftotext: those that it has twice or more, and we never."""
    done = subprocess.run(["pdftotext", "-enc", "UTF-8", str(path), "-"], capture_output=True, check=False)
    if done.returncode:
        return None
    theirs = Counter(_WORD.findall(unicodedata.normalize("NFKC", done.stdout.decode("utf-8", "replace")).casefold()))
    text = " ".join(unit.text for unit in outline.units)
    ours = set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
    wanted = {word for word, count in theirs.items() if count > 1}
    lost = wanted - ours
    broken = {
        word for word in lost for ligature in LIGATURES if ligature in word and ours & set(broken_at(word, ligature))
    }
    return {
        "words": len(wanted),
        "lost": len(lost),
        "broken at a ligature": sorted(broken),
        "lost words": sorted(lost)[:40],
    }


def broken_at(word: str, ligature: str) -> list[str]:
    """Return what a word becomes without its ligature, as "signicant"."""
    before, _, behind = word.partition(ligature)
    return [part for part in (before + behind, before + ligature[0] + behind) if len(part) > 3]


def extracts(path: Path) -> dict[str, list[str]]:
    """Return the sentences that each method extracts."""
    return {
        method: [each.text for each in Extractor(method).extract_file(path, words=WORDS).sentences]
        for method in METHODS
    }


def measure(each: Document, folder: Path, gold: dict[str, Any], judged: Judged) -> dict[str, Any]:
    """Return all figures of a document."""
    path = folder / each.file
    outline = read(path)
    found = {
        "name": each.name,
        "kind": each.kind,
        "format": each.format,
        "language": each.language,
        "headings": UNMARKED if each.kind == UNSEEN else headings(outline, gold[each.name]["headings"]),
        "extracts": {},
    }
    if each.format == "pdf":
        found["words"] = words_lost(path, outline)
    for method, sentences in extracts(path).items():
        known = [judged.kind(each.name, sentence) for sentence in sentences]
        found["extracts"][method] = {
            "sentences": len(sentences),
            "noise": sum(bool(kind) for kind in known),
            "noisy": [sentence for sentence, kind in zip(sentences, known, strict=True) if kind],
            "unjudged": [sentence for sentence, kind in zip(sentences, known, strict=True) if kind is None],
        }
    return found


# ---------------------------------------------------------------------------------------------------------- reporting


def share(part: int, whole: int) -> str:
    """Return a share in percent."""
    return f"{100 * part / whole:.1f}% ({part} of {whole})" if whole else "none"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures of all documents, and of each kind, in markdown."""
    seen = [row for row in rows if row["kind"] != UNSEEN]
    groups = {"all": seen, UNSEEN: [row for row in rows if row["kind"] == UNSEEN]}
    for part in ("kind", "format"):
        for row in seen:
            groups.setdefault(row[part], []).append(row)
    groups["not English"] = [row for row in seen if row["language"] != "en"]
    heads = ["documents", *(f"noise, {method}" for method in METHODS), "unjudged", "headings found", "false headings"]
    made = [f"| | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name, some in groups.items():
        cells = [str(len(some))]
        for method in METHODS:
            ours = [row["extracts"][method] for row in some]
            known = sum(each["sentences"] - len(each["unjudged"]) for each in ours)
            cells.append(share(sum(each["noise"] for each in ours), known))
        cells.append(str(sum(len(each["unjudged"]) for row in some for each in row["extracts"].values())))
        found, wanted, false = (sum(row["headings"][part] for row in some) for part in ("found", "wanted", "false"))
        cells += [share(found, wanted), str(false)]
        made.append(f"| {name} | {' | '.join(cells)} |")
    words = [row["words"] for row in seen if row.get("words")]
    if words:
        lost, whole = (sum(each[part] for each in words) for part in ("lost", "words"))
        broken = sum(len(each["broken at a ligature"]) for each in words)
        made += ["", f"Words of PDF files lost: {share(lost, whole)}; broken at a ligature: {broken}."]
    return "\n".join(made) + "\n"


def entries(rows: list[dict[str, Any]]) -> Iterator[Entry]:
    """Yield the counts of each document."""
    for row in rows:
        for part in ("wanted", "found", "false"):
            yield Entry(row["name"], f"headings, {part}", row["headings"][part])
        for method, found in row["extracts"].items():
            yield Entry(row["name"], f"{method}, sentences", found["sentences"])
            yield Entry(row["name"], f"{method}, noise", found["noise"])
            yield Entry(row["name"], f"{method}, unjudged", len(found["unjudged"]))
        if words := row.get("words"):
            yield Entry(row["name"], "words of pdftotext", words["words"])
            yield Entry(row["name"], "words lost", words["lost"])
            yield Entry(row["name"], "words broken at a ligature", len(words["broken at a ligature"]))


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
    gold = {each["name"]: each for each in lines(GOLD / "headings.jsonl")}
    judged = Judged()
    if given.judged is not None:
        judged.add(given.judged)
    rows = []
    for each in checked(given.folder):
        if given.only and each.name not in given.only:
            continue
        row = measure(each, given.folder, gold, judged)
        rows.append(row)
        noise = sum(found["noise"] for found in row["extracts"].values())
        counts = row["headings"]
        print(
            f"{each.name:32} noise {noise:3}  headings {counts['found']:3} of {counts['wanted']:3}, "
            f"{counts['false']:3} false  lost {row['words']['lost'] if row.get('words') else '-'}",
            flush=True,
        )
    print(f"\n{table(rows)}")
    if given.unjudged is not None:
        new = {
            (row["name"], sentence): None
            for row in rows
            for found in row["extracts"].values()
            for sentence in found["unjudged"]
        }
        made = [{"document": name, "sentence": sentence, "noise": None} for name, sentence in new]
        given.unjudged.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in made))
    save(given, entries(rows))


if __name__ == "__main__":
    main()
