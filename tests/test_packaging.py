"""What the package promises to pip."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted([*ROOT.glob("scripts/*.sh"), ROOT / ".ci" / "run"])

Requirements = dict[str, list[Requirement]]

# The machine of somebody who did not ask for [train]: no finder knows these packages.
WITHOUT_TRAIN = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        absent = {"fairseq", "hydra", "omegaconf", "datasets", "pyarrow"}
        absent |= {"tokenizers", "transformers", "ot"}
        if name.partition(".")[0] in absent:
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""

# The machine of somebody who typed `pip install .`, and has no torch.
WITHOUT_TORCH = WITHOUT_TRAIN.replace('"fairseq", ', '"fairseq", "torch", ')

# setup.py itself is asked, not the metadata of the last installation.
PRINT_DECLARED = """
import json, runpy, setuptools
declared = {}
setuptools.setup = lambda **arguments: declared.update(arguments)
runpy.run_path("setup.py")
names = ("version", "python_requires", "install_requires", "extras_require")
print(json.dumps({name: declared[name] for name in names}))
"""


def run(
    *command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    words = [str(part) for part in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, env=env, cwd=cwd)


@pytest.fixture(scope="module")
def declared() -> dict[str, Any]:
    """What setup.py declares."""
    done = run(sys.executable, "-c", PRINT_DECLARED, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def requirements(declared: dict[str, Any]) -> Requirements:
    """The requirements that setup.py declares, by extra; "" is the base install."""
    lines = {"": declared["install_requires"], **declared["extras_require"]}
    return {extra: [Requirement(line) for line in of_extra] for extra, of_extra in lines.items()}


def test_the_base_install_imports_without_fairseq() -> None:
    names = ("pyramidions", "pyramidions.nn", "pyramidions.models.builder", "pyramidions.data", "pyramidions.scoring")
    done = run(sys.executable, "-c", f"{WITHOUT_TRAIN}\nimport {', '.join(names)}, pyramidions.cli")
    assert done.returncode == 0, done.stderr


# Runs commands one after the other; says how each ended, and what the first one took.
RUN = """
import json, re, sys
from pathlib import Path
from click.testing import CliRunner
from pyramidions.cli import main

ended = []
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, words)
    ended.append([done.exit_code, done.stderr.splitlines()[-1:]])
    if len(ended) == 1:
        heavy = sorted({"torch", "sklearn", "scipy.stats", "nltk", "pandas"} & {*sys.modules})
        megabytes = int(re.search("VmHWM: *\\t *(\\d+)", Path("/proc/self/status").read_text())[1]) / 1000
print(json.dumps([heavy, megabytes, ended]))
"""
SENTENCES = [f"{' '.join('ban den kin lon mur ras'.split()[n % 4 : 3 + n % 5])} sel {n}." for n in range(40)]
PAPER = f"1 Introduction\n\n{' '.join(SENTENCES[:20])}\n\n2 Methods\n\n{' '.join(SENTENCES[20:])}"


def test_without_torch_documents_are_extracted_from_trained_on_and_scored_and_models_say_what_to_type(
    tmp_path: Path,
) -> None:
    (tmp_path / "paper.txt").write_text(PAPER)
    records = [{"id": str(n), "article": PAPER, "abstract": " ".join(SENTENCES[n : n + 5])} for n in range(12)]
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, records)))
    works = [
        "extract paper.txt --explain page.html",
        "extract test.jsonl -o extracts.jsonl --method hiporank(mu=0.5)",
        "extract test.jsonl -o resumed.jsonl --resume",
        "prepare . --out prepared --vocab-size 38",
        "score extracts.jsonl --data prepared --lead --metrics rouge,meteor,coverage",
        "train train.jsonl -o model",
        "extract paper.txt --method model",
    ]
    needs = ["summarize none paper.txt", "segments none paper.txt", "import none -o x.pt", "cost pyramidion"]
    needs += ["export none x", "extract paper.txt --method ."]
    trains = "train train.jsonl -o other --kind summarizer"
    writer = "summarize --writer http://127.0.0.1:9/v1 --writer-model model paper.txt"
    others = ("summarize model paper.txt", "summarize paper.txt", writer)
    commands = json.dumps([words.split() for words in (*works, *needs, trains, *others)])
    done = run(sys.executable, "-c", WITHOUT_TORCH + RUN, commands, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    heavy, megabytes, ended = json.loads(done.stdout)
    assert heavy == []
    assert megabytes < 250
    assert [code for code, _ in ended[: len(works)]] == [0] * len(works), ended
    assert ended.pop()[1][0].startswith("Error: The server at http://127.0.0.1:9/v1 cannot be reached")
    assert ended.pop()[1][0].startswith("Error: MODEL comes before the documents, but paper.txt is a document: ")
    assert ended.pop()[1] == [
        "Error: model holds a model of concepts, which extracts: use `pyramidions extract --method model`."
    ]
    *said, of_train = [line for _, (line,) in ended[len(works) :]]
    assert all(re.match("Error: .*torch.* is not installed: `pip install ", line) for line in said), said
    assert of_train.endswith("scripts/setup.sh train brings it; --kind concepts needs none.")


API = """
import pydoc
import pyramidions
from pyramidions import *
from pyramidions.inference import load_model

help_text = pydoc.render_doc(pyramidions)
assert all(hasattr(pyramidions, name) and name in help_text for name in pyramidions.__all__)
assert not hasattr(pyramidions, "Summariser")
assert ExtractorMap("lead")({"text": ["A text of some words."]})["summary"] == ["A text of some words."]
assert SamplingOptions(top_k=3).top_k == 3
for use in (
    lambda: Summarizer.from_pretrained("model"),
    lambda: load_model("model"),
    lambda: SummarizerMap("model"),
    lambda: ExtractorMap("."),
    lambda: Extractor("."),
):
    try:
        use()
    except UserError as error:
        print(error)
try:
    import pyramidions.models
except ModuleNotFoundError as error:
    print(error)
"""


def test_without_torch_each_public_name_can_be_imported_and_says_what_to_type_where_it_is_used(tmp_path: Path) -> None:
    done = run(sys.executable, "-c", WITHOUT_TORCH + API, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    names = ("`Summarizer`", "`load_model`", "`SummarizerMap`", "A trained extractor", "A trained extractor")
    names += ("`pyramidions.models`",)
    for name, line in zip(names, said, strict=True):
        assert line.startswith(f"{name} needs the library torch, which is not installed: `pip install 'torch<3,")


@pytest.mark.nightly
def test_importing_the_plugin_leaves_the_root_logger_alone() -> None:
    code = "import logging, pyramidions.plugin, fairseq; print(logging.root.level, logging.root.handlers)"
    done = run(sys.executable, "-c", code)
    assert done.stdout.splitlines()[-1] == "30 []", done.stderr


def test_requirements_are_bounded_above_alike_in_every_extra_and_satisfied_here(requirements: Requirements) -> None:
    bounds: dict[str, set[str]] = {}
    for requirement in (one for declared in requirements.values() for one in declared):
        assert Version("1000000") not in requirement.specifier, requirement
        assert distribution(requirement.name).version in requirement.specifier, requirement
        bounds.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert [name for name, found in bounds.items() if len(found) > 1] == []
    base = {one.name for one in requirements[""]}
    assert base.isdisjoint({"torch", "fairseq", "fairseq-fixed", "torchaudio", "cython"})
    assert {str(one) for one in requirements["train"]} <= {str(one) for one in requirements["dev"]}


def test_scripts_and_metadata_agree_on_fairseq_and_torch(requirements: Requirements) -> None:
    setup = (ROOT / "scripts" / "setup.sh").read_text()
    fairseq = next(one for one in requirements["train"] if one.name == "fairseq-fixed")
    assert f'fairseq="{fairseq}"' in setup
    (version,) = re.findall(r"torch_version=(\S+)", setup)
    assert version in next(one for one in requirements["torch"]).specifier


def test_no_python_from_3_11_on_is_shut_out(declared: dict[str, Any]) -> None:
    supported = SpecifierSet(declared["python_requires"])
    assert [minor for minor in range(8, 20) if f"3.{minor}.0" in supported] == list(range(11, 20))


def test_one_version_stands_in_the_package_the_citation_the_changelog_and_the_tag(declared: dict[str, Any]) -> None:
    version = declared["version"]
    assert re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE) == [version]
    newest = re.findall(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == ("Unreleased" if Version(version).is_devrelease else version)
    tags = run("git", "-C", ROOT, "tag", "--points-at", "HEAD").stdout.split()
    assert [tag for tag in tags if tag != f"v{version}"] == []


def test_every_folder_with_code_is_packaged() -> None:
    folders = {path.parent for path in (ROOT / "pyramidions").rglob("*.py")}
    missing = [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()]
    assert missing == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what pip reads, in a folder with a space, so that no build file lands in the repository."""
    folder = tmp_path / "a copy"
    shutil.copytree(ROOT / "pyramidions", folder / "pyramidions", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def index() -> None:
    """Skip where the package index that pip is configured with cannot be reached."""
    probe = ("install", "--dry-run", "--ignore-installed", "--no-deps", "--retries", "0", "--timeout", "15", "wheel")
    if run(sys.executable, "-m", "pip", *probe).returncode:
        pytest.skip("needs a package index, and pip reaches none")


def would_install(python: Path | str, target: str, folder: Path) -> set[str]:
    """Return the names that pip would install into the environment of ``python``."""
    report = folder / "report.json"
    done = run(
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python),
        *("install", "--dry-run", "--quiet", "--no-build-isolation", "--report", report, target),
    )
    assert done.returncode == 0, done.stderr
    return {item["metadata"]["name"].lower() for item in json.loads(report.read_text())["install"]}


@pytest.mark.nightly
def test_a_clean_environment_with_torch_gets_no_second_torch(source: Path, tmp_path: Path) -> None:
    # Beside the torch that is here nothing is fetched but what the set-up takes out again.
    assert would_install(sys.executable, f"{source}[train]", tmp_path) == {"pyramidions", "torchaudio"}
    python = tmp_path / "clean" / "bin" / "python"
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean").returncode == 0
    folder = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    # To pip, torch is installed where its metadata lie: its 700 MB need not be copied.
    for name in ("torch", "setuptools"):
        metadata = Path(str(distribution(name)._path))
        shutil.copytree(metadata, Path(folder) / metadata.name)
    for package in ("setuptools", "_distutils_hack"):
        shutil.copytree(Path(setuptools.__file__).parents[1] / package, Path(folder) / package)
    names = would_install(python, f"{source}[torch]", tmp_path)
    assert {"pyramidions", "numpy", "sentencepiece"} <= names
    assert not [name for name in names if re.match("torch|nvidia|cuda|triton|fairseq", name)]


BUILD_SDIST = "from setuptools.build_meta import build_sdist; build_sdist('dist')"


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_the_built_wheel_extracts_a_document_in_an_empty_environment(
    source: Path, tmp_path: Path, declared: dict[str, Any]
) -> None:
    # Whoever releases builds an sdist, and the wheel from it: a file that the sdist lacks is missed here.
    done = run(sys.executable, "-c", BUILD_SDIST, cwd=source)
    assert done.returncode == 0, done.stderr
    (sdist,) = (source / "dist").iterdir()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    done = run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "dist", sdist)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.name == f"pyramidions-{declared['version']}-py3-none-any.whl"

    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty").returncode == 0
    programs, work = tmp_path / "empty" / "bin", tmp_path / "work"
    done = run(*pip, "--python", programs / "python", "install", "--no-compile", wheel)
    assert done.returncode == 0, done.stderr
    work.mkdir()
    # Nothing of the checkout is on the path.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = run(programs / "python", "-c", "import torch", env=env, cwd=work)
    assert "No module named 'torch'" in done.stderr
    done = run(programs / "pyramidions", "--version", env=env, cwd=work)
    assert done.stdout == f"pyramidions, version {declared['version']}\n", done.stderr
    (tmp_path / "paper.txt").write_text(PAPER)
    for method in ("hiporank", "biomedical"):
        words = ("extract", tmp_path / "paper.txt", "--method", method, "--words", "30", "--explain", "page.html")
        done = run(programs / "pyramidions", *words, env=env, cwd=work)
        assert done.returncode == 0, done.stderr
        extracted = [sentence for sentence in SENTENCES if sentence in done.stdout]
        assert 2 <= len(extracted) <= 6, done.stdout
        assert [path.name for path in work.iterdir()] == ["page.html"]
        (work / "page.html").unlink()


def test_the_image_is_built_from_what_is_there_and_runs_the_command_as_no_root(requirements: Requirements) -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    sources = {source for words in copied for source in words}
    assert all((ROOT / source).exists() for source in sources)
    ignored, *kept = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored == "*" and {line[1:] for line in kept if line.startswith("!")} == sources
    default = dict(line.removeprefix("ARG ").split("=", 1) for line in lines if line.startswith("ARG ") and "=" in line)
    assert default["EXTRA"] in requirements
    assert f"torch_version={default['TORCH']}\n" in (ROOT / "scripts" / "setup.sh").read_text()
    assert f"python{default['PYTHON']} " in (ROOT / "scripts" / "setup.sh").read_text()
    last = [line for line in lines if line.startswith(("USER", "ENTRYPOINT"))]
    assert last == ["USER 1000", 'ENTRYPOINT ["pyramidions"]']


def test_scripts_are_executable_and_parse() -> None:
    assert [script for script in SCRIPTS if not os.access(script, os.X_OK)] == []
    assert [script for script in SCRIPTS if run("bash", "-n", script).returncode] == []
