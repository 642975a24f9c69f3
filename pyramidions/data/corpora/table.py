"""The corpora that users name: one entry each.

Counts and columns are those of the data cards on the hub and of the releases; sizes are those of the files there, but
for PubMed and SummScreen, whose cards state none. ScisummNet has the 1,000 papers that its authors state.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.corpora.core import Form, KnownCorpus
from pyramidions.data.corpora.dialogues import (
    INTERVIEW_COLUMNS,
    MEETING_COLUMNS,
    join_subwords,
    questions_of_meeting,
    turns_of_interview,
    turns_of_meeting,
)
from pyramidions.data.corpora.pairs import articles_of_news, paper_of_xml
from pyramidions.data.corpora.reports import ASPECT_COLUMNS, aspects_of_report
from pyramidions.data.folder import SPLITS, DataFolder
from pyramidions.documents.record_fields import PLAIN, RELEASE, FieldNames

_SHORT = {"train": "train", "valid": "val", "test": "test"}
_DEV = {"train": "train", "valid": "dev", "test": "test"}
_ON_HUB = {"train": "train", "valid": "validation", "test": "test"}


def _tables(fields: FieldNames, folder: str) -> tuple[Form, ...]:
    """Return the forms of the tables of a dataset on the hub: in their folder there, or in another one."""
    patterns = (f"*/{folder}/{{split}}[-.]*parquet", "*/{split}[-.]*parquet")
    return tuple(Form(fields, f"{folder}/train-*.parquet", each, _ON_HUB, in_parts=True) for each in patterns)


def _csv(fields: FieldNames, splits: Mapping[str, str] = _ON_HUB) -> tuple[Form, ...]:
    """Return the form of the tables of a dataset on the hub, a file for each split."""
    return (Form(fields, "train.csv", "*/{split}.csv", splits),)


def _meetings(name: str) -> tuple[Form, ...]:
    """Return the form of the meetings in the repository of HMNet (Zhu et al. 2020)."""
    fields, files = FieldNames("meeting", "summary", "id"), f"*/{name}_proprec/{{split}}/*.jsonl"
    example = f"{name}_proprec/train/split_0.jsonl.gz"
    return (Form(fields, example, files, _DEV, in_parts=True, documents=turns_of_meeting),)


def _papers(folder: str) -> tuple[Form, ...]:
    """Return the forms of the papers of Cohan et al. (2018); only the release has sections."""
    patterns = (f"*/{folder}*/{{split}}.txt", "*/{split}.txt")
    release = tuple(Form(RELEASE, f"{folder}/train.txt", each, _SHORT) for each in patterns)
    return (*_tables(PLAIN._replace(id=None), "document"), *release)


_PATENT = FieldNames("description", "abstract", None)
_QUESTION = FieldNames("source", "target", "id", "query")
_SCREENPLAY = FieldNames("Transcript", "Recap", "filename")
_DIALOGUE = FieldNames("dialogue", "summary", "id")

_ALL = (
    KnownCorpus(
        name="arxiv",
        paper="Cohan et al. 2018",
        home="https://github.com/armancohan/long-summarization",
        licence="none stated",
        sizes={"document": {"train": 203_037, "valid": 6_436, "test": 6_440}},
        forms=_papers("arxiv-dataset"),
        hub="ccdv/arxiv-summarization",
        download=3_614_462_676,
    ),
    KnownCorpus(
        name="pubmed",
        paper="Cohan et al. 2018",
        home="https://github.com/armancohan/long-summarization",
        licence="none stated",
        sizes={"document": {"train": 119_924, "valid": 6_633, "test": 6_658}},
        forms=_papers("pubmed-dataset"),
        hub="ccdv/pubmed-summarization",
        download=1_200_000_000,
    ),
    KnownCorpus(
        name="govreport",
        paper="Huang et al. 2021",
        home="https://gov-report-data.github.io",
        licence="CC BY 4.0",
        sizes={"document": {"train": 17_517, "valid": 973, "test": 973}},
        forms=_tables(FieldNames("report", "summary", None), "document"),
        hub="ccdv/govreport-summarization",
        download=506_610_432,
    ),
    KnownCorpus(
        name="billsum",
        paper="Kornilova and Eidelman 2019",
        home="https://github.com/FiscalNote/BillSum",
        licence="CC0 1.0",
        sizes={"": {"train": 18_949, "test": 3_269}},
        forms=_tables(FieldNames("text", "summary", None), "data"),
        hub="FiscalNote/billsum",
        download=113_729_382,
        held_out=0.05,
    ),
    KnownCorpus(
        name="bigpatent",
        paper="Sharma et al. 2019",
        home="https://evasharma.github.io/bigpatent",
        licence="CC BY 4.0",
        sizes={
            "all": {"train": 1_207_222, "valid": 67_068, "test": 67_072},
            "a": {"train": 174_134, "valid": 9_674, "test": 9_675},
            "b": {"train": 161_520, "valid": 8_973, "test": 8_974},
            "c": {"train": 101_042, "valid": 5_613, "test": 5_614},
            "d": {"train": 10_164, "valid": 565, "test": 565},
            "e": {"train": 34_443, "valid": 1_914, "test": 1_914},
            "f": {"train": 85_568, "valid": 4_754, "test": 4_754},
            "g": {"train": 258_935, "valid": 14_385, "test": 14_386},
            "h": {"train": 257_019, "valid": 14_279, "test": 14_279},
            "y": {"train": 124_397, "valid": 6_911, "test": 6_911},
        },
        forms=(
            # 2.1.2 is the text as it was written; 1.0.0 is in lower case and tokenized.
            Form(
                _PATENT,
                "data/2.1.2/train.zip",
                "*/2.1.2/{split}.zip*/{config}/*",
                _SHORT,
                in_parts=True,
                fetched=tuple(f"data/2.1.2/{name}.zip" for name in _SHORT.values()),
            ),
            Form(_PATENT, "train.zip", "*/{split}.zip*/{config}/*", _SHORT, in_parts=True),
            Form(_PATENT, "train/a/*.gz", "*/{split}/{config}/*", _SHORT, in_parts=True),
        ),
        hub="NortheasternUniversity/big_patent",
        download=10_142_923_776,
    ),
    KnownCorpus(
        name="qmsum",
        paper="Zhong et al. 2021",
        home="https://github.com/Yale-LILY/QMSum",
        licence="MIT; the authors ask for research use only",
        sizes={"": {"train": 1_257, "valid": 272, "test": 281}},
        forms=tuple(
            Form(
                _QUESTION,
                "data/ALL/jsonl/train.jsonl",
                pattern,
                _SHORT,
                documents=questions_of_meeting,
                columns=MEETING_COLUMNS,
            )
            for pattern in ("*/ALL/jsonl/{split}.jsonl", "*/{split}.jsonl")
        ),
    ),
    KnownCorpus(
        name="booksum",
        paper="Kryściński et al. 2021",
        home="https://github.com/salesforce/booksum",
        licence="BSD 3-Clause; the texts are for research only",
        sizes={"": {"train": 9_600, "valid": 1_484, "test": 1_431}},
        forms=_csv(FieldNames("chapter", "summary_text", None), _DEV),
        hub="kmfoda/booksum",
        download=378_800_000,
    ),
    KnownCorpus(
        name="summscreen",
        paper="Chen et al. 2022",
        home="https://github.com/mingdachen/SummScreen",
        licence="MIT",
        sizes={
            "fd": {"train": 3_673, "valid": 338, "test": 337},
            "tms": {"train": 18_915, "valid": 1_795, "test": 1_793},
        },
        forms=(
            # SCROLLS keeps the summaries of its test split to itself.
            Form(
                FieldNames("input", "output", "id"),
                "summ_screen_fd.zip",
                "*/summ_screen_fd*/{split}.jsonl",
                {"train": "train", "valid": "validation"},
                configs=("fd",),
                fetched=("summ_screen_fd.zip",),
            ),
            Form(_SCREENPLAY, "fd_train.json", "*/{config}_{split}.json", _DEV, documents=join_subwords),
        ),
        hub="tau/scrolls",
        download=50_000_000,
    ),
    KnownCorpus(
        name="govreport_aspects",
        paper="Huang et al. 2021",
        home="https://gov-report-data.github.io",
        licence="CC BY 4.0",
        sizes={"": {"train": 11_005, "valid": 612, "test": 611}},
        forms=(
            Form(
                _QUESTION,
                "data/gao_train.jsonl",
                "*/gao_{split}.jsonl",
                fetched=tuple(f"data/gao_{split}.jsonl" for split in SPLITS),
                documents=aspects_of_report,
                columns=("id", *ASPECT_COLUMNS),
            ),
        ),
        hub="launch/gov_report",
        download=790_600_000,
        counted="reports, a document for each aspect",
    ),
    KnownCorpus(
        name="booksum_books",
        paper="Kryściński et al. 2021",
        home="https://github.com/salesforce/booksum",
        licence="BSD 3-Clause; the texts are for research only",
        sizes={"": {"train": 314, "valid": 45, "test": 46}},
        forms=_tables(FieldNames("book", "summary", None), "data"),
        hub="abertsch/booksum-fullbooks",
        download=60_336_046,
    ),
    KnownCorpus(
        name="ami",
        paper="Carletta et al. 2005",
        home="https://github.com/microsoft/HMNet",
        licence="CC BY 4.0",
        sizes={"": {"train": 97, "valid": 20, "test": 20}},
        forms=_meetings("AMI"),
    ),
    KnownCorpus(
        name="icsi",
        paper="Janin et al. 2003",
        home="https://github.com/microsoft/HMNet",
        licence="CC BY 4.0",
        sizes={"": {"train": 43, "valid": 10, "test": 6}},
        forms=_meetings("ICSI"),
    ),
    KnownCorpus(
        name="mediasum",
        paper="Zhu et al. 2021",
        home="https://github.com/zcgzcgzcg1/MediaSum",
        licence="none stated; the authors ask for research use only",
        sizes={"": {"train": 443_596, "valid": 10_000, "test": 10_000}},
        forms=(
            Form(
                FieldNames("utt", "summary", "id"),
                "train.json",
                "*/{split}.json",
                _ON_HUB,
                fetched=tuple(f"{split}.json" for split in _ON_HUB.values()),
                documents=turns_of_interview,
                columns=("id", "summary", *INTERVIEW_COLUMNS),
            ),
        ),
        hub="nbroad/mediasum",
        download=4_451_000_000,
    ),
    KnownCorpus(
        name="samsum",
        paper="Gliwa et al. 2019",
        home="https://arxiv.org/abs/1911.12237",
        licence="CC BY-NC-ND 4.0",
        sizes={"": {"train": 14_732, "valid": 818, "test": 819}},
        forms=_csv(_DIALOGUE),
        hub="knkarthick/samsum",
        download=10_286_000,
    ),
    KnownCorpus(
        name="dialogsum",
        paper="Chen et al. 2021",
        home="https://github.com/cylnlp/dialogsum",
        licence="CC BY-NC-SA 4.0",
        sizes={"": {"train": 12_460, "valid": 500, "test": 1_500}},
        forms=_csv(_DIALOGUE),
        hub="knkarthick/dialogsum",
        download=13_092_000,
    ),
    KnownCorpus(
        name="cnn_dailymail",
        paper="See et al. 2017",
        home="https://github.com/abisee/cnn-dailymail",
        licence="Apache 2.0",
        sizes={"3.0.0": {"train": 287_113, "valid": 13_368, "test": 11_490}},
        forms=_tables(FieldNames("article", "highlights", "id"), "3.0.0"),
        hub="abisee/cnn_dailymail",
        download=837_000_000,
    ),
    KnownCorpus(
        name="xsum",
        paper="Narayan et al. 2018",
        home="https://github.com/EdinburghNLP/XSum",
        licence="none stated",
        sizes={"": {"train": 204_045, "valid": 11_332, "test": 11_334}},
        forms=_csv(_DIALOGUE),
        hub="knkarthick/xsum",
        download=533_100_000,
    ),
    KnownCorpus(
        name="newsroom",
        paper="Grusky et al. 2018",
        home="https://lil.nlp.cornell.edu/newsroom",
        licence="the owners' agreement: research and education only",
        sizes={"": {"train": 995_041, "valid": 108_837, "test": 108_862}},
        forms=(Form(FieldNames("text", "summary", None), "train.jsonl.gz", "*/{split}.jsonl", _DEV),),
    ),
    KnownCorpus(
        name="multi_news",
        paper="Fabbri et al. 2019",
        home="https://github.com/Alex-Fabbri/Multi-News",
        licence="the owners' agreement: research and education only",
        sizes={"": {"train": 44_972, "valid": 5_622, "test": 5_622}},
        forms=(
            Form(
                FieldNames("document", "summary", None),
                "train.src.cleaned",
                "*/{split}.src.cleaned",
                _SHORT,
                fetched=tuple(f"data/{split}.{part}" for split in _SHORT.values() for part in ("src.cleaned", "tgt")),
                summaries="*/{split}.tgt",
                pairs=articles_of_news,
            ),
        ),
        hub="alexfabbri/multi_news",
        download=756_785_627,
    ),
    KnownCorpus(
        name="scisummnet",
        paper="Yasunaga et al. 2019",
        home="https://cs.stanford.edu/~myasu/projects/scisumm_net",
        licence="CC BY-SA 4.0",
        sizes={"": {"train": 1_000}},
        forms=tuple(
            Form(RELEASE, example, files, {"train": ""}, in_parts=True, summaries=summaries, pairs=paper_of_xml)
            for example, files, summaries in (
                ("top1000_complete/A00-1031", "*/top1000_complete/*/Documents_xml/*.xml", "*/summary/*.gold.txt"),
                ("Task2/From-ScisummNet-2019", "*/Task2/*ScisummNet*/Reference_XML/*.xml", "*/summary/*_human.txt"),
            )
        ),
        held_out=0.05,
    ),
)

#: All known corpora by name.
KNOWN = {corpus.name: corpus for corpus in _ALL}


def find_corpus(name: str, config: str | None = None) -> KnownCorpus | None:
    """Return the corpus of a name, or of its name on the hub; None for what is no such name, or a path of documents.

    Args:
        name: of a corpus, or what is no corpus.
        config: that was asked for; one that is not known makes a name on the hub no known corpus.

    Raises:
        UserError: a word that is neither a path nor a known name.
    """
    corpus = KNOWN.get(name)
    # What `prepare NAME --out NAME` made is no input.
    if Path(name).exists() and not (corpus and DataFolder(name).manifest_path.exists()):
        if corpus is not None:
            note(f"{name} is taken for the path here, not for the corpus of this name")
        return None
    if corpus is None and "/" not in name:
        near = "".join(f"; did you mean {other}?" for other in get_close_matches(name.lower(), KNOWN, 1))
        raise UserError(
            f"{name} must be a file, a folder, OWNER/NAME on the hub or a known corpus ({', '.join(KNOWN)}), but is "
            f"none{near or '.'}"
        )
    return corpus or next((each for each in KNOWN.values() if each.hub == name and _is_alike(each, config)), None)


def _is_alike(corpus: KnownCorpus, config: str | None) -> bool:
    """Return whether the name on the hub stands for the corpus: files to fetch may be one of several corpora's."""
    return not corpus.forms[0].fetched and (config is None or config in corpus.configs)
