"""The life of each kind of model: preparation, training, a kill, resumption, generation, scores, export, summaries.

A killed run ends bit for bit like a whole one, and an export writes what fairseq writes.
"""

import json
import lzma
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from conftest import SAMPLE
from fairseq_commands import TASK, USER_DIR, kill_at, run, train_command, train_extractor_command
from small_language_models import OWN_LAYERS, WITHOUT_SEGMENTS
from small_pretrained import model_of, save
from small_tokenizers import SENTENCES, bart_bytes
from tiny_presets import tiny_fields
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import pyramidions.hf  # noqa: F401  (registers with the Auto classes)
from pyramidions.cli import main
from pyramidions.data.folder import DataFolder
from pyramidions.inference import load_model
from pyramidions.models import LANGUAGE_MODEL_PRESETS, LanguageModelConfig

Command = Callable[[Path], list[object]]
TRAINING = [
    *("--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed", "--seed", "1", "--num-workers", "0"),
    *("--log-format", "simple", "--log-interval", "1", "--no-epoch-checkpoints"),
]
SAVES = ["--save-interval-updates", "4"]
SHORT = ["--beam", "2", "--min-len", "4"]


def done(*command: object) -> str:
    """Run a command of fairseq to its end; return what it printed."""
    finished = run(*command)
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def call(*words: object) -> str:
    """Run one of our commands in this process; return what it printed, without the bar of a slow machine."""
    finished = CliRunner().invoke(main, [str(word) for word in words])
    assert finished.exit_code == 0, finished.output
    return finished.stdout


def texts_of(log: str) -> dict[int, str]:
    """Return what fairseq wrote, by document."""
    return {int(number): text for number, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", log, re.MULTILINE)}


def state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    found: dict[str, Any] = torch.load(folder / name, weights_only=True)
    return found


def live(command: Command, folder: Path, saved: int, *names: str) -> tuple[Path, str]:
    """Train, and train again with a kill in between; return the folder of the second run, and the log of the first.

    Args:
        command: of a training that saves in the given folder.
        folder: of both.
        saved: the update, in the middle of an epoch, behind whose checkpoint the run is killed.
        names: checkpoints that must be equal beside the last.
    """
    whole, killed = folder / "whole", folder / "killed"
    log = done(*command(whole))
    kill_at(saved + 1, command(killed))
    rest = done(*command(killed))
    assert min(map(int, re.findall(r"train_inner .* num_updates=(\d+),", rest))) == saved + 1
    for name in ("checkpoint_last.pt", *names):
        first, second = state(whole, name), state(killed, name)
        for part in ("model", "last_optimizer_state"):
            torch.testing.assert_close(first[part], second[part], rtol=0, atol=0)
        assert first["task_state"] == second["task_state"]
        assert first["extra_state"].get("best") == second["extra_state"].get("best")
    return killed, log


# One that pools and is deep, one whose hashes draw random numbers and whose layers are reversible, and one that reads
# sentences and copies stand for the rest, which take the same way.
HASHES = "lsh(bucket_size=16, num_hashes=2, local_heads=0)"
BLOCKS = {"self_attention": "blockwise(block_size=32)"}
SUMMARIZERS: dict[str, dict[str, Any]] = {
    "deep_pyramidion": {**BLOCKS, "pooling_lengths": "None,64,16,None,None,None"},
    "terraformer": {"self_attention": HASHES, "decoder_self_attention": HASHES},
    "discourse_pointer": {"self_attention": "segments(segment_length=32)"},
    "funnel": {**BLOCKS, "pooling_lengths": "64,None"},
    "transpooler_pointer": {**BLOCKS, "pooling_lengths": "None,16"},
    "terraformer_pyramidion": {**BLOCKS, "pooling_lengths": "None,64,16,None,None,None"},
    **{arch: {} for arch in ("scaling", "deep_scaling", "toy_vanilla", "toy_terraformer")},
}
EACH_PUSH = ("deep_pyramidion", "terraformer", "discourse_pointer")


def small(arch: str) -> list[object]:
    """Return flags that make a preset small; its layers and parts are its own."""
    fields = {**tiny_fields(arch), **SUMMARIZERS[arch], "max_source_positions": 256, "max_target_positions": 48}
    fields = {name: value for name, value in fields.items() if not isinstance(value, bool)}
    return [word for name, value in fields.items() for word in (f"--{name.replace('_', '-')}", value)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch", [pytest.param(arch, marks=() if arch in EACH_PUSH else pytest.mark.nightly) for arch in SUMMARIZERS]
)
def test_a_summarizer(arch: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data: DataFolder = request.getfixturevalue("labelled_data" if arch == "discourse_pointer" else "data")
    # An epoch has six updates.
    begin = ["fairseq-train", data.path, *TASK, "--arch", arch, *small(arch), *TRAINING, *SAVES]
    begin += ["--criterion", "pooled_cross_entropy", "--batch-size", "4", "--max-update", "7", "--disable-validation"]
    killed, _ = live(lambda folder: [*begin, "--save-dir", folder], tmp_path, 4)
    checkpoint, generated = killed / "checkpoint_last.pt", tmp_path / "generate-test.txt"
    generate = ["fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", checkpoint]
    done(*generate, *SHORT, "--max-len-b", "12", "--batch-size", "4", "--results-path", tmp_path)
    assert "n=10" in call("score", generated, "--data", data.path)
    call("export", checkpoint, tmp_path / "export")
    papers = tmp_path / "papers.jsonl"
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as lines:
        papers.write_text("".join(next(lines) for _ in range(2)))
    written = call(
        *("summarize", tmp_path / "export", papers, "--field", "article", *SHORT, "--max-len", "12"),
        *("--json", "--device", "cpu", "--precision", "float32"),
    )
    hypotheses = texts_of(generated.read_text())
    assert [json.loads(line)["summary"] for line in written.splitlines()] == [hypotheses[0], hypotheses[1]]


@pytest.mark.slow
def test_a_summarizer_that_answers_queries_in_words_of_byte_level_bpe(tmp_path: Path) -> None:
    # Texts of a prefix, too, as BART's tokenizer has one.
    queries = ["Why do bees fly?", "Who reads longer documents, and for how many steps?"]
    records = [
        {
            "id": "meeting",
            "query": query,
            "abstract": f"Bees fly {number}.",
            "article": f"Longer documents are read by models. Bees fly fast over {number} roses. " * 20,
        }
        for number in range(4)
        for query in queries
    ]
    (tmp_path / "bart.json").write_bytes(bart_bytes())
    for split, count in (("train", 8), ("test", 4)):
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records[:count]))
    data, best = tmp_path / "data", tmp_path / "trained" / "checkpoint_last.pt"
    options = ("--query-field", "query", "--number-repeated-ids", "--tokenizer", tmp_path / "bart.json", "--workers", 1)
    call("prepare", tmp_path, "--out", data, *options)
    begin = ["fairseq-train", data, *TASK, "--arch", "deep_pyramidion", *small("deep_pyramidion"), *TRAINING]
    begin += ["--criterion", "pooled_cross_entropy", "--batch-size", "4", "--max-update", "4", "--scorer", "query"]
    done(*begin, "--disable-validation", "--save-dir", best.parent)
    limits = [*SHORT, "--max-len-b", "12"]
    written = texts_of(done("fairseq-generate", data, *TASK, "--path", best, *limits, "--gen-subset", "test"))
    lines, interactive = tmp_path / "lines.txt", ["fairseq-interactive", tmp_path, *TASK, "--path", best, *limits]
    lines.write_text("".join(f"{record['query']}\t{record['article']}\n" for record in records[:4]))
    assert texts_of(done(*interactive, "--input", lines)) == written
    lines.write_text("No tab.\n")
    refused = run(*interactive, "--input", lines)
    assert refused.returncode != 0 and "each line must hold a query, a tab and a document" in refused.stdout
    call("export", best, tmp_path / "export")
    assert load_model(tmp_path / "export").queries
    answers = call(
        *("summarize", tmp_path / "export", tmp_path / "test.jsonl", *SHORT, "--max-len", 12, "--json"),
        *("--query-field", "query", "--precision", "float32"),
    )
    found = [json.loads(line) for line in answers.splitlines()]
    assert [answer["summary"] for answer in found] == [written[number] for number in range(4)]
    ids = [reference.id for reference in DataFolder(data).references("test")]
    assert [(answer["id"], answer["query"]) for answer in found] == list(zip(ids, queries * 2, strict=True))


CHARACTERS = ["--user-dir", USER_DIR, "--task", "character_language_modeling", "--cpu"]
WINDOW = ["--tokens-per-sample", "64"]
LEARNED = ("hourglass_gumbel", "hourglass_unigram", "hourglass_entropy", "hourglass_routing")


def language_model(data: Path, folder: Path, arch: str, *flags: object) -> list[object]:
    """An epoch has some seven updates, so that each run rolls its stream once or twice."""
    own = OWN_LAYERS.get(arch, {"layers": "1,2,1"})
    layers = [word for name, value in own.items() for word in (f"--{name.replace('_', '-')}", value)]
    return [
        *("fairseq-train", data, *CHARACTERS, *WINDOW, "--arch", arch, *layers, *TRAINING, *SAVES),
        *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2", "--piece-boundaries"),
        *("--criterion", "boundary_cross_entropy", "--best-checkpoint-metric", "bpc", "--clip-norm", "0.25"),
        *("--lr", "0.01", "--batch-size", "4", "--max-update", "12", "--save-dir", folder, *flags),
    ]


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of words of a few letters, whose ends, of 500 characters each, are valid and test."""
    draw, root = random.Random(1), tmp_path_factory.mktemp("characters")
    words = ["".join(draw.choices("abcdefg", k=draw.randint(1, 6))) for _ in range(40)]
    (root / "text.txt").write_text(" ".join(draw.choices(words, k=700)))
    options = ("--characters", "en", "--valid-characters", 500, "--pieces", 30)
    call("prepare", root / "text.txt", *options, "--out", root / "data")
    return root / "data"


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch",
    [
        pytest.param(arch, marks=() if arch == "hourglass_gumbel" else pytest.mark.nightly)
        for arch in LANGUAGE_MODEL_PRESETS
    ],
)
def test_a_language_model(arch: str, characters: Path, tmp_path: Path) -> None:
    killed, log = live(lambda folder: language_model(characters, folder, arch), tmp_path, 4)
    assert "| bpc " in log and "| epoch 002 |" in log
    assert ("| spaces_f1 " in log) == (arch not in WITHOUT_SEGMENTS)
    assert ("| boundary_loss " in log) == (arch in LEARNED)

    # As of a version that had none of the fields which are at their defaults.
    older = state(killed)
    defaults = vars(LanguageModelConfig())
    model = older["cfg"]["model"]
    older["cfg"]["model"] = {name: value for name, value in model.items() if value != defaults.get(name, ...)}
    assert "attention_dropout" not in older["cfg"]["model"]
    torch.save(older, killed / "older.pt")
    checkpoint = ["--path", killed / "older.pt"]
    window = ["--context-window", "48", "--batch-size", "8"]
    scored = done("fairseq-eval-lm", characters, *CHARACTERS, *WINDOW, *checkpoint, "--gen-subset", "test", *window)
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored)
    assert "Evaluated 500 tokens" in scored and 1 < float(bits) < 5

    prompts = tmp_path / "prompts.txt"
    prompts.write_text("Bad cafe\n\n")
    written = texts_of(
        done(
            *("fairseq-interactive", characters, *CHARACTERS, *checkpoint, "--input", prompts, "--beam", "2"),
            *("--buffer-size", "2", "--max-len-a", "1", "--max-len-b", "20"),
        )
    )
    assert {number: len(text) for number, text in written.items()} == {0: 28, 1: 20}
    assert re.fullmatch("bad cafe[a-g ]*", written[0])
    if arch not in WITHOUT_SEGMENTS:
        call("export", killed / "checkpoint_last.pt", tmp_path / "export")
        first, second = (call("segments", model, prompts) for model in (tmp_path / "export", killed))
        assert first == second != ""


def test_boundaries_that_learn_need_the_criterion_that_has_their_loss(characters: Path, tmp_path: Path) -> None:
    other = ["--criterion", "cross_entropy", "--best-checkpoint-metric", "loss"]
    refused = run(*language_model(characters, tmp_path, "hourglass_gumbel", *other))
    assert refused.returncode == 1 and "--criterion boundary_cross_entropy" in refused.stdout


@pytest.mark.parametrize("arch", ["whitespace", *(pytest.param(a, marks=pytest.mark.nightly) for a in LEARNED)])
def test_a_text_without_any_space_is_trained_on_and_scored(arch: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(random.Random(3).choices("abcdefg", k=1400)))
    options = ("--characters", "en", "--valid-characters", 500, "--pieces", 30)
    data, trained = tmp_path / "data", tmp_path / "trained"
    call("prepare", tmp_path / "text.txt", *options, "--out", data)
    log = done(*language_model(data, trained, f"hourglass_{arch.removeprefix('hourglass_')}", "--max-update", "3"))
    assert "nan" not in log and "inf," not in log
    checkpoint = ["--path", trained / "checkpoint_last.pt"]
    scored = done("fairseq-eval-lm", data, *CHARACTERS, *WINDOW, *checkpoint, "--gen-subset", "test")
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored)
    assert 2 < float(bits) < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch",
    [("extractor_pointer",), pytest.param(("extractor", "--reward-samples", "2"), marks=pytest.mark.nightly)],
)
def test_an_extractor(arch: tuple[str, ...], labelled_data: DataFolder, tmp_path: Path) -> None:
    # Epochs have twelve updates.
    flags = [
        *("--batch-size", "2", "--max-update", "16", "--save-interval-updates", "8", "--eval-rouge"),
        *("--best-checkpoint-metric", "rouge1", "--maximize-best-checkpoint-metric", "--reward-weight", "0.5"),
        *("--extract-words", "60", "--redundancy", "trigrams", "--dropout", "0.1", "--arch", *arch),
    ]
    killed, _ = live(
        *(lambda folder: train_extractor_command(labelled_data, folder, *flags), tmp_path, 8, "checkpoint_best.pt")
    )
    checkpoint, export = killed / "checkpoint_best.pt", tmp_path / "export"
    call("export", checkpoint, export)
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as lines:
        (tmp_path / "papers.jsonl").write_text("".join(next(lines) for _ in range(10)))
    for model in (checkpoint, export):
        asked = ("--method", model, "--field", "article", "--words", 60, "--precision", "float32")
        call("extract", tmp_path / "papers.jsonl", *asked, "-o", tmp_path / f"{model.stem}.jsonl")
    extracts = tmp_path / "export.jsonl"
    assert extracts.read_bytes() == (tmp_path / "checkpoint_best.jsonl").read_bytes()
    assert "n=10" in call("score", extracts, "--data", labelled_data.path)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["longt5", pytest.param("bart", marks=pytest.mark.nightly)])
def test_a_pretrained_model(family: str, tmp_path: Path) -> None:
    """It gets our parts, and keeps its tokenizer and its prefix; transformers writes what its export writes."""
    source = save(model_of(family), tmp_path / family)
    prefix = "summarize: " if family == "longt5" else ""
    about = json.loads((source / "config.json").read_text())
    said = {"task_specific_params": {"summarization": {"prefix": prefix}}} if prefix else {}
    (source / "config.json").write_text(json.dumps({**about, **said}))
    texts = [" ".join(SENTENCES[i:]) for i in range(5)]
    for split in ("train", "test"):
        pairs = [{"id": f"{split} {i}", "article": text, "abstract": SENTENCES[i]} for i, text in enumerate(texts)]
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    made, data = tmp_path / "made.pt", tmp_path / "data"
    parts = ["--pooling-lengths", "16,8", "--output", "pointer(start=12)"]
    told = call("import", source, "-o", made, *parts)
    call("prepare", tmp_path, "--tokenizer", made, "--out", data, "--workers", 1)

    # The command that is printed, for fewer updates.
    words = shlex.split(told[told.index("fairseq-train") :].replace("\\\n", " "))
    words[1], words[words.index("--user-dir") + 1] = str(data), TASK[1]
    assert not prefix or words[words.index("--source-prefix") + 1] == prefix
    words += ["--cpu", "--update-freq", "1", "--warmup-updates", "0", "--disable-validation", *TRAINING, "--lr", "0.01"]
    words += ["--batch-size", "1", "--save-interval-updates", "2", "--max-update", "6"]
    killed, _ = live(lambda folder: [*words, "--save-dir", folder], tmp_path, 2)
    trained, exported = killed / "checkpoint_last.pt", tmp_path / "exported"
    before, after = state(tmp_path, "made.pt")["model"], state(killed)["model"]
    assert before.keys() == after.keys()
    assert any(not torch.equal(weight, after[name]) for name, weight in before.items())
    assert torch.equal(before["vocabulary"], after["vocabulary"])

    limits = ["--beam", "2", "--min-len", "2", "--max-len-b", "6"]
    log = done("fairseq-generate", data, *TASK, "--gen-subset", "test", "--path", trained, *limits)
    (tmp_path / "generated.txt").write_text(log)
    assert "| n=5" in call("score", tmp_path / "generated.txt", "--data", data)
    call("export", trained, exported)
    decoding = ("--beam", 2, "--min-len", 2, "--max-len", 6, "--precision", "float32", "--json")
    for model in (trained, exported):
        assert load_model(model).source_prefix == prefix
        found = call("summarize", model, tmp_path / "test.jsonl", "--field", "article", *decoding)
        assert [json.loads(line)["summary"] for line in found.splitlines()] == [texts_of(log)[i] for i in range(5)]
    greedy = ("--beam", 1, "--min-len", 3, "--max-len", 12, "--precision", "float32", "--json")
    ours = call("summarize", exported, tmp_path / "test.jsonl", "--field", "article", *greedy)
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    given = tokenizer(texts, return_tensors="pt", padding=True, truncation=True)
    theirs = model.generate(**given, num_beams=1, no_repeat_ngram_size=0, min_length=4, max_length=14)
    decoded = tokenizer.batch_decode(theirs, skip_special_tokens=True)
    assert decoded == [json.loads(line)["summary"] for line in ours.splitlines()]


def test_a_model_of_missing_spans_learns_to_summarize(data: DataFolder, tmp_path: Path) -> None:
    spans = ["--task", "span_denoising"]
    flags = [*spans, "--max-update", "8", *SAVES]
    killed, log = live(lambda folder: train_command(data, folder, *flags), tmp_path, 4)
    # What fits 47 tokens of target beside the end: 35 missing ones behind 12 sentinels.
    assert "train: passages of up to 236 tokens: 213 and 47 in source and target" in log
    start = killed / "checkpoint_last.pt"
    written = ["--path", start, "--min-len", "1"]
    denoised = done("fairseq-generate", data.path, "--user-dir", USER_DIR, "--cpu", *spans, *written)
    assert "Generate test with beam=" in denoised
    refused = CliRunner().invoke(main, ["summarize", str(start), str(data.references_path("test"))])
    assert "was trained with --task span_denoising" in refused.stderr
    tuned = train_command(data, tmp_path / "tuned", "--finetune-from-model", start, "--max-update", "1")
    assert f"loading pretrained model from {start}" in done(*tuned)


def test_a_model_of_a_toy_problem_is_tested_on_longer_inputs(tmp_path: Path) -> None:
    task = ["--user-dir", USER_DIR, "--task", "toy_sequences", "--cpu", "--shortest", "3", "--longest", "6"]
    task += ["--test-shortest", "8", "--test-longest", "9", "--examples", "16", "--test-examples", "8"]
    sizes = ["--arch", "vanilla", "--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2"]
    metric = ["--best-checkpoint-metric", "symbols_right", "--maximize-best-checkpoint-metric"]
    begin = ["fairseq-train", *task, *sizes, *TRAINING, *metric, "--criterion", "pooled_cross_entropy"]
    begin += ["--batch-size", "4", "--valid-subset", "valid,test", "--max-update", "6", "--save-interval-updates", "2"]
    killed, log = live(lambda folder: [*begin, "--save-dir", folder], tmp_path, 2)
    for split in ("valid", "test"):
        (line,) = [line for line in log.splitlines() if f"on '{split}' subset" in line and "num_updates 6" in line]
        assert "symbols_right" in line and "sequences_right" in line
    checkpoint = ["--path", killed / "checkpoint_best.pt", "--gen-subset", "test", "--beam", "1"]
    assert done("fairseq-generate", *task, *checkpoint).count("H-") == 8
