"""Runs that read a share of the documents, and the join of what they write."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from small_extractor import exported

Run = Callable[..., Result]
SHORT = ["--beam", 2, "--min-len", 2, "--max-len", 5]
WORDS = "bees fly fast a bee with ruler".split()


@pytest.fixture
def corpus(tmp_path: Path) -> list[Path]:
    """Return inputs of which some cannot be read, with ids that come twice."""
    lines = []
    for number in range(75):
        text = " ".join(WORDS[(number * step) % 7] for step in range(1, 4 + number % 9))
        lines.append(json.dumps({"text": f"{text}. {text[::-1]}.\n\n" * (1 + number % 5), "id": f"id {number % 60}"}))
    for number, bad in ((1, ""), (9, "no JSON"), (40, '{"text": " "}'), (41, '{"body": "x"}')):
        lines.insert(number, bad)
    (tmp_path / "b.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "a.txt").write_text("A bee flies. It flies fast.")
    (tmp_path / "refused.jsonl").write_text('no JSON\n{"text": "Never read."}\n')
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "c.md").write_text("# A bee\n\nIt flies with a ruler.")
    return [tmp_path / name for name in ("a.txt", "b.jsonl", "empty.jsonl", "refused.jsonl", "c.md")]


def all_shards(run: Run, shards: int, folder: Path, *command: object) -> None:
    for shard in range(1, shards + 1):
        done = run(*command, "--shard", f"{shard}/{shards}", "-o", folder)
        assert done.exit_code in (0, 1) and "Traceback" not in done.output, done.output


def joined(run: Run, folder: Path, *shards: Path) -> bytes:
    out = folder.parent / f"{folder.name}.jsonl"
    done = run("join", out, *(shards or [folder]))
    assert done.exit_code == 0, done.output
    return out.read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--long", "merge"],
        ["--query", "Why?", "--query", "How?", "--sampling", "--seed", 3],
    ],
    ids=["plain", "merge", "queries"],
)
def test_shards_of_summaries_join_to_the_bytes_of_one_run(
    run: Run, whole_models: dict[str, Path], corpus: list[Path], tmp_path: Path, options: list[object]
) -> None:
    model = whole_models["queries" if "--query" in options else "plain"]
    beam = SHORT[2:] if "--sampling" in options else SHORT
    command = ["summarize", model, *corpus, *beam, "--batch-size", 2, *options]
    assert run(*command, "-o", tmp_path / "one.jsonl").exit_code == 1
    all_shards(run, 3, tmp_path / "shards", *command)
    assert joined(run, tmp_path / "shards") == (tmp_path / "one.jsonl").read_bytes()


@pytest.mark.parametrize("method", ["hiporank", "model"])
def test_shards_of_extracts_join_to_the_bytes_of_one_run(
    run: Run, corpus: list[Path], tmp_path: Path, method: str
) -> None:
    chosen = exported(tmp_path / "model") if method == "model" else method
    command = ["extract", *corpus, "--method", chosen, "--sentences", 2]
    assert run(*command, "-o", tmp_path / "one.jsonl").exit_code == 1
    all_shards(run, 2, tmp_path / "shards", *command)
    assert joined(run, tmp_path / "shards") == (tmp_path / "one.jsonl").read_bytes()
    ids = [json.loads(line)["id"] for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert "id 1#2" in ids and len(set(ids)) == len(ids) == 77


def test_each_input_is_refused_by_one_shard(run: Run, corpus: list[Path], tmp_path: Path) -> None:
    def errors(*options: object) -> list[str]:
        done = run("extract", *corpus, *options)
        return [line for line in done.stderr.splitlines() if line.startswith("Error: ")]

    of_shards = [error for shard in (1, 2) for error in errors("--shard", f"{shard}/2", "-o", tmp_path / "shards")]
    assert sorted(of_shards) == sorted(errors()) and len(of_shards) == 5


def test_a_shard_that_is_whole_is_not_computed_again(run: Run, corpus: list[Path], tmp_path: Path) -> None:
    command = ["extract", corpus[0], "--shard", "1/1", "-o", tmp_path / "shards"]
    assert run(*command).exit_code == 0
    before = (tmp_path / "shards" / "00001-of-00001.shard").stat().st_mtime_ns
    done = run(*command)
    assert (
        done.exit_code == 0
        and done.stderr == f"{tmp_path}/shards/00001-of-00001.shard is already complete: it holds 1 summary.\n"
    )
    assert (tmp_path / "shards" / "00001-of-00001.shard").stat().st_mtime_ns == before


def test_what_a_second_process_left_beside_a_whole_shard_is_removed(
    run: Run, corpus: list[Path], tmp_path: Path
) -> None:
    command = ["extract", corpus[0], "--shard", "1/1", "-o", tmp_path / "shards"]
    assert run(*command).exit_code == 0
    partial = tmp_path / "shards" / "00001-of-00001.partial"
    partial.touch()
    assert run("join", tmp_path / "out.jsonl", tmp_path / "shards").exit_code == 1
    assert run(*command).exit_code == 0 and not partial.exists()
    assert run("join", tmp_path / "out.jsonl", tmp_path / "shards").exit_code == 0


def test_an_id_with_half_a_character_is_written_with_a_question_mark(run: Run, tmp_path: Path) -> None:
    (tmp_path / "papers.jsonl").write_text('{"id": "a\\ud800", "text": "A bee flies."}\n')
    assert run("extract", tmp_path / "papers.jsonl", "--shard", "1/1", "-o", tmp_path / "shards").exit_code == 0
    assert json.loads(joined(run, tmp_path / "shards"))["id"] == "a?"


@pytest.mark.parametrize("cut", range(0, 2001, 100))
def test_a_shard_that_was_cut_anywhere_goes_on_and_ends_in_the_same_bytes(
    run: Run, corpus: list[Path], tmp_path: Path, cut: int
) -> None:
    command = ["extract", corpus[1], "--method", "lead", "--shard", "1/2", "-o", tmp_path / "shards"]
    assert run(*command).exit_code == 1
    whole = tmp_path / "shards" / "00001-of-00002.shard"
    content = whole.read_bytes()
    whole.unlink()
    partial = whole.with_suffix(".partial")
    partial.write_bytes(content[: len(content) * cut // 2000])
    assert run(*command).exit_code == 1
    assert whole.read_bytes() == content and not partial.exists()


def test_blocks_before_a_kill_are_not_computed_again(
    run: Run, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyramidions.inference import extraction_stream

    command = ["extract", corpus[1], "--shard", "1/1", "-o", tmp_path / "shards"]
    seen: list[str] = []
    outline = extraction_stream.document_outline

    def stops(text: str, *others: object) -> object:
        seen.append(text)
        if len(seen) == 50:
            raise KeyboardInterrupt
        return outline(text, *others)

    monkeypatch.setattr(extraction_stream, "document_outline", stops)
    assert run(*command).exit_code == 130
    left = (tmp_path / "shards" / "00001-of-00001.partial").read_bytes()
    assert run(*command).exit_code == 1
    # 30 of the first block's 32 inputs can be read; those of the next block were lost.
    assert len(seen) == 50 + 75 - 30
    assert (tmp_path / "shards" / "00001-of-00001.shard").read_bytes().startswith(left)


def test_shards_of_something_else_are_refused_and_stay(
    run: Run, fail: Callable[..., str], corpus: list[Path], tmp_path: Path
) -> None:
    shards = tmp_path / "shards"
    all_shards(run, 2, shards, "extract", *corpus)
    command = ["extract", *corpus, "-o", shards]
    (shards / "00002-of-00002.shard").unlink()
    path, begin = shards / "00001-of-00002.shard", "--out must hold shards of this run only, but"
    before = path.read_bytes()
    assert (
        fail(*command, "--shard", "1/3") == f"{begin} {path} differs from it in the number of shards (2 there, 3 here)."
    )
    sentence = f"{begin} {path} differs from it in --redundancy (none there, mmr here)."
    assert fail(*command, "--shard", "2/2", "--redundancy", "mmr") == sentence
    sentence = f"{begin} {path} differs from it in --words (220 there, none here) and --sentences (none there, 2 here)."
    assert fail(*command, "--shard", "2/2", "--sentences", "2") == sentence
    sentence = f"{begin} {path} differs from it in --method."
    assert fail(*command, "--shard", "2/2", "--method", "lead") == sentence
    corpus[0].write_text("Another text.")
    assert fail(*command, "--shard", "2/2") == f"{begin} {path} differs from it in the inputs."
    assert path.read_bytes() == before and list(shards.iterdir()) == [path]


def test_what_cannot_be_joined_is_refused_in_one_sentence(
    run: Run, fail: Callable[..., str], corpus: list[Path], tmp_path: Path
) -> None:
    out, shards, others = tmp_path / "out.jsonl", tmp_path / "shards", tmp_path / "others"
    command = ["extract", corpus[1]]
    all_shards(run, 3, shards, *command)
    all_shards(run, 3, others, *command, "--method", "lead")
    first, second, third = sorted(shards.iterdir())
    assert fail("join", out, first, third) == "All 3 shards must be there, but 2/3 is missing."
    sentence = f"Shards must be given once, but {first} and {first} are both 1."
    assert fail("join", out, first, first, second, third) == sentence
    foreign = others / second.name
    sentence = f"Shards must be of one run, but {foreign} and {first} differ in --method."
    assert fail("join", out, first, foreign, third) == sentence
    run(*command, "--shard", "1/1", "-o", tmp_path / "single")
    single = tmp_path / "single" / "00001-of-00001.shard"
    sentence = f"Shards must be of one run, but {single} and {first} differ in the number of shards (1 and 3)."
    assert fail("join", out, shards, single) == sentence
    content = second.read_bytes()
    for position in (len(content) // 2, len(content) - 5):
        second.write_bytes(content[:position] + b"0" + content[position + 1 :])
        assert fail("join", out, shards).startswith(f"{second} is damaged at byte ")
    second.write_bytes(content[:-20])
    assert fail("join", out, shards).startswith(f"{second} is damaged at byte ")
    second.rename(second.with_suffix(".partial"))
    assert fail("join", out, shards).startswith(
        f"{second.with_suffix('.partial')} is not finished: run its shard again"
    )
    assert not out.exists()


def test_shards_of_sampled_and_of_searched_summaries_are_of_different_runs(
    run: Run, fail: Callable[..., str], whole_models: dict[str, Path], corpus: list[Path], tmp_path: Path
) -> None:
    command = ["summarize", whole_models["plain"], corpus[0], "--max-len", 5, "-o", tmp_path / "shards"]
    assert run(*command, "--shard", "1/2").exit_code == 0
    first = tmp_path / "shards" / "00001-of-00002.shard"
    begin = f"--out must hold shards of this run only, but {first} differs from it in"
    assert fail(*command, "--shard", "2/2", "--sampling") == f"{begin} --sampling (off there, on here)."
    assert fail(*command, "--shard", "2/2", "--min-len", 1).startswith(f"{begin} --min-len (")


def test_runs_say_what_they_wrote_and_join_says_which_could_not_read_something(
    run: Run, corpus: list[Path], tmp_path: Path
) -> None:
    shards = tmp_path / "shards"
    command = ["extract", corpus[1], "--method", "lead", "-o", shards]
    first, second, third = (shards / f"0000{number}-of-00003.shard" for number in (1, 2, 3))
    assert run(*command, "--shard", "1/3").stderr.endswith(f"\n{first} holds 30 summaries.\n")
    assert run(*command, "--shard", "2/3").stderr.endswith(f"\n{second} holds 30 summaries.\n")
    assert run(*command, "--shard", "3/3").stderr == f"{third} holds 15 summaries.\n"
    partial = second.with_suffix(".partial")
    partial.write_bytes(second.read_bytes()[:-1])
    second.unlink()
    assert run(*command, "--shard", "2/3").stderr == (
        f"{partial} already holds 30 summaries; the run continues after them.\n{second} holds 30 summaries.\n"
    )
    done = run("join", tmp_path / "out.jsonl", shards)
    assert done.stderr == (
        f"{tmp_path}/out.jsonl holds 75 summaries of 3 shards.\nSome inputs could not be read and are missing; "
        f"the runs of these shards named them: {first}, {second}.\n"
    )


def test_a_shard_is_not_written_in_a_folder_with_the_name_of_a_file(
    fail: Callable[..., str], corpus: list[Path], tmp_path: Path
) -> None:
    for out in (tmp_path / "extracts.jsonl", tmp_path / "extracts.json"):
        sentence = f"With --shard, --out must be a folder, but is {out}; `pyramidions join` writes such a file."
        assert fail("extract", corpus[0], "--shard", "1/2", "-o", out) == sentence
        assert not out.exists()


def test_a_shard_is_written_by_one_process_at_a_time(
    fail: Callable[..., str], corpus: list[Path], tmp_path: Path, run: Run
) -> None:
    import fcntl

    (tmp_path / "shards").mkdir()
    partial = tmp_path / "shards" / "00001-of-00001.partial"
    with partial.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sentence = fail("extract", corpus[0], "--shard", "1/1", "-o", tmp_path / "shards")
    assert sentence == f"Another process is writing {partial} at this moment."
