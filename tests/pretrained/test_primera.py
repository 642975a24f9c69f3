"""PRIMERA is a LED with a token behind each of several documents, which sees all and is seen by all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from refusals import refused
from small_pretrained import given_to, model_of, save, token_ids
from small_tokenizers import bart
from texts_in_languages import PAPERS

from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.select_sentences import SelectSentences
from pyramidions.documents.as_one import as_one
from pyramidions.extract import HipoRank
from pyramidions.inference import Summarizer
from pyramidions.inference.document_losses import FolderLosses, token_losses
from pyramidions.plugin.tasks.datasets import HeadDataset
from pyramidions.plugin.tasks.preprocessing import PieceCodec, Preprocessing, Setting
from pyramidions.plugin.tasks.splits import load_split
from pyramidions.pretrained.exporting import export_model
from pyramidions.pretrained.importing import import_model
from pyramidions.pretrained.model_card import model_card
from pyramidions.pretrained.saved_model import load_model
from pyramidions.scoring.examples import FolderDocuments
from pyramidions.text.several_documents import documents_of
from pyramidions.text.tokenizer import BOS, EOS, PAD

SEPARATOR = "<doc-sep>"
BETWEEN = "\n\x1e\n"
ONE, TWO = "The quick brown fox jumps over the lazy dog.", "Bees fly fast over 1,024 roses. " * 20
#: texts whose separator stands behind each
TEXTS = [(ONE,), (TWO,), (ONE, TWO), (TWO, ONE, TWO), ("Ants walk.", ONE, "Ants walk.")]


@pytest.fixture(scope="module")
def primera(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    theirs = model_of("led", vocab_size=341)
    folder = save(theirs, tmp_path_factory.mktemp("primera"))
    (folder / "added_tokens.json").write_text(json.dumps({SEPARATOR: 340}))
    return theirs, folder


@pytest.fixture(scope="module")
def summarizer(primera: tuple[Any, Path]) -> Summarizer:
    return Summarizer(import_model(primera[1]).model)


def together(*texts: str) -> str:
    return as_one({f"{number}.txt": text for number, text in enumerate(texts, 1)})


def test_separators_are_global_as_in_the_library_transformers(primera: tuple[Any, Path]) -> None:
    theirs, folder = primera
    found = import_model(folder).model
    ours, separator = found.transformer, 340
    source = token_ids(found.tokenizer, 40, 17)
    source[source == separator] = 5
    source[0, [12, 30]] = source[1, 16] = separator
    given = given_to(theirs, source)
    assert int(given["global_attention_mask"].sum()) == 2
    given["global_attention_mask"] |= source.eq(separator)
    with torch.no_grad():
        expected = theirs.get_encoder()(**given).last_hidden_state
        read = ours.encoder(source, source.eq(PAD)).sequence.x
    for mine, their, length in zip(read, expected, (40, 17), strict=True):
        torch.testing.assert_close(mine[:length], their[:length], rtol=0, atol=1e-5)


def test_a_tokenizer_json_names_the_separator_too(primera: tuple[Any, Path], tmp_path: Path) -> None:
    theirs, _ = primera
    folder = save(theirs, tmp_path)
    tokenizer = bart()
    tokenizer.add_special_tokens([SEPARATOR])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert import_model(folder).model.config.global_markers
    (folder / "tokenizer.json").unlink()
    assert not import_model(folder).model.config.global_markers


def test_each_document_gets_an_equal_share_and_a_separator_behind_it(summarizer: Summarizer) -> None:
    tokenizer = summarizer.model.tokenizer
    separator = tokenizer.document_separator_id
    read = summarizer.reader.head(together(ONE, TWO, ONE), "it")
    ids = tokenizer.framed(tokenizer.ids_of(read.tokens))
    # 64 positions, <s> and </s> apart, are 20 for each of the three.
    one, two = tokenizer.encode(ONE)[:19], tokenizer.encode(TWO)[:19]
    assert ids == [BOS, *one, separator, *two, separator, *one, separator, EOS]
    assert read.read == len(ids) < read.whole


def test_a_text_that_spells_the_separator_does_not_mean_it(summarizer: Summarizer) -> None:
    read = summarizer.reader.head(f"One {SEPARATOR} two.", "it")
    ids = summarizer.model.tokenizer.ids_of(read.tokens)
    assert ids.count(summarizer.model.tokenizer.document_separator_id) == 1
    assert read.tokens[-1] is summarizer.model.tokenizer.document_separator


def test_more_documents_than_the_model_can_read_are_refused(summarizer: Summarizer) -> None:
    summarizer.reader.head(together(*[ONE] * 31), "it")
    with refused("at most 31 documents"):
        summarizer.reader.head(together(*[ONE] * 32), "it")
    # Those of which sentences are selected, too.
    (found,) = summarizer.summarize([together(*[TWO] * 31)], long="extract", beam=1, min_len=3, max_len=3)
    assert (found.read_tokens, found.to_dict()["documents"], found.to_dict()["selected_by"]) == (64, 31, "biomedical")
    (alone,) = summarizer.summarize([TWO], beam=1, min_len=3, max_len=3)
    assert "documents" not in alone.to_dict()


def test_a_document_without_a_chosen_sentence_is_read_from_its_beginning(summarizer: Summarizer) -> None:
    reader = summarizer.long_reader("extract")
    (part,) = reader.parts(together(TWO, "x y z"), "it")
    tokenizer = summarizer.model.tokenizer
    assert tokenizer.decode(tokenizer.ids_of(part.tokenized.tokens)).endswith("x y z")
    assert part.coverage.documents == 2


def test_the_language_is_that_of_most_documents(summarizer: Summarizer) -> None:
    german, reader = PAPERS["de"].text, summarizer.long_reader("extract")
    for texts in ((german, german, TWO), (TWO, german, german)):
        (part,) = reader.parts(together(*texts), "it")
        assert part.coverage.language == "de"


@pytest.mark.parametrize("long", ["truncate", "chunk"])
def test_the_parts_of_documents_have_texts_without_their_names(summarizer: Summarizer, long: Any) -> None:
    for texts in ((ONE,), (ONE, "Ants walk.")):
        parts = list(summarizer.long_reader(long).parts(together(*texts), "it"))
        assert "\n\n".join(part.text or "" for part in parts) == "\n\n".join(texts)
        # Each document ends with its separator, in pieces, too.
        assert all(part.tokenized.tokens[-1] is summarizer.model.tokenizer.document_separator for part in parts)


@pytest.fixture(scope="module")
def prepared(primera: tuple[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    folder = tmp_path_factory.mktemp("prepared")
    documents = folder / "train.jsonl"
    with documents.open("w") as file:
        for number, texts in enumerate(TEXTS):
            file.write(json.dumps({"article": BETWEEN.join(texts), "abstract": "Bees.", "id": str(number)}) + "\n")
    tokenizer = import_model(primera[1]).model.tokenizer
    prepare(folder / "data", {"train": Corpus(str(documents))}, tokenizer=tokenizer)
    return DataFolder(folder / "data")


def test_training_reads_what_summarize_reads(summarizer: Summarizer, prepared: DataFolder) -> None:
    tokenizer, task = summarizer.model.tokenizer, "long_document_summarization"
    lengths = {"max_source_positions": Setting(64, 64), "max_target_positions": Setting(40, 40)}
    split = load_split(Preprocessing(prepared, task, lengths), "train", check_hashes=True, warn=True)
    for index, texts in enumerate(TEXTS):
        row = split[index]["source"].tolist()
        assert row.count(tokenizer.document_separator_id) == len(texts)
        read = summarizer.reader.head(BETWEEN.join(texts), "it")
        assert row == tokenizer.framed(tokenizer.ids_of(read.tokens)) and len(row) <= 64
        assert summarizer.model.source_ids(BETWEEN.join(texts)) == row
    assert split.src.report.startswith("at least 3 of 5 cut at 64 tokens")
    assert FolderDocuments(prepared, "train")[4] == f"Ants walk. {ONE} Ants walk."
    # What is typed is one document.
    assert PieceCodec(tokenizer).encode(ONE).split() == [*tokenizer.encode_as_pieces(ONE), SEPARATOR]


def test_losses_are_those_of_what_training_reads(summarizer: Summarizer, prepared: DataFolder) -> None:
    losses = list(FolderLosses(summarizer.model, prepared, "train", 5, "cpu"))
    for index in (0, 3):
        text = BETWEEN.join(TEXTS[index])
        expected = token_losses(summarizer.model, Document("", text, "Bees.")).mean()
        assert losses[index].own == pytest.approx(float(expected), rel=1e-4)


def test_documents_share_what_stands_behind_a_query(summarizer: Summarizer) -> None:
    tokenizer = summarizer.model.tokenizer
    asked, ids = tokenizer.asked("Which bees?"), tokenizer.encode_documents(f"{TWO}{BETWEEN}{TWO}")
    text = torch.tensor([*asked, *ids, EOS])
    row = HeadDataset([text], np.array([len(text)]), 64, EOS, tokenizer.prefix, tokenizer.head)[0].tolist()
    share = (64 - 2 - len(asked)) // 2
    document = [*tokenizer.encode(TWO)[: share - 1], tokenizer.document_separator_id]
    assert row == [*tokenizer.prefix, *asked, *document, *document, EOS]


def test_without_room_for_two_tokens_of_each_document_the_beginning_is_kept(summarizer: Summarizer) -> None:
    tokenizer = summarizer.model.tokenizer
    ids = tokenizer.encode_documents(BETWEEN.join("abc"))
    assert tokenizer.head(ids, 6) == ids[:6] and tokenizer.head(ids, 5) == ids[:5]
    assert tokenizer.head(ids, 0) == tokenizer.head(ids, -2) == []


def test_sentences_are_selected_of_each_document(summarizer: Summarizer) -> None:
    tokenizer = summarizer.model.tokenizer
    long = "Bees fly fast. The quick brown fox jumps. " * 20
    made = SelectSentences(HipoRank, 64, {})(Document("", f"{long}{BETWEEN}{long}{BETWEEN}x y z", "Bees."), tokenizer)
    (document,) = made.documents
    first, second, third = document.source.split(BETWEEN)
    assert first == second and first in long and third == "x y z" and not made.is_whole
    # 62 tokens are 20 for each, the separator's among them.
    assert 0 < len(tokenizer.encode(first)) <= 19


def test_separators_of_documents_are_no_markers_of_sentences(primera: tuple[Any, Path]) -> None:
    with refused("pooling"):
        import_model(primera[1], changes={"pooling": "markers", "pooling_lengths": "None,16"})
    # Nor must they be global.
    plain = import_model(primera[1], changes={"global_markers": False}).model
    assert Summarizer(plain).reader.head(ONE, "it").tokens[-1] is plain.tokenizer.document_separator


def test_added_pieces_may_be_words_and_must_follow_the_others(primera: tuple[Any, Path], tmp_path: Path) -> None:
    folder = save(primera[0], tmp_path)
    (folder / "added_tokens.json").write_text(json.dumps({"covid": 340}))
    tokenizer = import_model(folder).model.tokenizer
    assert tokenizer.decode([340]).strip() == "covid" and tokenizer.document_separator is None
    for added in ({SEPARATOR: 339}, {SEPARATOR: True}, [SEPARATOR]):
        (folder / "added_tokens.json").write_text(json.dumps(added))
        with refused("added_tokens"):
            import_model(folder)


def test_an_export_for_transformers_keeps_the_separator_and_its_card_says_that_it_is_global(
    primera: tuple[Any, Path], tmp_path: Path
) -> None:
    model = import_model(primera[1]).model
    export_model(model, tmp_path / "export", "a card")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "export")
    ids = tokenizer(f"One.{SEPARATOR} Two.{SEPARATOR}")["input_ids"]
    assert ids.count(tokenizer.convert_tokens_to_ids(SEPARATOR)) == 2
    assert load_model(tmp_path / "export").config == model.config
    card = model_card(model, "my-model", for_transformers=True)
    marked = f'inputs["input_ids"] == tokenizer.convert_tokens_to_ids("{SEPARATOR}")'
    assert f'\ninputs["global_attention_mask"] |= {marked}\n```\n' in card


def test_documents_of_one_are_those_it_was_made_of() -> None:
    assert documents_of(together("# Bees\n\nThey fly.", "No heading.")) == ["Bees\n\nThey fly.\n\n", "No heading.\n\n"]
    assert documents_of("# Bees\n\nThey fly.") == ["# Bees\n\nThey fly."]
    assert documents_of("\n\x1e\nBees fly.\n\x1e\n\n\x1e\nCats\nsleep.") == ["Bees fly.", "Cats\nsleep."]
    # Some fonts have a ligature there.
    assert documents_of("e\x1ecient") == ["e\x1ecient"] and documents_of("\n\x1e\n") == ["\n\x1e\n"]
