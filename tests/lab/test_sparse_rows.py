"""Models with sparse parts: pretrained on missing spans, then on summaries; what of the report cannot be compared."""

from pathlib import Path

from result_files import write

from lab.catalogue import jobs_for, read_catalogue
from lab.report import write_report

CONFIGS = Path(__file__).parents[2] / "configs"
ARXIV = {"name": "arxiv", "documents": {"train": 203037, "valid": 6436, "test": 6440}}
DELETED = ("~task.eval_rouge", "~task.eval_rouge_args", "~task.eval_metrics", "~task.eval_metric_args")


def section(out: Path, title: str) -> list[str]:
    page = write_report(out, CONFIGS).page.read_text().splitlines()
    start = next(number for number, line in enumerate(page) if line.startswith(f"## {title}"))
    end = next(number for number in range(start + 1, len(page)) if page[number].startswith("## "))
    return [line for line in page[start:end] if line]


def test_pretraining_comes_before_what_starts_from_it() -> None:
    jobs = jobs_for(read_catalogue(CONFIGS), ["sparse_table5"], ["terraformer"])
    assert [(job.name, job.wanted) for job in jobs] == [
        ("arxiv/sparse/terraformer_pretraining", {"train"}),
        ("arxiv/sparse/terraformer", {"train", "generate", "score"}),
    ]
    assert jobs[0].row.overrides == ("+sparse=terraformer_pretraining", *DELETED)
    assert jobs[1].row.overrides == ("+sparse=terraformer",)


def test_bits_of_fairseq_are_shown_in_nats_beside_the_paper_with_what_differs(tmp_path: Path) -> None:
    training = {"seconds": 1.0, "updates": 524288, "epochs": 700, "best": {"metric": "loss", "value": 2.5}}
    changes = {"times": None, "scores": None, "generation": None, "corpus": ARXIV, "training": training}
    write(tmp_path, "sparse/scaling_pretraining", changes, "arxiv")
    lines = section(tmp_path, "Sparse parts in pretraining")
    # 2.5 bits are 1.73 nats.
    assert "| scaling | scaling transformer | 512 → 512 | – | 524,288 | – | 1.73 |" in lines
    assert "| dense | transformer | – | 500,000 | – | 1.57 | – |" in lines
    assert "The two cannot be compared" in " ".join(lines)


def test_a_tiny_pretraining_stands_alone(tmp_path: Path) -> None:
    training = {"seconds": 1.0, "updates": 5, "epochs": 1, "best": None}
    changes = {"times": None, "scores": None, "generation": None, "scale": "tiny", "training": training}
    write(tmp_path, "sparse/scaling_pretraining", changes, "arxiv")
    lines = section(tmp_path, "Sparse parts in pretraining")
    assert "| scaling (tiny) | scaling transformer | 32 → 32 | 5 | – |" in lines
    assert "500,000" not in " ".join(lines)


def test_summaries_name_the_pretraining_that_they_started_from(tmp_path: Path) -> None:
    write(tmp_path, "sparse/terraformer", {"times": None, "corpus": ARXIV}, "arxiv")
    lines = section(tmp_path, "Sparse parts on arXiv")
    (ours,) = [line for line in lines if line.startswith("| terraformer |")]
    assert "| – | sparse/terraformer_pretraining | – | 43.40 [43.10, 43.70] |" in ours
    assert any(
        line.startswith("| terraformer_800m | terraformer | – | Terraformer of 800M | – | 45.40 |") for line in lines
    )
    assert "Compare ours with ours." in " ".join(lines) and "no public file is this model" in " ".join(lines)
