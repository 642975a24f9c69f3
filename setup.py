"""Packaging of pyramidions: metadata, dependencies and the command line's entry point."""

import re
from pathlib import Path

from setuptools import find_packages, setup

README = Path(__file__).parent / "README.md"
BASE_ROOM = README.with_name("pyramidions") / "base" / "__init__.py"
VERSION = re.findall('__version__ = "(.+)"', BASE_ROOM.read_text())[0]

# Enough to extract, to score and to prepare data: no torch, no fairseq and no compiler.
BASE = [
    "numpy>=2,<3",
    "scipy>=1.13,<2",
    "sentencepiece>=0.2,<0.3",
    "py3langid>=0.4,<0.5",  # tells the language of a document; its model is 5 MB and no pickle
    "sentencex~=1.0.32",  # each release splits otherwise: prepared folders and scores say which
    "confusable-homoglyphs>=3.3,<4",  # letters of other scripts that look like Latin ones
    "safetensors>=0.4.3,<1",  # exported models hold no pickle
    "pypdfium2>=5,<6",  # reads .pdf, with the place and the type of each character; pdfium is in it
    "lxml>=6,<7",  # reads .html in linear time
    "markdown-it-py>=3,<5",  # reads .md
    "mdit-py-plugins>=0.4.2,<0.8",  # its front matter and footnotes
    "mammoth>=1.9,<2",  # reads .docx
    "pylatexenc>=2.10,<3",  # parses .tex without running TeX
    "rouge-score>=0.1.2,<0.2",  # tests hold its words and scores; the signature of scores names the version
    "stop-words~=2025.11.4",  # of 33 languages; labels change with its lists: prepared folders say which
    "nltk>=3.9.1,<4",  # which rouge-score stems with: METEOR, and stemmers of other languages
    "scikit-learn>=1.5,<2",  # fits the trees of `train --kind concepts`
    "tqdm>=4.66,<5",
    "click>=8.1,<9",
]

# Enough to run a model: to summarize, to extract by a trained extractor, to build one in Python.
TORCH = ["torch>=2.6,<3", "jinja2>=3.1,<4"]  # jinja2 fills the cards of exported models

# What a model reads and writes with that started from BART, LED or PEGASUS.
PRETRAINED = [
    *TORCH,
    "tokenizers>=0.21,<0.24",
    "huggingface-hub>=1.0,<3",  # names of models on the hub; 1.0 and 2.0 differ in the library of HTTP only
]

# What transformers reads, trains and runs our models with. 5.24 renamed what decoders keep between steps.
HF = [
    *PRETRAINED,
    "transformers>=5.24,<6",
    "accelerate>=1.10,<2",  # its trainers need it
    "protobuf>=5,<8",  # it reads models of sentencepiece with it
]

# What metrics with weights run on: BERTScore, MoverScore, BARTScore, BLEURT, APES, entailment, entities.
METRICS = [
    *PRETRAINED,
    "transformers>=5.24,<6",  # as in HF: where it is installed, `import pyramidions.hf` must work
    "POT>=0.9.6,<0.10",  # optimal transport, for MoverScore
]

# What lab/ checks, counts and draws with, and submits to a cluster.
BENCH = [
    "pandas>=2.2,<4",
    "tabulate>=0.9,<1",  # pandas writes Markdown with it
    "matplotlib>=3.9,<4",
    "pydantic>=2.10,<3",  # reads result.json and names the field, the rule and the value where one is wrong
    "submitit>=1.5.3,<2",  # submits the steps of `reproduce --launcher slurm`
]

# fairseq-fixed compiles against the torch that is installed: see scripts/setup.sh for the order.
TRAIN = [
    "fairseq-fixed==0.12.3.1",  # the only release; pyramidions/plugin rests on what its code does inside
    "datasets>=4,<6",
    "pyarrow>=18,<27",
    "tensorboardX>=2.6.2,<3",  # for --tensorboard-logdir; the viewer is not needed to train
    *PRETRAINED,
]

# What builds the site of docs/.
DOCS = ["mkdocs-material>=9.5,<10", "mkdocstrings[python]>=0.29,<2", "mkdocs-click>=0.8,<1"]

# What `serve` shows its page with: the smallest typed framework for the web that is kept well, and its usual server.
SERVE = ["starlette>=1.0,<2", "uvicorn>=0.40,<1"]

# What `--engine ray` spreads documents over machines with.
RAY = ["ray[data]>=2.51,<3"]

# What `prepare --tags` runs.
TAGS = ["spacy>=3.8,<3.9"]  # a model of spaCy fits one minor release only

# Lint and types are held to one minor release: a new rule must not turn an old commit red.
DEV = [
    *TRAIN,
    *BENCH,
    "ruff>=0.17,<0.18",
    "mypy>=2.4,<2.5",
    "pytest>=9.0,<10",
    "pytest-xdist>=3.8,<4",
    "pytest-timeout>=2.4,<3",  # a test that hangs says where
    "hypothesis>=6.150,<7",
    *("nbclient>=0.10,<0.12", "nbformat>=5.10,<6", "ipykernel>=6.29,<8"),  # run the notebooks of docs/ in a test
    "selenium>=4.20,<5",  # drives Chromium in the tests of pages
    *RAY,
    *SERVE,
    *TAGS,
    *DOCS,
    *METRICS,  # transformers' LED and BART are also what ours are compared with, in tests
    *HF,
    "peft>=0.21,<1",  # adapters of a model under transformers, in a test
    "beautifulsoup4>=4.12,<5",  # reads .html as ours does, in a test
]

setup(
    name="pyramidions",
    version=VERSION,
    description="Long-document summarization with pooling transformers (Pyramidion), a fairseq plugin",
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="the pyramidions authors",
    license="MIT",
    license_files=["LICENSE"],
    keywords=["summarization", "long documents", "transformer", "pooling", "fairseq", "pytorch"],
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    python_requires=">=3.11",
    packages=find_packages(include=["pyramidions", "pyramidions.*"]),
    package_data={
        "pyramidions": [
            *(
                "py.typed",
                "__init__.pyi",
                "data/section_types.json",
                "pretrained/card.md",
                "data/corpora/corpora.toml",
                "extract/shipped/*/*",
            ),
            *(f"{folder}/*.{ending}" for folder in ("pages", "serve") for ending in ("html", "css", "js")),
        ]
    },
    install_requires=BASE,
    extras_require={
        "torch": TORCH,
        "train": TRAIN,
        "pretrained": PRETRAINED,
        "hf": HF,
        "metrics": METRICS,
        "ray": RAY,
        "serve": SERVE,
        "tags": TAGS,
        "docs": DOCS,
        "bench": BENCH,
        "dev": DEV,
    },
    entry_points={"console_scripts": ["pyramidions = pyramidions.cli:main"]},
    zip_safe=False,
)
