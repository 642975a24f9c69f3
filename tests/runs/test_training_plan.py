"""What `pyramidions train` decides before it begins."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.models import preset
from pyramidions.runs.arguments import Arguments, changed, find_sources, stamps
from pyramidions.runs.kinds import KINDS, Machine, choose_kind, find_machine
from pyramidions.runs.measure.cost import Lengths, cost_of
from pyramidions.runs.network_run import NetworkRun, generate_command
from pyramidions.runs.places import Places
from pyramidions.runs.plan import Plan, make_plan
from pyramidions.runs.recipe import GPU_TFLOPS, TIERS, CorpusSize, tier_of
from pyramidions.runs.steps import State

CPU, GPU = Machine(0, 16e9), Machine(1, 40e9)


def write(path: Path, number: int) -> Path:
    lines = [json.dumps({"id": str(i), "article": "a b c d.", "abstract": "e f."}) for i in range(number)]
    path.write_text("\n".join(lines) + "\n")
    return path


@for_each(
    ("documents", "machine", "kind", "why"),
    [
        (200, CPU, "concepts", "fewer than 5,000 documents"),
        (4999, GPU, "concepts", "fewer than 5,000 documents"),
        (12_000, CPU, "concepts", "without a GPU"),
        (12_000, GPU, "summarizer", "12,000 documents can teach"),
    ],
)
def test_a_summarizer_needs_thousands_of_documents_and_a_gpu(documents, machine, kind, why):
    found, told = choose_kind("auto", documents, machine)
    assert found == kind and why in told
    assert choose_kind("summarizer", documents, machine)[0] == "summarizer"


def test_without_a_gpu_the_model_is_small_whatever_the_corpus():
    assert tier_of(300_000, 0) is TIERS[0] and tier_of(300_000, 8) is TIERS[2]


def test_the_vocabulary_grows_with_the_corpus():
    sizes = [KINDS["summarizer"].vocab_size(documents, 1) for documents in (200, 12_000, 200_000)]
    assert sizes == [4000, 16_000, 32_768]


def test_a_schedule_is_the_recipe_of_the_corpus_and_the_machine():
    corpus = CorpusSize(12_000, 16_000, {"mean": 3000.0, "p95": 6000.0}, {"mean": 200.0, "p5": 20, "max": 600})
    small, large = (KINDS["summarizer"].schedule(corpus, machine, None) for machine in (CPU, GPU))
    assert small.about.startswith("pyramidion_pointer, ") and large.about.startswith("transpooler, ")
    assert small.updates == 20 * 1_500
    assert "--eval-rouge" in large.flags and large.hours < small.hours


@for_each(("memory", "batch", "frequency"), [(40e9, "32", "1"), (12e9, "16", "2"), (1e9, "1", "32")])
def test_a_smaller_memory_gets_a_smaller_batch_and_the_same_update(memory: float, batch: str, frequency: str) -> None:
    corpus = CorpusSize(5000, 4000, {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700})
    flags = KINDS["summarizer"].schedule(corpus, Machine(1, memory), None).flags
    assert [flags[flags.index(flag) + 1] for flag in ("--batch-size", "--update-freq")] == [batch, frequency]


def test_hundreds_of_thousands_get_the_papers_update_of_256_documents() -> None:
    corpus = CorpusSize(203_037, 32_768, {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700})
    found = KINDS["summarizer"].schedule(corpus, Machine(8, 40e9), None)
    batch, frequency, warm_up = (
        int(found.flags[found.flags.index(flag) + 1]) for flag in ("--batch-size", "--update-freq", "--warmup-updates")
    )
    assert found.about == "deep_pyramidion, 124.4 million parameters"
    assert batch * frequency * 8 == 256 and warm_up == 5000


def test_hours_are_operations_over_the_assumed_rate() -> None:
    config = preset("transpooler", normalize_before=True, pooling_lengths="None,2048")
    forward = cost_of(config, Lengths(6500, 300, 1, 4000)).total()
    corpus = CorpusSize(5000, 4000, {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700})
    # A backward pass counts twice, a multiplication comes with an addition; 30 epochs by two GPUs.
    hours = 6 * forward * 5000 * 30 / (GPU_TFLOPS * 1e12) / 3600 / 2
    assert KINDS["summarizer"].schedule(corpus, Machine(2, 40e9), None).hours == pytest.approx(hours)


def test_where_documents_have_queries_they_decide_what_is_kept() -> None:
    corpus = CorpusSize(500, 4000, {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700})
    assert "--scorer" not in KINDS["summarizer"].schedule(corpus, CPU, None).flags
    flags = KINDS["summarizer"].schedule(corpus._replace(has_queries=True), CPU, None).flags
    assert flags[flags.index("--scorer") + 1] == "query"


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_is_the_models_own_so_that_the_export_writes_what_is_scored(kind: str) -> None:
    corpus = CorpusSize(200, 4000, {"mean": 3000.0, "p95": 6000.0}, {"mean": 200.0, "p5": 20, "max": 600})
    schedule = KINDS[kind].schedule(corpus, CPU, None)
    plan = Plan({"train": "papers.jsonl"}, {}, 200, 0, kind, "asked", 4000, 0, 16e9)
    command = generate_command(Places(Path("model")), plan, schedule)
    assert not {"--beam", "--lenpen", "--min-len", "--max-len-b", "--no-repeat-ngram-size"} & set(command)
    assert ("--decoding-no-repeat-ngram" in schedule.flags) == (kind == "summarizer")


def test_a_vocabulary_is_refused_where_no_network_is_trained(tmp_path: Path) -> None:
    path = write(tmp_path / "papers.jsonl", 20)
    for kind in ("auto", "concepts"):
        with pytest.raises(UserError, match="--vocab-size is an option of networks, but a model of concepts would be"):
            make_plan(Arguments(str(path), kind, gpus=0, vocab_size=60))


def test_hours_and_gpus_are_refused_where_no_network_is_trained(tmp_path: Path) -> None:
    path = write(tmp_path / "papers.jsonl", 20)
    for given in ({"hours": 1.0}, {"gpus": 1}):
        with pytest.raises(UserError, match=f"^--{next(iter(given))} is an option of networks, but --kind is concepts"):
            make_plan(Arguments(str(path), "concepts", **given))


@for_each(("p5", "shortest"), [(0.0, "1"), (40.9, "40"), (2000.0, "966")])
def test_a_summary_is_at_least_as_long_as_95_of_100_in_the_corpus(p5: float, shortest: str) -> None:
    corpus = CorpusSize(200, 4000, {"mean": 3000.0, "p95": 6000.0}, {"mean": 200.0, "p5": p5, "max": 3000})
    flags = KINDS["summarizer"].schedule(corpus, CPU, None).flags
    assert flags[flags.index("--decoding-min-length") + 1] == shortest


@for_each("machine", [CPU, GPU, Machine(8, 40e9)])
@for_each("documents", [1_000, 12_000, 200_000])
def test_the_warm_up_of_a_summarizer_ends_long_before_its_hours(machine: Machine, documents: int) -> None:
    def warm_up(hours: float | None) -> int:
        flags = KINDS["summarizer"].schedule(corpus, machine, hours).flags
        return int(flags[flags.index("--warmup-updates") + 1])

    corpus = CorpusSize(documents, 16_000, {"mean": 3000.0, "p95": 6000.0}, {"mean": 200.0, "p5": 20, "max": 600})
    whole = KINDS["summarizer"].schedule(corpus, machine, None)
    # A five-hundredth of the time is enough for so many of the updates.
    assert 0 < warm_up(whole.hours / 500) <= max(1, 0.1 * whole.updates / 500) < warm_up(None)
    assert warm_up(1e-6) == 1 and warm_up(2 * whole.hours) == warm_up(None)


def test_a_file_is_divided_and_a_folder_with_all_splits_is_not(tmp_path: Path) -> None:
    plan, _ = make_plan(Arguments(str(write(tmp_path / "papers.jsonl", 40)), "summarizer", gpus=0))
    assert plan.held_out == {"train": 34, "test": 4, "valid": 2} and plan.documents == 34
    assert (
        "40 documents; held out by a hash of their ids: 4 for test and 2 for valid" in plan.sentences("x", tmp_path)[0]
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    for split in ("train", "val", "test"):
        write(folder / f"{split}.jsonl", 3)
    plan, _ = make_plan(Arguments(str(folder), "summarizer", gpus=0))
    assert plan.held_out == {} and plan.documents == 3


@pytest.mark.parametrize("kind", ["auto", "extractor"])
def test_documents_whose_sentences_are_selected_may_have_sections_alone(tmp_path: Path, kind: str) -> None:
    record = {"abstract": "e f.", "query": "g?", "sections": [["a b c d."]], "section_names": ["Methods"]}
    papers = tmp_path / "papers.jsonl"
    papers.write_text(f"{json.dumps(record)}\n" * 40)
    plan, found = make_plan(Arguments(str(papers), kind, gpus=0))
    # The heading is a word.
    assert plan.documents == 34 and found.source_words.tolist() == [5] * 40
    with pytest.raises(UserError, match="lacks the field 'article'"):
        make_plan(Arguments(str(papers), "summarizer", gpus=0, query_field="query"))


def test_wrong_sections_of_the_test_split_are_found_before_the_training(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        write(tmp_path / f"{split}.jsonl", 3)
    record = {"article": "a b.", "abstract": "c.", "sections": [["a b."]], "section_names": []}
    (tmp_path / "test.jsonl").write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"test.jsonl, line 1: `sections` and `section_names` must have as many"):
        make_plan(Arguments(str(tmp_path), "summarizer", gpus=0))


def test_only_the_split_that_is_missing_is_held_out(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", 40)
    write(tmp_path / "test.jsonl", 3)
    plan, _ = make_plan(Arguments(str(tmp_path), "summarizer", gpus=0))
    assert plan.held_out == {"train": 38, "valid": 2}


def test_a_hugging_face_dataset_tells_its_splits(tmp_path: Path) -> None:
    import datasets

    rows = [{"id": str(i), "article": "a b.", "abstract": "c."} for i in range(20)]
    datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)}).save_to_disk(str(tmp_path / "hub"))
    assert find_sources(str(tmp_path / "hub"), None) == ({"train": str(tmp_path / "hub")}, ("valid", "test"))


def test_a_folder_without_a_train_split_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl", 3)
    with pytest.raises(UserError, match="must have documents to train on, but has no train split"):
        find_sources(str(tmp_path), None)


def test_more_gpus_than_there_are_are_refused():
    with pytest.raises(UserError, match=r"--gpus must be at most \d+, the number of GPUs that torch finds, but is 999"):
        find_machine(999)


def test_a_file_that_was_only_touched_has_not_changed(tmp_path: Path) -> None:
    papers = write(tmp_path / "papers.jsonl", 3)
    before = stamps(str(papers))
    papers.touch()
    assert changed(before, stamps(str(papers), before)) is None
    write(papers, 4)
    assert changed(before, stamps(str(papers), before)) == str(papers)


def test_only_files_of_splits_count_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", 3)
    before = stamps(str(tmp_path))
    (tmp_path / "notes.md").write_text("mine")
    assert changed(before, stamps(str(tmp_path), before)) is None
    added = write(tmp_path / "valid.jsonl", 3)
    assert changed(before, stamps(str(tmp_path), before)) == str(added)


def test_the_first_difference_of_arguments_is_named():
    recorded = {**vars(Arguments("papers")), "seed": 2}
    assert Arguments("papers").difference(recorded) == "--seed was 2, and is 1"
    assert Arguments("papers", hours=2.0).difference(vars(Arguments("papers"))) == "--hours was not given, and is 2.0"
    assert Arguments("papers").difference(vars(Arguments("papers"))) is None


def test_a_held_out_split_is_estimated_from_words(tmp_path: Path) -> None:
    from pyramidions.runs.plan import estimated

    arguments = Arguments(str(write(tmp_path / "papers.jsonl", 40)), "summarizer", gpus=0)
    plan, found = make_plan(arguments)
    assert np.array_equal(found.source_words, [4] * 40)
    # 34 documents, 8 an update, 20 epochs.
    schedule = estimated(plan, found, arguments)
    assert schedule.updates == 20 * 5 and "--scorer" not in schedule.flags


def test_documents_with_queries_train_a_summarizer(tmp_path: Path) -> None:
    path = tmp_path / "meetings.jsonl"
    record = {"query": "Why?", "article": "Bees dance.", "abstract": "So."}
    path.write_text("".join(json.dumps({"id": f"{number}", **record}) + "\n" for number in range(20)))
    plan, _ = make_plan(Arguments(str(path), gpus=0, query_field="query"))
    assert (plan.kind, plan.why) == ("summarizer", "--query-field asks for it")
    with pytest.raises(UserError, match="--kind extractor excludes --query-field: this kind is trained without"):
        make_plan(Arguments(str(path), "extractor", gpus=0, query_field="query"))


def test_without_a_gpu_a_summarizer_copies_at_first_and_reads_selected_sentences_that_nothing_pools() -> None:
    lengths = {"mean": 600.0, "p95": 640.0}, {"mean": 200.0, "p5": 20, "max": 600}
    selecting = KINDS["summarizer"].selecting(12_000, 0)
    assert selecting is not None and KINDS["summarizer"].selecting(12_000, 1) is None
    assert KINDS["extractor"].selecting(12_000, 0) is None

    def flags(corpus: CorpusSize) -> list[str]:
        return list(KINDS["summarizer"].schedule(corpus, CPU, None).flags)

    corpus = CorpusSize(12_000, 4000, *lengths)
    selected, whole = flags(corpus._replace(selecting=selecting)), flags(corpus)
    assert selected[selected.index("--pooling-lengths") + 1] == "None,None"
    assert selected[selected.index("--decoding-long") + 1] == "extract" and "--copying-updates" in selected
    assert "--decoding-long" not in whole and "--copying-updates" not in whole
    assert whole[whole.index("--pooling-lengths") + 1] == "256,64"


def test_sentences_are_not_selected_from_documents_with_queries() -> None:
    plan = Plan({"train": "papers.jsonl"}, {}, 200, 0, "summarizer", "asked", 4000, 0, 16e9)
    assert plan.selecting is not None and plan.by_sections
    asked = replace(plan, has_queries=True)
    assert asked.selecting is None and not asked.by_sections


def test_summaries_are_cut_where_keywords_begin_but_for_references(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        document = {"id": "a", "article": "Bees fly. They sting.", "abstract": "Bees fly.\n\nKeywords\nbees wings"}
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(document))
    arguments = Arguments(str(tmp_path), "summarizer", gpus=0)
    plan, _ = make_plan(arguments)
    assert "1 summary cut for training, where keywords or notices begin." in plan.sentences("x", tmp_path)
    run = NetworkRun(arguments, plan, Places(tmp_path / "model"), State(tmp_path / "state.json", {}), print)
    targets = {split: [document.target for document in run.documents(split)] for split in ("train", "valid", "test")}
    assert targets == {"train": ["Bees fly."], "valid": ["Bees fly."], "test": ["Bees fly.\n\nKeywords\nbees wings"]}
