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
from typing import Any, NamedTuple

import invoking
import pytest
import torch
from conftest import SAMPLE
from fairseq_commands import EXTRACTION, TASK, USER_DIR, finish, kill_at, run, train_command, train_extractor_command
from small_language_models import OWN_LAYERS, WITHOUT_SEGMENTS
from small_pretrained import model_of, save
from small_tokenizers import SENTENCES, bart_bytes
from tiny_presets import tiny_fields
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import pyramidions.hf  # noqa: F401  (registers with the Auto classes)
from pyramidions.data.folder import DataFolder
from pyramidions.inference import load_extractor, load_model
from pyramidions.models import LANGUAGE_MODEL_PRESETS, LanguageModelConfig

Command = Callable[[Path], list[object]]
TRAINING = [
    *("--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed", "--seed", "1", "--num-workers", "0"),
    *("--log-format", "simple", "--log-interval", "1", "--no-epoch-checkpoints"),
]
SAVES = ["--save-interval-updates", "4"]
SHORT = ["--beam", "2", "--min-len", "4"]


def call(*words: object) -> str:
    """Run one of our commands in this process; return what it printed, without the bar of a slow machine."""
    return invoking.succeed(*words).stdout


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
    log = finish(*command(whole))
    kill_at(saved + 1, command(killed))
    rest = finish(*command(killed))
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
# The warm-up has four intervals of three updates, of which a kill behind update 4 leaves the second in its middle.
GENTLE = {"deep_pyramidion": "--pooling-warmup 12 --scorer-lr-scale 10 --freeze embeddings,encoder.0".split()}


def small(arch: str) -> list[object]:
    """Return flags that make a preset small; its layers and parts are its own."""
    fields = {**tiny_fields(arch), **SUMMARIZERS[arch], "max_source_positions": 256, "max_target_positions": 48}
    fields = {name: value for name, value in fields.items() if not isinstance(value, bool)}
    return [word for name, value in fields.items() for word in (f"--{name.replace('_', '-')}", value)]


def assert_frozen_parts_stayed(folder: Path) -> None:
    before, after = (state(folder, name)["model"] for name in ("checkpoint_1_4.pt", "checkpoint_last.pt"))
    stayed = {name for name, weight in after.items() if torch.equal(weight, before[name])}
    frozen = ("encoder.core.embedder.", "decoder.core.embedder.", "encoder.core.layers.0.")
    assert stayed >= {name for name in after if name.startswith(frozen)}
    assert not [name for name in stayed if name.startswith("encoder.core.layers.1.")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch", [pytest.param(arch, marks=() if arch in EACH_PUSH else pytest.mark.nightly) for arch in SUMMARIZERS]
)
def test_a_summarizer(arch: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data: DataFolder = request.getfixturevalue("marked_data" if arch == "discourse_pointer" else "data")
    # An epoch has six updates.
    begin = ["fairseq-train", data.path, *TASK, "--arch", arch, *small(arch), *TRAINING, *SAVES]
    begin += ["--criterion", "pooled_cross_entropy", "--batch-size", "4", "--max-update", "7", "--disable-validation"]
    begin += GENTLE.get(arch, [])
    killed, _ = live(lambda folder: [*begin, "--save-dir", folder], tmp_path, 4)
    checkpoint, generated = killed / "checkpoint_last.pt", tmp_path / "generate-test.txt"
    if arch in GENTLE:
        assert_frozen_parts_stayed(killed)
    assert "| nll_loss " in finish(
        "fairseq-validate", data.path, *TASK, "--path", checkpoint, "--log-format", "simple", "--batch-size", "4"
    )
    generate = ["fairseq-generate", data.path, *TASK, "--gen-subset", "test", "--path", checkpoint]
    finish(*generate, *SHORT, "--max-len-b", "12", "--batch-size", "4", "--results-path", tmp_path)
    assert "n=10" in call("score", generated, "--data", data.path)
    call("export", checkpoint, tmp_path / "export")
    papers = tmp_path / "papers.jsonl"
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as lines:
        papers.write_text("".join(next(lines) for _ in range(2)))
    asked = ["--field", "article", *SHORT, "--max-len", "12", "--json", "--device", "cpu", "--precision", "float32"]
    written = call("summarize", tmp_path / "export", papers, *asked)
    hypotheses = texts_of(generated.read_text())
    assert [json.loads(line)["summary"] for line in written.splitlines()] == [hypotheses[0], hypotheses[1]]


QUERIES = ["Why do bees fly?", "Who reads longer documents, and for how many steps?"]
QUERY_LIMITS = [*SHORT, "--max-len-b", "12"]
MEETINGS = [
    {
        "id": "meeting",
        "query": query,
        "abstract": f"Bees fly {number}.",
        "article": f"Longer documents are read by models. Bees fly fast over {number} roses. " * 20,
    }
    for number in range(4)
    for query in QUERIES
]


class Trained(NamedTuple):
    """A trained model: its data, its checkpoint, and what fairseq writes with it by document."""

    data: Path
    checkpoint: Path
    written: dict[int, str]


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A summarizer that answers queries in words of byte-level BPE."""
    # Texts of a prefix, too, as BART's tokenizer has one.
    tmp_path = tmp_path_factory.mktemp("answering")
    (tmp_path / "bart.json").write_bytes(bart_bytes())
    for split, count in (("train", 8), ("test", 4)):
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in MEETINGS[:count]))
    data, best = tmp_path / "data", tmp_path / "trained" / "checkpoint_last.pt"
    options = ("--query-field", "query", "--number-repeated-ids", "--tokenizer", tmp_path / "bart.json", "--workers", 1)
    call("prepare", tmp_path, "--out", data, *options)
    begin = ["fairseq-train", data, *TASK, "--arch", "deep_pyramidion", *small("deep_pyramidion"), *TRAINING]
    begin += ["--criterion", "pooled_cross_entropy", "--batch-size", "4", "--max-update", "4", "--scorer", "query"]
    finish(*begin, "--disable-validation", "--save-dir", best.parent)
    log = finish("fairseq-generate", data, *TASK, "--path", best, *QUERY_LIMITS, "--gen-subset", "test")
    return Trained(data, best, texts_of(log))


@pytest.mark.slow
def test_a_line_of_fairseqs_prompt_is_a_query_a_tab_and_a_document(answering: Trained, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{record['query']}\t{record['article']}\n" for record in MEETINGS[:4]))
    words = ["fairseq-interactive", tmp_path, *TASK, "--path", answering.checkpoint, *QUERY_LIMITS, "--input", lines]
    assert texts_of(finish(*words)) == answering.written
    lines.write_text("No tab.\n")
    refused = run(*words)
    assert refused.returncode != 0 and "a query, a tab and a document" in refused.stdout


@pytest.mark.slow
def test_an_export_answers_queries_as_fairseq_does(answering: Trained, tmp_path: Path) -> None:
    call("export", answering.checkpoint, tmp_path / "export")
    assert load_model(tmp_path / "export").queries
    asked = ["--query-field", "query", *SHORT, "--max-len", 12, "--json", "--precision", "float32"]
    answers = call("summarize", tmp_path / "export", answering.data.parent / "test.jsonl", *asked)
    found = [json.loads(line) for line in answers.splitlines()]
    assert [answer["summary"] for answer in found] == [answering.written[number] for number in range(4)]
    ids = [reference.id for reference in DataFolder(answering.data).references("test")]
    assert [(answer["id"], answer["query"]) for answer in found] == list(zip(ids, QUERIES * 2, strict=True))


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


class LanguageModelLife(NamedTuple):
    """A language model that was killed and went on, and the log of one that was not."""

    arch: str
    folder: Path
    log: str


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(arch, marks=[pytest.mark.slow, *([] if arch == "hourglass_gumbel" else [pytest.mark.nightly])])
        for arch in LANGUAGE_MODEL_PRESETS
    ],
)
def language(
    request: pytest.FixtureRequest, characters: Path, tmp_path_factory: pytest.TempPathFactory
) -> LanguageModelLife:
    root = tmp_path_factory.mktemp(request.param)
    killed, log = live(lambda folder: language_model(characters, folder, request.param), root, 4)
    return LanguageModelLife(request.param, killed, log)


def test_a_language_model_goes_on_after_a_kill_and_logs_its_figures(language: LanguageModelLife) -> None:
    assert "| bpc " in language.log and "| epoch 002 |" in language.log
    assert ("| spaces_f1 " in language.log) == (language.arch not in WITHOUT_SEGMENTS)
    assert ("| boundary_loss " in language.log) == (language.arch in LEARNED)


def test_a_checkpoint_without_the_fields_at_their_defaults_is_scored(
    language: LanguageModelLife, characters: Path, tmp_path: Path
) -> None:
    # As of a version that had none of them.
    older = state(language.folder)
    defaults = vars(LanguageModelConfig())
    model = older["cfg"]["model"]
    older["cfg"]["model"] = {name: value for name, value in model.items() if value != defaults.get(name, ...)}
    assert "attention_dropout" not in older["cfg"]["model"]
    torch.save(older, tmp_path / "older.pt")
    window = [*WINDOW, "--context-window", "48", "--batch-size", "8", "--gen-subset", "test"]
    scored = finish("fairseq-eval-lm", characters, *CHARACTERS, *window, "--path", tmp_path / "older.pt")
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored)
    assert "Evaluated 500 tokens" in scored and 1 < float(bits) < 5


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    (tmp_path / "prompts.txt").write_text("Bad cafe\n\n")
    return tmp_path / "prompts.txt"


def test_a_language_model_writes_on_from_prompts(language: LanguageModelLife, characters: Path, prompts: Path) -> None:
    words = [*CHARACTERS, "--path", language.folder / "checkpoint_last.pt", "--input", prompts, "--beam", "2"]
    words += ["--buffer-size", "2", "--max-len-a", "1", "--max-len-b", "20"]
    written = texts_of(finish("fairseq-interactive", characters, *words))
    assert {number: len(text) for number, text in written.items()} == {0: 28, 1: 20}
    assert re.fullmatch("bad cafe[a-g ]*", written[0])


def test_an_exported_language_model_finds_the_same_segments(
    language: LanguageModelLife, prompts: Path, tmp_path: Path
) -> None:
    call("export", language.folder / "checkpoint_last.pt", tmp_path / "export")
    if language.arch not in WITHOUT_SEGMENTS:
        first, second = (call("segments", model, prompts) for model in (tmp_path / "export", language.folder))
        assert first == second != ""


def test_boundaries_that_learn_need_the_criterion_that_has_their_loss(characters: Path, tmp_path: Path) -> None:
    other = ["--criterion", "cross_entropy", "--best-checkpoint-metric", "loss"]
    refused = run(*language_model(characters, tmp_path, "hourglass_gumbel", *other))
    assert refused.returncode == 1 and "boundary_cross_entropy" in refused.stdout


@pytest.mark.parametrize("arch", ["whitespace", *(pytest.param(a, marks=pytest.mark.nightly) for a in LEARNED)])
def test_a_text_without_any_space_is_trained_on_and_scored(arch: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(random.Random(3).choices("abcdefg", k=1400)))
    options = ("--characters", "en", "--valid-characters", 500, "--pieces", 30)
    data, trained = tmp_path / "data", tmp_path / "trained"
    call("prepare", tmp_path / "text.txt", *options, "--out", data)
    log = finish(*language_model(data, trained, f"hourglass_{arch.removeprefix('hourglass_')}", "--max-update", "3"))
    assert "nan" not in log and "inf," not in log
    checkpoint = ["--path", trained / "checkpoint_last.pt"]
    scored = finish("fairseq-eval-lm", data, *CHARACTERS, *WINDOW, *checkpoint, "--gen-subset", "test")
    (bits,) = re.findall(r"Loss \(base 2\): (\d+\.\d+)", scored)
    assert 2 < float(bits) < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch", [("extractor_pointer",), pytest.param(("extractor", "--reward-samples", "2"), marks=pytest.mark.nightly)]
)
def test_an_extractor(arch: tuple[str, ...], labelled_data: DataFolder, tmp_path: Path) -> None:
    # Epochs have twelve updates.
    flags = [
        *("--batch-size", "2", "--max-update", "16", "--save-interval-updates", "8", "--eval-rouge"),
        *("--best-checkpoint-metric", "rouge1", "--maximize-best-checkpoint-metric", "--reward-weight", "0.5"),
        *("--extract-words", "60", "--redundancy", "trigrams", "--dropout", "0.1", "--arch", *arch),
    ]

    def command(folder: Path) -> list[object]:
        return train_extractor_command(labelled_data, folder, *flags)

    killed, log = live(command, tmp_path, 8, "checkpoint_best.pt")
    checkpoint, export = killed / "checkpoint_best.pt", tmp_path / "export"
    scores = [float(score) for score in re.findall(r"valid on 'valid' subset .*\| rouge1 ([\d.]+) \|", log)]
    assert state(killed, checkpoint.name)["extra_state"]["best"] == pytest.approx(max(scores), abs=1e-3)
    # The words and the way to avoid repetitions travel in the checkpoint.
    saved_model = load_extractor(checkpoint)
    assert (saved_model.extract_words, saved_model.redundancy, saved_model.mmr_weight) == (60, "trigrams", 0.7)
    read = [labelled_data.path, *EXTRACTION, "--path", checkpoint]
    assert "| rouge1 " in finish("fairseq-validate", *read, "--log-format", "simple", "--batch-size", "4")
    generated = finish("fairseq-generate", *read)
    texts = texts_of(generated)
    assert len(texts) == 10 and all(0 < len(text.split()) <= 60 for text in texts.values())
    (rouge1,) = re.findall(r"^Generate test .*rouge1 ([\d.]+) ", generated, re.MULTILINE)
    assert float(rouge1) > 10
    call("export", checkpoint, export)
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as lines:
        (tmp_path / "papers.jsonl").write_text("".join(next(lines) for _ in range(10)))
    for model in (checkpoint, export):
        asked = ("--method", model, "--field", "article", "--words", 60, "--precision", "float32")
        call("extract", tmp_path / "papers.jsonl", *asked, "-o", tmp_path / f"{model.stem}.jsonl")
    extracts = tmp_path / "export.jsonl"
    of_checkpoint = (tmp_path / "checkpoint_best.jsonl").read_text()
    assert extracts.read_text() == of_checkpoint.replace(str(checkpoint), str(export))
    assert "n=10" in call("score", extracts, "--data", labelled_data.path)


PREFIXES = {"longt5": "summarize: ", "bart": ""}
TEXTS = [" ".join(SENTENCES[i:]) for i in range(5)]


class PretrainedLife(NamedTuple):
    """A pretrained model with parts of ours that was trained, killed and trained on; its data and its export."""

    prefix: str
    root: Path
    checkpoint: Path
    exported: Path


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("longt5", marks=pytest.mark.slow),
        pytest.param("bart", marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
def pretrained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PretrainedLife:
    family, tmp_path = request.param, tmp_path_factory.mktemp(request.param)
    source = save(model_of(family), tmp_path / family)
    prefix = PREFIXES[family]
    about = json.loads((source / "config.json").read_text())
    said = {"task_specific_params": {"summarization": {"prefix": prefix}}} if prefix else {}
    (source / "config.json").write_text(json.dumps({**about, **said}))
    for split in ("train", "test"):
        pairs = [{"id": f"{split} {i}", "article": text, "abstract": SENTENCES[i]} for i, text in enumerate(TEXTS)]
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
    call("export", killed / "checkpoint_last.pt", tmp_path / "exported")
    return PretrainedLife(prefix, tmp_path, killed / "checkpoint_last.pt", tmp_path / "exported")


def test_the_weights_of_a_pretrained_model_are_trained_and_keep_their_names(pretrained: PretrainedLife) -> None:
    before, after = state(pretrained.root, "made.pt")["model"], state(pretrained.checkpoint.parent)["model"]
    assert before.keys() == after.keys()
    assert any(not torch.equal(weight, after[name]) for name, weight in before.items())
    assert torch.equal(before["vocabulary"], after["vocabulary"])


def summaries(model: Path, documents: Path, *limits: object) -> list[str]:
    """Return what we write with a model."""
    found = call("summarize", model, documents, "--field", "article", *limits, "--precision", "float32", "--json")
    return [json.loads(line)["summary"] for line in found.splitlines()]


def test_a_pretrained_model_and_its_export_write_what_fairseq_writes(
    pretrained: PretrainedLife, tmp_path: Path
) -> None:
    data, limits = pretrained.root / "data", ["--beam", "2", "--min-len", "2", "--max-len-b", "6"]
    log = finish("fairseq-generate", data, *TASK, "--gen-subset", "test", "--path", pretrained.checkpoint, *limits)
    (tmp_path / "generated.txt").write_text(log)
    assert "| n=5" in call("score", tmp_path / "generated.txt", "--data", data)
    for model in (pretrained.checkpoint, pretrained.exported):
        assert load_model(model).source_prefix == pretrained.prefix
        found = summaries(model, pretrained.root / "test.jsonl", "--beam", 2, "--min-len", 2, "--max-len", 6)
        assert found == [texts_of(log)[i] for i in range(5)]


def test_transformers_writes_what_the_export_of_a_pretrained_model_writes(pretrained: PretrainedLife) -> None:
    exported = pretrained.exported
    ours = summaries(exported, pretrained.root / "test.jsonl", "--beam", 1, "--min-len", 3, "--max-len", 12)
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(exported), AutoTokenizer.from_pretrained(exported)
    given = tokenizer(TEXTS, return_tensors="pt", padding=True, truncation=True)
    theirs = model.generate(**given, num_beams=1, no_repeat_ngram_size=0, min_length=4, max_length=14)
    assert tokenizer.batch_decode(theirs, skip_special_tokens=True) == ours


def test_a_model_of_missing_spans_learns_to_summarize(data: DataFolder, tmp_path: Path) -> None:
    spans = ["--task", "span_denoising"]
    flags = [*spans, "--max-update", "8", *SAVES]
    killed, log = live(lambda folder: train_command(data, folder, *flags), tmp_path, 4)
    # What fits 47 tokens of target beside the end: 35 missing ones behind 12 sentinels.
    assert "train: passages of up to 236 tokens: 213 and 47 in source and target" in log
    start = killed / "checkpoint_last.pt"
    written = ["--path", start, "--min-len", "1"]
    denoised = finish("fairseq-generate", data.path, "--user-dir", USER_DIR, "--cpu", *spans, *written)
    assert "Generate test with beam=" in denoised
    refused = invoking.run("summarize", start, data.references_path("test"))
    assert refused.exit_code == 1 and "span_denoising" in refused.stderr
    tuned = train_command(data, tmp_path / "tuned", "--finetune-from-model", start, "--max-update", "1")
    assert f"loading pretrained model from {start}" in finish(*tuned)


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
    assert finish("fairseq-generate", *task, *checkpoint).count("H-") == 8
