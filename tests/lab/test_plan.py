from dataclasses import replace
from pathlib import Path

import pytest
from tables import for_each
from torch.distributed.run import get_args_parser

from lab.catalogue import PaperRow, read_catalogue
from lab.plan import Machines, Planner
from lab.run import RowStep
from lab.scale import SCALES
from pyramidions.base.errors import UserError

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = read_catalogue(CONFIGS)


def row(name: str) -> PaperRow:
    return next(row for row in CATALOGUE if row.row == name)


def planner(machines: Machines, prepared: Path | None = None) -> Planner:
    return Planner(Path("/out"), CONFIGS, SCALES["paper"], machines, Path("/plugin"), {"arxiv": prepared})


def words(step: RowStep, number: int = 0) -> list[str]:
    """A command without the folder of its program."""
    program, *arguments = step.commands[number].words
    return [Path(program).name, *arguments]


def prepared(raw: Path | None, corpus: str = "arxiv") -> list[str]:
    step = planner(Machines(1), raw).prepare(corpus)
    assert step is not None
    return words(step)


@for_each(("gpus", "nodes", "batch", "freq"), [(1, 1, 4, 64), (8, 1, 4, 8), (8, 2, 4, 4), (2, 1, 16, 8), (0, 1, 4, 64)])
def test_an_update_has_256_documents_whatever_computes(gpus: int, nodes: int, batch: int, freq: int) -> None:
    machines = Machines(gpus, nodes)
    assert machines.update_freq(256, batch) == freq
    assert machines.documents_an_update(256, batch) == 256


def test_where_gpus_do_not_divide_256_an_update_has_about_as_many() -> None:
    assert [Machines(gpus).documents_an_update(256, 4) for gpus in (3, 5, 6, 7)] == [252, 260, 264, 252]


def test_one_machine_trains_with_a_process_a_gpu_that_fairseq_starts() -> None:
    command = words(planner(Machines(8)).train(row("3"), 4))
    assert command[:6] == [
        "fairseq-hydra-train",
        "--config-dir",
        str(CONFIGS),
        "--config-name",
        "base",
        "+table2=03_vanilla_8k",
    ]
    assert command[6:] == [
        *("common.user_dir=/plugin", "task.data=/out/data/arxiv"),
        *("checkpoint.save_dir=/out/arxiv/table2/03_vanilla_8k/checkpoints", "dataset.batch_size=4"),
        *("optimization.update_freq=[8]", "distributed_training.distributed_world_size=8"),
    ]


def test_without_a_gpu_it_trains_on_the_cpu() -> None:
    step = planner(Machines(0)).train(row("3"), 4)
    # One process, and no GPU to see: fairseq would start one on each that is there.
    assert words(step)[-2:] == ["distributed_training.distributed_world_size=1", "common.cpu=true"]
    assert step.commands[0].gpus == ()


def test_several_machines_meet_through_torchrun_which_knows_how_many_processes_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"NODE_RANK": "1", "MASTER_ADDR": "head", "MASTER_PORT": "29501"}.items():
        monkeypatch.setenv(f"PET_{name}", value)
    command = words(planner(Machines(8, nodes=2)).train(row("3"), 4))
    launch = get_args_parser().parse_args(command[1:])
    assert (launch.nnodes, launch.nproc_per_node, launch.node_rank) == ("2", "8", 1)
    assert (launch.master_addr, launch.master_port, launch.no_python) == ("head", 29501, True)
    assert (
        Path(launch.training_script).name == "fairseq-hydra-train"
        and command[-1] == "distributed_training.distributed_world_size=16"
    )


def test_power_starts_from_the_trained_blockwise_model() -> None:
    start = "/out/arxiv/table2/05_blockwise_8k/checkpoints/checkpoint_best.pt"
    assert f"checkpoint.finetune_from_model={start}" in words(planner(Machines(1)).train(row("16"), 4))


def test_paths_that_hydra_would_parse_are_quoted() -> None:
    strange = Planner(Path("/a b,c='d"), CONFIGS, SCALES["paper"], Machines(1), Path("/plugin"), {})
    assert "task.data='/a b,c=\\'d/data/arxiv'" in words(strange.train(row("3"), 4))


def test_each_gpu_summarizes_its_share_of_the_test_documents() -> None:
    step = planner(Machines(2)).generate(row("3"), 8)
    folder = Path("/out/arxiv/table2/03_vanilla_8k")
    assert [command.gpus for command in step.commands] == [(0,), (1,)]
    assert words(step, 1)[-6:] == [
        "--results-path",
        str(folder / "generate" / "1"),
        "--distributed-world-size",
        "2",
        "--distributed-rank",
        "1",
    ]
    assert step.after.args[0] == tuple(folder / "generate" / shard / "generate-test.txt" for shard in ("0", "1"))
    assert words(planner(Machines(0)).generate(row("3"), 8))[-1] == "--cpu"


def test_a_row_is_timed_in_turns_with_its_reference() -> None:
    command = words(planner(Machines(1)).time(row("7"), 4))
    assert command[4:6] == [
        str(CONFIGS / "table2" / name) for name in ("03_vanilla_8k.yaml", "07_transpooler_8k_512.yaml")
    ]
    for flag, value in (
        ("--decode-tokens", "256,512"),
        ("--train-batch", "64"),
        ("--decode-batch", "8"),
        ("--device", "cuda"),
    ):
        assert command[command.index(flag) + 1] == value
    assert words(planner(Machines(1)).time(row("3"), 4))[4:6] == [
        str(CONFIGS / "table2" / "03_vanilla_8k.yaml"),
        "--device",
    ]


def test_figure_4_times_training_alone_into_a_file_of_its_own() -> None:
    step = planner(Machines(1)).time(row("vanilla-16"), 4, decodes=False)
    assert step.made.name == "training-times.json"
    assert words(step)[words(step).index("--decode-tokens") + 1] == "none"


def test_a_prepared_corpus_is_used_as_it_is_and_another_one_prepared(tmp_path: Path) -> None:
    raw = tmp_path / "arxiv"
    raw.mkdir()
    assert prepared(raw)[2] == str(raw)
    assert planner(Machines(1), raw).data("arxiv") == Path("/out/data/arxiv")
    (raw / "manifest.json").touch()
    assert planner(Machines(1), raw).data("arxiv") == raw
    assert planner(Machines(1), raw).prepare("arxiv") is None


def test_without_a_corpus_it_comes_from_the_hub() -> None:
    assert prepared(None, "pubmed")[2] == "ccdv/pubmed-summarization"


def test_several_machines_need_gpus() -> None:
    with pytest.raises(UserError, match="^--gpus must be at least 1 where --nodes is 2, but is 0.$"):
        Machines(0, nodes=2)


def test_a_step_says_how_many_machines_and_gpus_it_needs() -> None:
    plan = planner(Machines(8, nodes=2))
    steps = (plan.train(row("3"), 4), plan.generate(row("3"), 4), plan.score(row("3")), plan.time(row("3"), 4))
    assert [(step.nodes, step.gpus) for step in steps] == [(2, 8), (1, 8), (1, 0), (1, 1)]


def test_other_metrics_are_handed_to_the_scoring() -> None:
    plain = planner(Machines(1))
    more = replace(plain, metrics=("rouge", "meteor"))
    assert "--metrics" not in words(plain.score(row("3")))
    assert words(more.score(row("3")))[-2:] == ["--metrics", "rouge,meteor"]
