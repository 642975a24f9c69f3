"""From rows of papers to jobs, and from jobs to commands, at each scale."""

from dataclasses import replace
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from refusals import refused
from torch.distributed.run import get_args_parser

from lab.catalogue import LECTURE_TABLES, OF_SUMMARIES, PaperRow, jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.run import RowStep
from lab.runner import Runner
from lab.scale import SCALES, scaled_configs
from pyramidions.models.experiment import read_experiment

pytestmark = pytest.mark.nightly
CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = read_catalogue(CONFIGS)
SMALL = SCALES["small"]
TABLES = ("table2", "table3", "table4", "table7", "table8", "neighbours", *LECTURE_TABLES)
ALL = "train generate score time"


def row(name: str, table: str = "") -> PaperRow:
    return next(row for row in CATALOGUE if row.row == name and row.table.startswith(table))


def planner(gpus: int = 1, nodes: int = 1, prepared: Path | None = None, corpus: str = "arxiv") -> Planner:
    return Planner(Path("/out"), CONFIGS, SCALES["paper"], Machines(gpus, nodes), Path("/plugin"), {corpus: prepared})


def words(step: RowStep | None, number: int = 0) -> list[str]:
    """A command without the folder of its program."""
    assert step is not None
    program, *arguments = step.commands[number].words
    return [Path(program).name, *map(str, arguments)]


@pytest.mark.parametrize(
    ("tables", "rows", "seeds", "jobs"),
    [
        # The model that another starts from comes first, and is only trained.
        (["table2"], ["16", "1"], [], [("arxiv/table2/01_vanilla_512", ALL), ("arxiv/table2/05_blockwise_8k", "train"),
                                       ("arxiv/table2/16_power_8k_2k_512", ALL)]),
        # Timing needs no trained model, and no seed.
        (["table10"], ["16"], [1, 2], [("arxiv/table2/16_power_8k_2k_512", "time")]),
        # A config of two tables runs once with the steps of both.
        (["table2", "figure4"], ["3", "vanilla-2"], [], [("arxiv/table2/03_vanilla_8k", f"{ALL} time-training")]),
        (["table3"], ["deep_pyramidion-pubmed"], [], [("pubmed/table3/deep_pyramidion", ALL)]),
        (["sparse_table5"], ["terraformer"], [], [("arxiv/sparse/terraformer_pretraining", "train"),
                                                  ("arxiv/sparse/terraformer", "train generate score")]),
        (["lecture_govreport", "lecture_pubmed"], ["led"], [], [("govreport/lecture/led", "train generate score"),
                                                                ("pubmed/lecture/led", "train generate score")]),
        (["dynamic_pooling_figure3"], ["unigram_500"], [2], [("text8-500/dynamic_pooling/unigram, seed 2",
                                                              "train test")]),
        # Every row is trained for a seed before any is for the next.
        (["table2"], ["5", "8"], [3, 1], [(f"arxiv/table2/{name}, seed {seed}", "train loss generate score")
                                          for seed in (3, 1) for name in ("05_blockwise_8k", "08_transpooler_8k_2k")]),
    ],
)  # fmt: skip
def test_rows_become_jobs(tables: list[str], rows: list[str], seeds: list[int], jobs: list[tuple[str, str]]) -> None:
    found = jobs_for(CATALOGUE, tables, rows, *([seeds] if seeds else []))
    assert [(job.name, job.wanted) for job in found] == [(name, set(steps.split())) for name, steps in jobs]


def test_tables_share_models() -> None:
    assert len({job.name for job in jobs_for(CATALOGUE, ["table2", "table7", "table8"])}) == 28
    jobs = jobs_for(CATALOGUE, ["dynamic_pooling_figure3", "dynamic_pooling_figure4"])
    assert len(jobs) == len({job.name for job in jobs}) == 15 + 16 - 3
    pretraining, _ = jobs_for(CATALOGUE, ["sparse_table5"], ["terraformer"])
    assert pretraining.row.overrides == ("+sparse=terraformer_pretraining", *OF_SUMMARIES)


@pytest.mark.parametrize(("table", "name"), [("table4", "99"), ("lecture_pubmed", "pegasus")])
def test_a_row_that_cannot_be_run_is_named(table: str, name: str) -> None:
    with refused(f"'{name}'"):
        jobs_for(CATALOGUE, [table], [name])


def test_an_update_has_256_documents_whatever_computes() -> None:
    for gpus, nodes, batch, freq in ((1, 1, 4, 64), (8, 2, 4, 4), (2, 1, 16, 8), (0, 1, 4, 64)):
        machines = Machines(gpus, nodes)
        assert (machines.update_freq(256, batch), machines.documents_an_update(256, batch)) == (freq, 256)
    # Or about as many.
    assert [Machines(gpus).documents_an_update(256, 4) for gpus in (3, 5, 6, 7)] == [252, 260, 264, 252]
    with refused("--gpus"):
        Machines(0, nodes=2)


def test_one_machine_trains_with_a_process_a_gpu_that_fairseq_starts() -> None:
    step = planner(8).train(row("3"), 4)
    assert words(step) == [
        *("fairseq-hydra-train", "--config-dir", str(CONFIGS), "--config-name", "base", "+table2=03_vanilla_8k"),
        *("common.user_dir=/plugin", "task.data=/out/data/arxiv"),
        *("checkpoint.save_dir=/out/arxiv/table2/03_vanilla_8k/checkpoints", "dataset.batch_size=4"),
        *("optimization.update_freq=[8]", "distributed_training.distributed_world_size=8"),
    ]
    # Without a GPU one process, and no GPU to see: fairseq would start one on each that is there.
    step = planner(0).train(row("3"), 4)
    assert words(step)[-2:] == ["distributed_training.distributed_world_size=1", "common.cpu=true"]
    assert step.commands[0].gpus == ()
    start = "/out/arxiv/table2/05_blockwise_8k/checkpoints/checkpoint_best.pt"
    assert f"checkpoint.finetune_from_model={start}" in words(planner().train(row("16"), 4))
    # Paths that hydra would parse are quoted.
    strange = replace(planner(), out=Path("/a b,c='d"))
    assert "task.data='/a b,c=\\'d/data/arxiv'" in words(strange.train(row("3"), 4))


def test_several_machines_meet_through_torchrun_which_knows_how_many_processes_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"NODE_RANK": "1", "MASTER_ADDR": "head", "MASTER_PORT": "29501"}.items():
        monkeypatch.setenv(f"PET_{name}", value)
    command = words(planner(8, nodes=2).train(row("3"), 4))
    launch = get_args_parser().parse_args(command[1:])
    assert (launch.nnodes, launch.nproc_per_node, launch.node_rank) == ("2", "8", 1)
    assert (launch.master_addr, launch.master_port, launch.no_python) == ("head", 29501, True)
    assert Path(launch.training_script).name == "fairseq-hydra-train"
    assert command[-1] == "distributed_training.distributed_world_size=16"


def test_each_gpu_summarizes_its_share_of_the_test_documents() -> None:
    step = planner(2).generate(row("3"), 8)
    folder = Path("/out/arxiv/table2/03_vanilla_8k/generate")
    assert [command.gpus for command in step.commands] == [(0,), (1,)]
    shard = ["--results-path", str(folder / "1"), "--distributed-world-size", "2", "--distributed-rank", "1"]
    assert words(step, 1)[-6:] == shard
    assert step.after.args[0] == tuple(folder / shard / "generate-test.txt" for shard in ("0", "1"))
    assert words(planner(0).generate(row("3"), 8))[-1] == "--cpu"


def test_a_row_is_timed_in_turns_with_its_reference() -> None:
    command = words(planner().time(row("7"), 4))
    configs = [str(CONFIGS / "table2" / name) for name in ("03_vanilla_8k.yaml", "07_transpooler_8k_512.yaml")]
    assert command[4:6] == configs
    told = {"--decode-tokens": "256,512", "--train-batch": "64", "--decode-batch": "8", "--device": "cuda"}
    assert {flag: command[command.index(flag) + 1] for flag in told} == told
    assert words(planner().time(row("3"), 4))[4:6] == [configs[0], "--device"]
    # Figure 4 times training alone, into a file of its own.
    step = planner().time(row("vanilla-16"), 4, decodes=False)
    assert step.made.name == "training-times.json"
    assert words(step)[words(step).index("--decode-tokens") + 1] == "none"


def test_a_prepared_corpus_is_used_as_it_is_and_another_one_prepared(tmp_path: Path) -> None:
    (raw := tmp_path / "arxiv").mkdir()
    here = planner(prepared=raw)
    assert words(here.prepare("arxiv"))[2] == str(raw) and here.data("arxiv") == Path("/out/data/arxiv")
    assert words(planner().prepare("pubmed"))[2] == "ccdv/pubmed-summarization"
    (raw / "manifest.json").touch()
    assert here.prepare("arxiv") is None and here.data("arxiv") == raw
    # All rows of characters would have the same pieces.
    with refused("--data"):
        planner(prepared=raw, corpus="text8-500").prepare("text8-500")


def test_a_step_says_how_many_machines_and_gpus_it_needs_and_which_metrics() -> None:
    plan = planner(8, nodes=2)
    steps = (plan.train(row("3"), 4), plan.generate(row("3"), 4), plan.score(row("3")), plan.time(row("3"), 4))
    assert [(step.nodes, step.gpus) for step in steps] == [(2, 8), (1, 8), (1, 0), (1, 1)]
    assert "--metrics" not in words(plan.score(row("3")))
    assert words(replace(plan, metrics=("rouge", "meteor")).score(row("3")))[-2:] == ["--metrics", "rouge,meteor"]


def test_characters_are_trained_on_one_gpu_with_their_pieces_and_tested_by_last_quarters(tmp_path: Path) -> None:
    here = replace(planner(8, corpus="text8"), seed=2)
    step = here.train(row("gumbel_25"), 4)
    assert words(step)[4:6] == ["dynamic_pooling", "+dynamic_pooling=gumbel_25"]
    assert {"distributed_training.distributed_world_size=1", "common.seed=2"} <= set(words(step))
    assert step.commands[0].gpus == (0,)
    tested = " ".join(words(here.test(row("gumbel_25"))))
    assert "--tokens-per-sample 2048 --context-window 1536 --batch-size 16" in tested
    out = ["--out", "/out/data/wiki40b-fi-200"]
    assert words(here.prepare("wiki40b-fi-200"))[2:] == ["wiki40b", "--characters", "fi", *out, "--pieces", "200"]
    (tmp_path / "train.jsonl.xz").touch()
    texts = [str(tmp_path / "train.jsonl.xz"), "--source-field", "article", "--characters", "en"]
    texts += ["--out", "/out/data/text8"]
    assert words(planner(prepared=tmp_path, corpus="text8").prepare("text8"))[2:] == texts


def test_systems_of_others_have_the_settings_of_their_corpus_and_hierarchies_one_with_markers() -> None:
    here = Runner(planner(), CONFIGS, print)
    jobs = jobs_for(CATALOGUE, ["lecture_govreport"], ["led", "hat"])
    assert set(here.corpora(jobs)) == {"govreport", "govreport-with-markers"}
    for corpus, marked in (("govreport", False), ("govreport-with-markers", True)):
        assert ("--sentence-markers" in words(here.planner.prepare(corpus))) is marked
    assert "task.data=/out/data/govreport-with-markers" in words(here.planner.train(row("hat", "lecture_gov"), 4))
    assert words(here.planner.train(row("led", "lecture_gov"), 4))[5:7] == ["+corpus=govreport", "+lecture=led"]
    pair = jobs_for(CATALOGUE, ["lecture_govreport", "lecture_pubmed"], ["led"])
    one, other = (here._settings(job) for job in pair)
    lengths = [(run["model"]["decoding_min_length"], run["model"]["decoding_max_length"]) for run in (one, other)]
    assert lengths == [(0, 1023), (100, 800)] and one["optimization"] == other["optimization"]


# ----------------------------------------------------------------------------------------------------------- the scales


def test_tiny_divides_lengths_by_16_and_widths_by_8(tmp_path: Path) -> None:
    assert scaled_configs(CONFIGS, tmp_path / "unused", SCALES["paper"]) == CONFIGS
    tiny = scaled_configs(CONFIGS, tmp_path, SCALES["tiny"])
    found = read_experiment(str(tiny / "table7" / "23_pyramidion_8k_2k_512_128.yaml"))
    assert (found.max_source_positions, found.max_target_positions) == (512, 64)
    assert (found.model.pooling_lengths, found.model.encoder_layers) == ("None,128,32,8", 4)
    assert found.model.self_attention == "blockwise(block_size=32)"
    assert (found.model.embed_dim, found.model.ffn_embed_dim) == (64, 256)
    assert (found.model.decoding_min_length, found.model.decoding_max_length) == (4, 60)
    assert found.run["optimization"]["max_epoch"] == 1
    # Buckets and windows are lengths, hashes and heads are not.
    lsh = read_experiment(str(tiny / "table2" / "11_lsh_8k.yaml")).model.self_attention
    assert lsh == "lsh(bucket_size=4, num_hashes=4, local_heads=2, local_window=16)"


def test_a_length_that_cannot_be_divided_is_named(tmp_path: Path) -> None:
    (tmp_path / "configs" / "own").mkdir(parents=True)
    OmegaConf.save(OmegaConf.load(CONFIGS / "base.yaml"), tmp_path / "configs" / "base.yaml")
    (tmp_path / "configs" / "own" / "row.yaml").write_text("# @package _global_\nmodel:\n  pooling_lengths: None,8\n")
    with refused("`pooling_lengths`"):
        scaled_configs(tmp_path / "configs", tmp_path / "tiny", SCALES["tiny"])
    with refused("--updates"):
        SCALES["tiny"].with_updates(10)


def test_rows_of_the_small_scale_have_equal_updates(tmp_path: Path) -> None:
    at_scale = scaled_configs(CONFIGS, tmp_path, SMALL)
    here = Planner(Path("/out"), at_scale, SMALL, Machines(0), Path("/plugin"), {}, seed=2)
    for each in {job.row.table: job.row for job in jobs_for(CATALOGUE, TABLES)}.values():
        run = here.settings(each)
        assert (run["optimization"]["max_update"], run["optimization"]["max_epoch"]) == (600, 0), each.config
        assert run["lr_scheduler"] == {"_name": "fixed", "warmup_updates": 100}, each.config
        assert run["criterion"]["label_smoothing"] == run["model"]["dropout"] == 0, each.config
        assert run["checkpoint"]["best_checkpoint_metric"] == "loss"
    found = read_experiment(str(at_scale / "table7/21_pyramidion_8k_2k_512.yaml"))
    assert (found.max_source_positions, found.max_target_positions) == (2048, 256)
    assert (found.model.pooling_lengths, found.model.embed_dim, found.model.num_heads) == ("512,128", 128, 4)
    longer = replace(here, scale=SMALL.with_updates(1200))
    assert longer.settings(row("5", "table2"))["optimization"]["max_update"] == 1200
