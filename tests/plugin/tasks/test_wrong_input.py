"""The sentences that a wrong option, a wrong checkpoint or wrong data ends in."""

import math
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from refusals import refused
from small_tokenizers import bart_bytes

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_options
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.folder import DataFolder
from pyramidions.models import build, preset
from pyramidions.plugin.criterions.boundary_cross_entropy import BoundaryCrossEntropyCriterion
from pyramidions.plugin.criterions.extractive_summarization import ExtractiveSummarizationCriterion
from pyramidions.plugin.criterions.pooled_cross_entropy import PooledCrossEntropyCriterion
from pyramidions.plugin.hooks import check_options
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.character_language_modeling import CharacterLanguageModelingTask
from pyramidions.plugin.tasks.config import (
    CharacterLanguageModelingConfig,
    DocumentTaskConfig,
    ExtractiveSummarizationConfig,
    LongDocumentSummarizationConfig,
    ToySequencesConfig,
)
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask
from pyramidions.plugin.tasks.learning import begin_fine_tuning
from pyramidions.plugin.tasks.long_document_summarization import LongDocumentSummarizationTask
from pyramidions.plugin.tasks.preprocessing import SOURCE_PREFIX, Preprocessing, Setting
from pyramidions.plugin.tasks.queries import check_query_model
from pyramidions.plugin.tasks.span_denoising import SpanDenoisingTask
from pyramidions.plugin.tasks.splits import documents_alone
from pyramidions.plugin.tasks.toy_sequences import ToySequencesTask
from pyramidions.plugin.tasks.validation import validation_metrics
from pyramidions.text.tokenizer import EOS


class Given(NamedTuple):
    """Folders; ``folder`` is empty."""

    data: DataFolder
    labelled: DataFolder
    asked: DataFolder
    characters: CharacterFolder
    folder: Path

    def writes(self, data: DataFolder | None = None, **options: Any) -> LongDocumentSummarizationTask:
        return LongDocumentSummarizationTask(
            LongDocumentSummarizationConfig(data=str((data or self.data).path), **options)
        )

    def answers(self, data: DataFolder, queries: bool, **options: Any) -> LongDocumentSummarizationTask:
        """Return a task of a model that was trained with queries, or without."""
        task = self.writes(data, **options)
        task.load_state_dict({**task.state_dict(), "queries": queries})
        return task

    def extracts(self, **options: Any) -> ExtractiveSummarizationTask:
        return ExtractiveSummarizationTask(ExtractiveSummarizationConfig(data=str(self.labelled.path), **options))

    def predicts(self, **options: Any) -> CharacterLanguageModelingTask:
        return CharacterLanguageModelingTask(CharacterLanguageModelingConfig(data=str(self.characters.path), **options))

    def trained(self, option: str, *values: Any) -> list[Any]:
        """Return what checkpoints of tasks with these values of an option hold."""
        return [self.writes(**{option: value}).state_dict() for value in values]

    def extracting(self, *kinds: str) -> list[Any]:
        return [self.extracts(redundancy=kind).state_dict() for kind in kinds]

    def asks(self, **model: Any) -> None:
        check_query_model(SimpleNamespace(**model), self.writes().preprocessing)

    def windows(self, length: int, method: str = "get_batch_iterator", **options: Any) -> None:
        batches(self.predicts(tokens_per_sample=length), "test", method, **options)

    def cut(self, longest: int, source_prefix: str = "", pieces: bytes = b"<mask>") -> object:
        """Read a document with a tokenizer whose texts begin with `<s>`."""
        (self.folder / "tokenizer.json").write_bytes(bart_bytes().replace(b'"<mask>"', b'"' + pieces + b'"'))
        settings = {SOURCE_PREFIX: Setting(source_prefix, "")} if source_prefix else {}
        settings["max_source_positions"] = Setting(longest)
        preprocessing = Preprocessing(DataFolder(self.folder), "a_task", settings)
        return documents_alone(preprocessing, [torch.tensor([9, 8, EOS])], reads_end=True)


@pytest.fixture
def given(
    data: DataFolder, labelled_data: DataFolder, asked: DataFolder, characters: CharacterFolder, tmp_path: Path
) -> Given:
    return Given(data, labelled_data, asked, characters, tmp_path)


def states(task: Any, *states: Any) -> None:
    for state in states:
        task.load_state_dict(state)


def read(task: Any, *texts: list[int]) -> None:
    task.build_dataset_for_inference([torch.tensor(text) for text in texts], [len(text) for text in texts])


def batches(task: Any, split: str, method: str = "get_batch_iterator", **options: Any) -> None:
    task.load_dataset(split)
    getattr(task, method)(task.dataset(split), **options)


def searched(*models: Any, **options: Any) -> None:
    decoding.fill_in(Namespace(**options), list(models))


def decodes(beam: int = 2) -> Any:
    own = {"decoding_length_penalty": 1.5, "decoding_min_length": 7, "decoding_max_length": 90}
    config = SimpleNamespace(**own, decoding_beam=beam, decoding_no_repeat_ngram=3)
    return SimpleNamespace(config=config, max_decoder_positions=lambda: 50)


def tuned(**options: Any) -> None:
    shape = {"embed_dim": 8, "ffn_embed_dim": 8, "num_heads": 2, "pooling": "mean", "pooling_lengths": "16,4"}
    model = build(preset("transpooler", **shape, max_source_positions=64), 50)
    begin_fine_tuning(DocumentTaskConfig(**options), model, 64)


def validated(**options: Any) -> None:
    validation_metrics(LongDocumentSummarizationConfig(data="x", **options))


def plays(**options: Any) -> ToySequencesTask:
    return ToySequencesTask(ToySequencesConfig(**options))


#: options of tasks and criterions that are out of their ranges
RANGES = [
    (PooledCrossEntropyCriterion, "label_smoothing", (-0.1, 1.0, math.nan)),
    (BoundaryCrossEntropyCriterion, "boundary_weight", (-0.5, math.inf, math.nan)),
    (ExtractiveSummarizationCriterion, "positive_weight", (0.0, math.inf)),
    (ExtractiveSummarizationCriterion, "reward_weight", (-0.1, 1.5)),
    (ExtractiveSummarizationCriterion, "reward_samples", (0,)),
    (ExtractiveSummarizationCriterion, "reward_rouge2", (-1.0, math.inf)),
    (LongDocumentSummarizationTask, "copying_updates", (-1,)),
    (LongDocumentSummarizationTask, "pooling_warmup", (-1,)),
    (LongDocumentSummarizationTask, "scorer_lr_scale", (0.0, math.inf)),
    (SpanDenoisingTask, "corrupted_share", (0.0, 1.0)),
    (SpanDenoisingTask, "mean_span", (0.5, math.inf)),
]


@pytest.mark.parametrize(("kind", "name", "wrong"), RANGES)
def test_an_option_out_of_its_range_is_named(kind: type, name: str, wrong: tuple[float, ...]) -> None:
    for value in wrong:
        with refused(f"{flag_of(name)} must be ") as error:
            check_options(kind, SimpleNamespace(**{name: value}))
        assert f"but is {value}." in str(error.value)


QUERY, TEXT = [*[5] * 5, EOS, 9, EOS], [5, EOS, 9, EOS]
#: what is refused, the option or file that is named, and its value
TABLE: list[tuple[Callable[[Given], object], str, str]] = [
    # Lengths, the tokenizer, and checkpoints
    (lambda g: g.writes(max_source_positions=1), "--max-source-positions", "at least 2"),
    (lambda g: g.extracts(extract_words=0), "--extract-words", "but is 0."),
    (lambda g: g.writes(stopping_patience=-1), "--stopping-patience", "but is -1."),
    (lambda g: g.writes().build_bpe("gpt2"), "--bpe", "'gpt2'"),
    (lambda g: g.writes().load_state_dict({}), "not trained with", "--task long_document_summarization."),
    (lambda g: states(g.extracts(), g.writes().state_dict()), "not trained with", "--task extractive_summarization."),
    (lambda g: states(g.writes(), {**g.writes().state_dict(), "tokenizer": b"x"}), "another tokenizer", "data folder"),
    (lambda g: states(g.writes(), *g.trained("max_source_positions", 64, 32)), "--max-source-positions", "64 and 32"),
    (lambda g: states(g.extracts(), *g.extracting("none", "mmr")), "--redundancy", "none and mmr"),
    # Data
    (lambda g: g.writes(DataFolder(g.folder)).load_dataset("train"), "it lacks", "sentencepiece.model"),
    (lambda g: g.writes().load_dataset("test2"), "test2.source.bin", "its splits are train, valid, test."),
    (lambda g: read(g.writes(), [5, 2], [2]), "document", "number 2"),
    (lambda g: batches(g.writes(max_source_positions=64), "test", max_tokens=63), "--max-tokens", "but is 63."),
    (lambda g: g.cut(2), "`max_source_positions`", "at least 3, <s>, a token"),
    (lambda g: g.cut(4, "sum: "), "the 3 tokens of --source-prefix", "but is 4."),
    # Queries
    (lambda g: g.answers(g.asked, queries=False).load_dataset("train"), "have queries", "without --query-field."),
    (lambda g: g.answers(g.data, queries=True).load_dataset("valid"), "have no queries", "with --query-field."),
    (lambda g: states(t := g.answers(g.asked, True), {**t.state_dict(), "queries": False}), "an ensemble", "queries"),
    (lambda g: g.answers(g.asked, True).build_bpe(None).encode("We tested."), "a query, a tab", "'We tested.'."),
    (lambda g: read(g.answers(g.asked, True, max_source_positions=12), TEXT, QUERY), "number 2", "6 tokens"),
    (lambda g: g.asks(scorer="linear | query"), "--scorer query", "needs documents with queries"),
    (lambda g: g.asks(global_query=True), "--global-query", "needs documents with queries"),
    # Searches
    (lambda g: decoding.from_options({"beams": 4}), "`eval_rouge_args`", "no argument 'beams'"),
    (lambda g: decoding.from_options({"beam": "two"}), "'beam' in `eval_rouge_args`", "a whole number"),
    (lambda g: decoding.from_options({"beam": True}), "'beam' in `eval_rouge_args`", "True"),
    (lambda g: decoding.from_options({"beam": 2.5}), "'beam' in `eval_rouge_args`", "2.5"),
    (lambda g: decoding.from_options({"beam": None}), "'beam' in `eval_rouge_args`", ""),
    (lambda g: decoding.from_options({"sampling": 1}), "'sampling' in `eval_rouge_args`", "1"),
    (lambda g: decoding.from_options({"score_reference": True}), "`eval_rouge_args`", "'score_reference'"),
    (lambda g: searched(decodes(), beam=0), "--beam", "but is 0."),
    (lambda g: searched(decodes(), min_len=50), "at most 49 tokens", "but has 50."),
    (lambda g: searched(decodes(), max_len_b=6), "at most 6 tokens", "but has 7."),
    (lambda g: searched(decodes(), decodes(4)), "--beam", "(2, 4)"),
    (lambda g: searched(SimpleNamespace()), "--beam", "holds no decoding settings"),
    (lambda g: decoding.check_heeded(Namespace(print_alignment="hard"), "a_task"), "--print-alignment", "a_task."),
    (lambda g: g.extracts().build_generator([], Namespace(lenpen=2.0)), "--lenpen", "2.0 is an option of beam search"),
    # Extracts
    (lambda g: g.extracts(redundancy="some"), "`redundancy`", "but is 'some'."),
    (lambda g: g.extracts(mmr_weight=2.0), "`mmr_weight`", "but is 2.0."),
    (lambda g: g.extracts(redundancy="trigrams", mmr_weight=0.5).build_model(None), "--mmr-weight", "is trigrams."),
    (lambda g: g._replace(labelled=g.data).extracts().load_dataset("valid"), "no labels", "prepare --labels"),
    # What learns
    (lambda g: tuned(pooling_warmup=9), "--pooling-warmup", "is 9, but the model has no pooling by a top-k."),
    (lambda g: tuned(freeze="decoder.7"), "--freeze", "names decoder.7"),
    (lambda g: tuned(scorer_lr_scale=10.0), "--scorer-lr-scale", "is 10.0, but no scorer has weights to train."),
    # Validation
    (lambda g: validated(eval_metrics="rogue"), "'rogue'", "did you mean rouge?"),
    (lambda g: validated(eval_metrics="rouge(lang='de')"), "metric 'rouge'", "no option 'lang'; it knows language"),
    (lambda g: validated(eval_metrics="rouge(language=3)"), "`language`", "but is 3."),
    (lambda g: validated(eval_metrics="rouge(language='xx')"), "language", "xx"),
    (lambda g: validated(eval_metrics="rouge(language=de)"), "`eval_metrics`", "'rouge(language=de)'"),
    (lambda g: decoding.from_options(parse_options("eval_rouge_args", "beam 4")), "`eval_rouge_args`", "'beam 4'."),
    # Toy sequences
    (lambda g: plays(problem="sorting"), "--problem", "but is 'sorting'."),
    (lambda g: plays(problem="addition", shortest=2), "`shortest`", "but is 2."),
    (lambda g: plays(problem="addition", test_shortest=2), "`test_shortest`", "2"),
    (lambda g: plays(longest=2), "`longest`", "2"),
    (lambda g: plays(test_shortest=301), "`test_shortest`", "but is 301, above 300."),
    (lambda g: plays(examples=0), "--examples", "but is 0."),
    (lambda g: plays(test_examples=0), "--test-examples", "but is 0."),
    (lambda g: plays().load_dataset("dev"), "A split", "but is 'dev'."),
    # Characters
    (lambda g: g.predicts(tokens_per_sample=0), "`tokens_per_sample`", "at least 1"),
    (lambda g: g.predicts(tokens_per_sample=501).load_dataset("train"), "`tokens_per_sample`", "but is 501."),
    (lambda g: g.windows(16, "eval_lm_dataloader", context_window=48, max_tokens=63), "--max-tokens", "most is 63."),
    (lambda g: g.windows(64, max_positions=32), "A window of 64 characters", "but the most is 32."),
    (lambda g: states(g.predicts(), {"characters": "fi"}), "alphabet", "'fi'"),
    (lambda g: g.predicts().build_bpe("gpt2"), "--bpe", "'gpt2'"),
    (lambda g: g._replace(characters=g.data).predicts(), "holds documents", "make one of characters"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "option", "value"), TABLE)
def test_what_is_wrong_is_named_with_its_value(
    given: Given, call: Callable[[Given], object], option: str, value: str
) -> None:
    with pytest.raises(UserError) as error:
        call(given)
    message = str(error.value)
    assert option in message and value in message and "\n" not in message
