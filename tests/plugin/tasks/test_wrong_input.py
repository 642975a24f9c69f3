"""The sentences that a wrong option, a wrong checkpoint or wrong data ends in."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from small_tokenizers import bart_bytes

from pyramidions.base.errors import UserError
from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.folder import DataFolder
from pyramidions.models import build, preset
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
from pyramidions.plugin.tasks.preprocessing import SOURCE_PREFIX, Length, Preprocessing, Setting
from pyramidions.plugin.tasks.queries import check_query_model
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

    def cut(self, longest: int, source_prefix: str = "", pieces: bytes = b"<mask>") -> object:
        """Read a document with a tokenizer whose texts begin with `<s>`."""
        (self.folder / "tokenizer.json").write_bytes(bart_bytes().replace(b'"<mask>"', b'"' + pieces + b'"'))
        settings = {SOURCE_PREFIX: Setting(source_prefix, "")} if source_prefix else {}
        lengths = {"max_source_positions": Length(longest, None)}
        preprocessing = Preprocessing(DataFolder(self.folder), "a_task", lengths, settings)
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


TABLE: list[tuple[Callable[[Given], object], str]] = [
    # Lengths, the tokenizer, and checkpoints
    (
        lambda g: g.writes(max_source_positions=1),
        "`max_source_positions` must be at least 2, a token and the end of the",
    ),
    (lambda g: g.extracts(extract_words=0), "`extract_words` must be at least 1, one word, but is 0."),
    (lambda g: g.writes(stopping_patience=-1), "--stopping-patience must be at least 0, but is -1."),
    (
        lambda g: g.writes().build_bpe("gpt2"),
        "The tokenizer is the data's or the checkpoint's, but --bpe asks",
    ),
    (lambda g: g.writes().load_state_dict({}), "was not trained with --task long_document_summarization."),
    (lambda g: states(g.extracts(), g.writes().state_dict()), "was not trained with --task extractive_summarization."),
    (
        lambda g: states(g.writes(), {**g.writes().state_dict(), "tokenizer": b"another"}),
        "The checkpoint was trained with another tokenizer than that of the data folder ",
    ),
    (
        lambda g: states(g.writes(), *(g.writes(max_source_positions=n).state_dict() for n in (64, 32))),
        "trained with `max_source_positions` 64 and 32: give the flag --max-source-positions.",
    ),
    (
        lambda g: states(g.extracts(), *(g.extracts(redundancy=each).state_dict() for each in ("none", "mmr"))),
        "trained with `redundancy` none and mmr: give the flag --redundancy.",
    ),
    # Data
    (
        lambda g: g.writes(DataFolder(g.folder)).load_dataset("train"),
        "it lacks sentencepiece.model",
    ),
    (lambda g: g.writes().load_dataset("test2"), "lacks test2.source.bin; its splits are train, valid, test."),
    (lambda g: read(g.writes(), [5, 2], [2]), "Every document must hold text, but number 2 of those just read is"),
    (
        lambda g: batches(g.writes(max_source_positions=64, max_target_positions=16), "test", max_tokens=63),
        "--max-tokens must be at least 64, the tokens of the longest document or summary, but is 63.",
    ),
    (lambda g: g.cut(2), "`max_source_positions` must be at least 3, <s>, a token and the end of the "),
    (lambda g: g.cut(4, "sum: "), ", with the 3 tokens of --source-prefix, a token and the end of the text, but is 4."),
    (lambda g: g.cut(9, pieces=b"<my mask>"), "must name each piece once and without spaces, unlike '<my mask>'."),
    # Queries
    (
        lambda g: g.answers(g.asked, queries=False).load_dataset("train"),
        "have queries, but the model was trained without: prepare them without --query-field.",
    ),
    (
        lambda g: g.answers(g.data, queries=True).load_dataset("valid"),
        "have no queries, but the model was trained with them: prepare them with --query-field.",
    ),
    (
        lambda g: states(t := g.answers(g.asked, queries=True), {**t.state_dict(), "queries": False}),
        "Models that answer queries and models that do not cannot be an ensemble.",
    ),
    (
        lambda g: g.answers(g.asked, queries=True).build_bpe(None).encode("We tested the cells."),
        "each line must hold a query, a tab and a document, but one is 'We tested the cells.'.",
    ),
    (
        lambda g: read(g.answers(g.asked, True, max_source_positions=12), [5, EOS, 9, EOS], [*[5] * 5, EOS, 9, EOS]),
        "The query of document number 2 of those just read has 6 tokens with its end, but must have at most 5, half",
    ),
    (
        lambda g: check_query_model(SimpleNamespace(scorer="linear | query"), g.writes().preprocessing),
        "--scorer query needs documents with queries, but those of ",
    ),
    (
        lambda g: check_query_model(SimpleNamespace(global_query=True), g.writes().preprocessing),
        "--global-query needs documents with queries, but those of ",
    ),
    # Searches
    (lambda g: decoding.from_options({"beams": 4}), "`eval_rouge_args` knows no argument 'beams', only beam, "),
    (
        lambda g: decoding.from_options({"beam": "two"}),
        "'beam' in `eval_rouge_args` must be a whole number",
    ),
    (lambda g: searched(decodes(), beam=0), "--beam must be at least 1, but is 0."),
    (
        lambda g: searched(decodes(), min_len=50),
        "at most 49 tokens, as many as the model may write, but has 50.",
    ),
    (
        lambda g: searched(decodes(), max_len_b=6),
        "at most 6 tokens, as many as the model may write, but has 7.",
    ),
    (lambda g: searched(decodes(), decodes(4)), "The models of the ensemble disagree on --beam (2, 4): give the flag."),
    (lambda g: searched(SimpleNamespace()), "The model holds no decoding settings: give the flag --beam."),
    (
        lambda g: decoding.check_heeded(Namespace(print_alignment="hard"), "a_task"),
        "--print-alignment is not supported by --task a_task.",
    ),
    (
        lambda g: g.extracts().build_generator([], Namespace(lenpen=2.0)),
        "--lenpen 2.0 is an option of beam search, which --task extractive_summarization does not have.",
    ),
    # Extracts
    (lambda g: g.extracts(redundancy="some"), "`redundancy` must be one of none, trigrams, mmr, but is 'some'."),
    (lambda g: g.extracts(mmr_weight=2.0), "`mmr_weight` must be from 0 to 1, but is 2.0."),
    (
        lambda g: g.extracts(redundancy="trigrams", mmr_weight=0.5).build_model(None),
        "--mmr-weight is an option of --redundancy mmr, but --redundancy is trigrams.",
    ),
    (
        lambda g: g._replace(labelled=g.data).extracts().load_dataset("valid"),
        "has no labels of its sentences: make it with `pyramidions prepare --labels`.",
    ),
    # What learns
    (lambda g: tuned(pooling_warmup=-1), "--pooling-warmup must be at least 0, but is -1."),
    (lambda g: tuned(pooling_warmup=9), "--pooling-warmup is 9, but the model has no pooling by a top-k."),
    (lambda g: tuned(freeze="decoder.7"), "--freeze names decoder.7, but the decoder has 2 layers, counted from 0."),
    (lambda g: tuned(scorer_lr_scale=0.0), "--scorer-lr-scale must be positive and finite, but is 0.0."),
    (lambda g: tuned(scorer_lr_scale=10.0), "--scorer-lr-scale is 10.0, but no scorer has weights to train."),
    # Validation
    (lambda g: validated(eval_metrics="rogue"), "but is 'rogue' (did you mean rouge?)."),
    (
        lambda g: validated(eval_metric_args='{"language": "de"}'),
        "--eval-metric-args are options of --eval-metrics",
    ),
    (
        lambda g: validated(eval_metrics="rouge", eval_metric_args='{"lang": "de"}'),
        "`eval_metric_args` knows no option 'lang', only language, ",
    ),
    (
        lambda g: validated(eval_metrics="rouge", eval_metric_args='{"language": 3}'),
        "'language' in `eval_metric_args` must be a text, but is 3.",
    ),
    # Toy sequences
    (lambda g: plays(problem="sorting"), "`problem` must be one of copy, addition, but is 'sorting'."),
    (lambda g: plays(problem="addition", shortest=2), "`shortest` must be at least 3 for addition, but is 2."),
    (lambda g: plays(test_shortest=301), "`test_shortest` must be at most `test_longest`, but is 301, above 300."),
    (lambda g: plays(examples=0), "`examples` must be at least 1, but is 0."),
    (lambda g: plays().load_dataset("dev"), "A split must be one of train, valid, test, but is 'dev'."),
    # Characters
    (lambda g: g.predicts(tokens_per_sample=0), "`tokens_per_sample` must be at least 1, and above --context-window"),
    (
        lambda g: g.predicts(tokens_per_sample=501).load_dataset("train"),
        "`tokens_per_sample` must be at most the 500 characters of train, but is 501.",
    ),
    (
        lambda g: batches(
            g.predicts(tokens_per_sample=16), "test", "eval_lm_dataloader", context_window=48, max_tokens=63
        ),
        "A window of 64 characters must fit --max-tokens, but the most is 63.",
    ),
    (
        lambda g: batches(g.predicts(tokens_per_sample=64), "test", max_positions=32),
        "A window of 64 characters must fit the positions of the model, but the most is 32.",
    ),
    (lambda g: states(g.predicts(), {"characters": "fi"}), "The checkpoint is of the alphabet 'fi', but "),
    (lambda g: g.predicts().build_bpe("gpt2"), "The alphabet is the data's, but --bpe asks for 'gpt2'."),
    (lambda g: g._replace(characters=g.data).predicts(), "holds documents; make one of characters"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "sentence"), TABLE)
def test_what_is_wrong_is_named_in_a_sentence(given: Given, call: Callable[[Given], object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        call(given)
    assert sentence in str(error.value)
