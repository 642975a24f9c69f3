"""What `pyramidions train` decides before it begins."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from pyramidions.models import preset
from pyramidions.runs.arguments import Arguments, changed, find_sources, stamps
from pyramidions.runs.kinds import KINDS, Machine, Schedule, choose_kind
from pyramidions.runs.measure.cost import Lengths, cost_of
from pyramidions.runs.network_run import NetworkRun, generate_command
from pyramidions.runs.plan import Plan, estimated, make_plan
from pyramidions.runs.recipe import GPU_TFLOPS, TIERS, CorpusSize, tier_of
from pyramidions.runs.run import Places
from pyramidions.runs.steps import State

CPU, GPU = Machine(0, 16e9), Machine(1, 40e9)
SECTIONS = {"abstract": "e f.", "query": "g?", "sections": [["a b c d."]], "section_names": ["Methods"]}


def write(path: Path, number: int) -> Path:
    lines = [json.dumps({"id": str(i), "article": "a b c d.", "abstract": "e f."}) for i in range(number)]
    path.write_text("\n".join(lines) + "\n")
    return path


def corpus_of(documents: int, vocab_size: int = 4000) -> CorpusSize:
    lengths = {"mean": 6500.0, "p95": 10900.0}, {"mean": 300.0, "p5": 40, "max": 700}
    return CorpusSize(documents, vocab_size, *lengths)


def scheduled(corpus: CorpusSize, machine: Machine = CPU, hours: float | None = None) -> Schedule:
    return KINDS["summarizer"].schedule(corpus, machine, hours)


def value(schedule: Schedule, flag: str) -> str:
    return schedule.flags[schedule.flags.index(flag) + 1]


@pytest.mark.parametrize(
    ("documents", "machine", "kind"), [(4999, GPU, "concepts"), (12_000, CPU, "concepts"), (5000, GPU, "summarizer")]
)
def test_a_summarizer_needs_thousands_of_documents_and_a_gpu(documents: int, machine: Machine, kind: str) -> None:
    assert choose_kind("auto", documents, machine)[0] == kind
    assert choose_kind("summarizer", documents, machine)[0] == "summarizer"


def test_model_and_vocabulary_grow_with_the_corpus_and_the_machine() -> None:
    assert tier_of(300_000, 0) is TIERS[0] and tier_of(300_000, 8) is TIERS[2]
    sizes = [KINDS["summarizer"].vocab_size(documents, 1) for documents in (200, 12_000, 200_000)]
    assert sizes == [4000, 16_000, 32_768]


def test_a_schedule_is_the_recipe_of_the_corpus_and_the_machine() -> None:
    small, large = (scheduled(corpus_of(12_000, 16_000), machine) for machine in (CPU, GPU))
    assert small.about.startswith("pyramidion_pointer, ") and large.about.startswith("transpooler, ")
    assert small.updates == 20 * 1_500
    assert "--eval-rouge" in large.flags and large.hours < small.hours


def test_a_smaller_memory_gets_a_smaller_batch_and_the_same_update() -> None:
    for memory, batch, frequency in ((40e9, "32", "1"), (12e9, "16", "2"), (1e9, "1", "32")):
        found = scheduled(corpus_of(5000), Machine(1, memory))
        assert (value(found, "--batch-size"), value(found, "--update-freq")) == (batch, frequency)


def test_hundreds_of_thousands_get_the_papers_update_of_256_documents() -> None:
    found = scheduled(corpus_of(203_037, 32_768), Machine(8, 40e9))
    batch, frequency = int(value(found, "--batch-size")), int(value(found, "--update-freq"))
    assert found.about == "deep_pyramidion, 124.4 million parameters"
    assert batch * frequency * 8 == 256 and value(found, "--warmup-updates") == "5000"


def test_hours_are_operations_over_the_assumed_rate() -> None:
    config = preset("transpooler", normalize_before=True, pooling_lengths="None,2048")
    forward = cost_of(config, Lengths(6500, 300, 1, 4000)).total()
    # A backward pass counts twice, a multiplication comes with an addition; 30 epochs by two GPUs.
    hours = 6 * forward * 5000 * 30 / (GPU_TFLOPS * 1e12) / 3600 / 2
    assert scheduled(corpus_of(5000), Machine(2, 40e9)).hours == pytest.approx(hours)


def test_where_documents_have_queries_they_decide_what_is_kept() -> None:
    assert "--scorer" not in scheduled(corpus_of(500)).flags
    assert value(scheduled(corpus_of(500)._replace(has_queries=True)), "--scorer") == "query"
    # Sentences are not selected from such documents.
    plan = Plan({"train": "papers.jsonl"}, {}, 200, 0, "summarizer", "asked", 4000, 0, 16e9)
    assert plan.selecting is not None and plan.by_sections
    asked = replace(plan, has_queries=True)
    assert asked.selecting is None and not asked.by_sections


def test_decoding_is_the_models_own_so_that_the_export_writes_what_is_scored() -> None:
    for kind in KINDS:
        schedule = KINDS[kind].schedule(corpus_of(200), CPU, None)
        plan = Plan({"train": "papers.jsonl"}, {}, 200, 0, kind, "asked", 4000, 0, 16e9)
        command = generate_command(Places(Path("model")), plan, schedule)
        assert not {"--beam", "--lenpen", "--min-len", "--max-len-b", "--no-repeat-ngram-size"} & set(command)
        assert ("--decoding-no-repeat-ngram" in schedule.flags) == (kind == "summarizer")


def make(path: Path, kind: str = "auto", **options: Any) -> Any:
    return make_plan(Arguments(str(path), kind, **{"gpus": 0, **options}))


def test_a_release_with_sections_has_no_queries(tmp_path: Path) -> None:
    path = tmp_path / "sections.jsonl"
    path.write_text(f"{json.dumps(SECTIONS)}\n" * 40)
    with refused("the field 'article'"):
        make(path, "summarizer", query_field="query")


def test_a_summary_is_at_least_as_long_as_95_of_100_in_the_corpus() -> None:
    for p5, shortest in ((0.0, "1"), (40.9, "40"), (2000.0, "966")):
        corpus = CorpusSize(200, 4000, {"mean": 3000.0, "p95": 6000.0}, {"mean": 200.0, "p5": p5, "max": 3000})
        assert value(scheduled(corpus), "--decoding-min-length") == shortest


@pytest.mark.parametrize(("machine", "documents"), [(CPU, 1_000), (GPU, 12_000)])
def test_the_warm_up_of_a_summarizer_ends_long_before_its_hours(machine: Machine, documents: int) -> None:
    def warm_up(hours: float | None) -> int:
        return int(value(scheduled(corpus, machine, hours), "--warmup-updates"))

    corpus = CorpusSize(documents, 16_000, {"mean": 300.0, "p95": 600.0}, {"mean": 20.0, "p5": 2, "max": 60})
    whole = scheduled(corpus, machine)
    # A five-hundredth of the time is enough for so many of the updates.
    assert 0 < warm_up(whole.hours / 500) <= max(1, 0.1 * whole.updates / 500) < warm_up(None)
    assert warm_up(1e-6) == 1 and warm_up(2 * whole.hours) == warm_up(None)


def test_only_splits_that_are_missing_are_held_out(tmp_path: Path) -> None:
    plan, found = make(write(tmp_path / "papers.jsonl", 40), "summarizer")
    assert plan.held_out == {"train": 34, "test": 4, "valid": 2} and plan.documents == 34
    told = "40 documents; held out by a hash of their ids: 4 for test and 2 for valid"
    assert told in plan.sentences("x", tmp_path)[0]
    # Their sizes are estimated from words. 34 documents, 8 an update, 20 epochs.
    assert np.array_equal(found.source_words, [4] * 40)
    schedule = estimated(plan, found, Arguments("papers.jsonl", "summarizer", gpus=0))
    assert schedule.updates == 20 * 5 and "--scorer" not in schedule.flags
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "train.jsonl", 40)
    write(folder / "test.jsonl", 3)
    assert make(folder, "summarizer")[0].held_out == {"train": 38, "valid": 2}
    write(folder / "val.jsonl", 3)
    plan, _ = make(folder, "summarizer")
    assert plan.held_out == {} and plan.documents == 40


def test_documents_whose_sentences_are_selected_may_have_sections_alone(tmp_path: Path) -> None:
    papers = tmp_path / "papers.jsonl"
    papers.write_text(f"{json.dumps(SECTIONS)}\n" * 40)
    for kind in ("auto", "extractor"):
        plan, found = make(papers, kind)
        # The heading is a word.
        assert plan.documents == 34 and found.source_words.tolist() == [5] * 40


def test_a_hugging_face_dataset_tells_its_splits(tmp_path: Path) -> None:
    import datasets

    rows = [{"id": str(i), "article": "a b.", "abstract": "c."} for i in range(20)]
    datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)}).save_to_disk(str(tmp_path / "hub"))
    assert find_sources(str(tmp_path / "hub"), None) == {"train": str(tmp_path / "hub")}


def test_a_file_that_was_only_touched_has_not_changed(tmp_path: Path) -> None:
    papers = write(tmp_path / "train.jsonl", 3)
    for place in (papers, tmp_path):
        before = stamps(str(place))
        papers.touch()
        (tmp_path / "notes.md").write_text("mine")
        assert changed(before, stamps(str(place), before)) is None
    # A file that a folder has more is one that changed.
    added = write(tmp_path / "valid.jsonl", 3)
    assert changed(before, stamps(str(tmp_path), before)) == str(added)
    before = stamps(str(papers))
    write(papers, 4)
    assert changed(before, stamps(str(papers), before)) == str(papers)


def test_the_first_difference_of_arguments_is_named() -> None:
    recorded = {**vars(Arguments("papers")), "seed": 2}
    assert Arguments("papers").difference(recorded) == "--seed was 2, and is 1"
    assert Arguments("papers", hours=2.0).difference(vars(Arguments("papers"))) == "--hours was not given, and is 2.0"
    assert Arguments("papers").difference(vars(Arguments("papers"))) is None


def test_documents_with_queries_train_a_summarizer(tmp_path: Path) -> None:
    path = tmp_path / "meetings.jsonl"
    record = {"query": "Why?", "article": "Bees dance.", "abstract": "So."}
    path.write_text("".join(json.dumps({"id": f"{number}", **record}) + "\n" for number in range(20)))
    plan, _ = make(path, query_field="query")
    assert (plan.kind, plan.why) == ("summarizer", "--query-field asks for it")


def test_without_a_gpu_a_summarizer_copies_at_first_and_reads_selected_sentences_that_nothing_pools() -> None:
    lengths = {"mean": 600.0, "p95": 640.0}, {"mean": 200.0, "p5": 20, "max": 600}
    selecting = KINDS["summarizer"].selecting(12_000, 0)
    assert selecting is not None and KINDS["summarizer"].selecting(12_000, 1) is None
    assert KINDS["extractor"].selecting(12_000, 0) is None

    corpus = CorpusSize(12_000, 4000, *lengths)
    selected, whole = scheduled(corpus._replace(selecting=selecting)), scheduled(corpus)
    assert value(selected, "--pooling-lengths") == "None,None" and value(whole, "--pooling-lengths") == "256,64"
    assert value(selected, "--decoding-long") == "extract" and value(selected, "--copying-updates") == "400"
    assert not {"--decoding-long", "--copying-updates"} & set(whole.flags)
    # A short training writes summaries in most of its updates.
    few = corpus._replace(documents=34, selecting=selecting)
    for hours in (None, scheduled(few).hours / 2):
        short = scheduled(few, hours=hours)
        assert int(value(short, "--copying-updates")) == short.updates // (4 if hours is None else 8)


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


PLAN = {"given": {"train": "papers"}, "documents": 8, "skipped": 0, "kind": "summarizer", "why": "asked"}


def test_without_a_split_to_hold_out_nothing_is_divided() -> None:
    def steps(**held_out: int) -> list[str]:
        places = Places(Path("model"))
        plan = Plan(**PLAN, held_out=held_out, vocab_size=60, gpus=0, memory=16e9)
        training = NetworkRun(Arguments("papers"), plan, places, State(places.state, {"done": {}}), print)
        return [step.name for step in training.steps()]

    rest = ["data", "training", "summaries", "scores", "export"]
    assert steps() == rest and steps(train=8, test=1, valid=1) == ["documents", *rest]


# Tokens of SumPubMed's documents.
SOURCE, TARGET = {"mean": 5802.51, "p95": 10198.05}, {"mean": 380.0, "p5": 100, "max": 900}
EXTRACTOR = KINDS["extractor"]


def extractor_for(documents: int, hours: float | None = None, source: dict[str, float] = SOURCE) -> Schedule:
    return EXTRACTOR.schedule(CorpusSize(documents, 16_000, source, TARGET), Machine(0, 16e9), hours)


def test_few_documents_are_read_more_often() -> None:
    for documents, epochs in ((200, 10), (12_000, 1.25), (100_000, 1)):
        # Batches of 16,384 tokens are not filled to the last one.
        epoch_updates = math.ceil(1.1 * documents * SOURCE["mean"] / 16_384)
        assert extractor_for(documents).updates == pytest.approx(epochs * epoch_updates, rel=1e-3)
    assert EXTRACTOR.vocab_size(200, 0) < EXTRACTOR.vocab_size(12_000, 0)


def test_the_learning_rate_is_0_at_the_last_update() -> None:
    found = extractor_for(200)
    assert value(found, "--lr-scheduler") == "linear_decay"
    assert value(found, "--max-update") == str(found.updates)
    assert int(value(found, "--warmup-updates")) < found.updates


def test_fewer_hours_have_fewer_updates() -> None:
    whole, short = extractor_for(12_000), extractor_for(12_000, hours=0.1)
    # 12,000 papers take half an hour on a core.
    assert short.updates < whole.updates and short.hours < 0.1 < whole.hours < 0.5
    assert extractor_for(12_000, hours=100).updates == whole.updates
    assert extractor_for(12_000, hours=1e-9).updates == 1


def test_a_checkpoint_is_saved_within_long_epochs_only() -> None:
    short, long = (extractor_for(documents) for documents in (200, 12_000))
    assert "--save-interval-updates" not in short.flags
    assert value(long, "--save-interval-updates") == str(long.updates // 10)


def test_a_short_corpus_is_not_read_to_the_longest_length() -> None:
    found = extractor_for(200, source={"mean": 300.0, "p95": 700.0})
    assert value(found, "--max-source-positions") == "1024"
