"""A folder of papers in XML is a corpus: their abstracts are the summaries."""

import tarfile
from pathlib import Path

import pytest
from invoking import fail, succeed
from refusals import refused

from pyramidions.data.folder import DataFolder
from pyramidions.data.papers import open_papers, paper_files
from pyramidions.data.readers import find_splits

PAPER = """<article><front><article-meta><title-group><article-title>{0}</article-title></title-group>
<abstract><p>The {0} flies.</p></abstract></article-meta></front><body><p>We met it. It flew.</p>
<sec><title>Methods</title><p>The {0} was fed on wax and honey in the sun of Rome.</p></sec></body></article>"""
NOTICE = "<article><body><p>A correction.</p></body></article>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    papers = tmp_path / "papers"
    (papers / "a").mkdir(parents=True)
    for number in range(60):
        (papers / "a" / f"{number}.nxml").write_text(PAPER.format(f"bee {number}"))
    (papers / "b.xml").write_text(PAPER.format("wasp"))
    (papers / ".hidden.xml").write_text("no XML")
    (papers / "read.me").write_text("no XML")
    return papers


def test_a_paper_is_a_record_with_its_sections(folder: Path) -> None:
    (found,) = [each for each in open_papers(folder, "train").read() if each.value["id"] == "b"]
    assert found.value == {
        "id": "b",
        "article": ["We met it.", "It flew.", "The wasp was fed on wax and honey in the sun of Rome."],
        "abstract": "The wasp flies.",
        "sections": [["We met it.", "It flew."], ["The wasp was fed on wax and honey in the sun of Rome."]],
        "section_names": ["", "Methods"],
    }


def test_papers_in_archives_and_json_are_found_beside_other_files(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "2101.00001.tar.gz", "w:gz") as archive:
        source = tmp_path / "main.tex"
        source.write_text(r"\begin{document}Bees fly.\end{document}")
        archive.add(source, "main.tex")
    source.unlink()
    assert find_splits(str(tmp_path)) == {}
    # An archive beside a table may be of a dataset.
    (tmp_path / "metadata.csv").write_text("id,title\n")
    assert find_splits(str(tmp_path)) == {"train": str(tmp_path)}
    (tmp_path / "b.xml").write_text(PAPER.format("wasp"))
    assert find_splits(str(tmp_path)) == {}


def test_each_paper_is_in_one_split_wherever_the_folder_lies(folder: Path, tmp_path: Path) -> None:
    def ids(where: Path) -> dict[str, list[str]]:
        return {
            split: [each.value["id"] for each in open_papers(where, split).read()]
            for split in ("train", "valid", "test")
        }

    found = ids(folder)
    assert sorted(each for of_split in found.values() for each in of_split) == sorted(
        ["b", *(f"a/{number}" for number in range(60))]
    )
    assert 45 < len(found["train"]) < 60 and found["valid"] and found["test"]
    assert ids(folder.rename(tmp_path / "moved")) == found


def test_a_folder_of_papers_is_prepared_without_notices(folder: Path, tmp_path: Path) -> None:
    (folder / "a" / "notice.xml").write_text(NOTICE)
    succeed("prepare", folder, "--out", tmp_path / "data", "--vocab-size", 40)
    splits = DataFolder(tmp_path / "data").manifest["splits"]
    assert sum(each["documents"] for each in splits.values()) == 61 == len(paper_files(folder)) - 1


def test_what_is_no_paper_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "a" / "build.xml").write_text("<project/>")  # passed over
    (folder / "a" / "articles.xml").write_text("<articles/>")
    with refused("articles.xml"):
        [each for split in ("train", "valid", "test") for each in open_papers(folder, split).read()]


def test_options_that_name_fields_are_refused(folder: Path) -> None:
    assert "INPUT" in fail("prepare", folder, "--out", "made", "--source-field", "text")
