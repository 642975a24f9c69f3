"""Texts have the same ids under transformers as without."""

import json
from pathlib import Path
from typing import Any

import pytest
from kinds_of_summarizers import TEXTS, model_of
from refusals import refused
from small_tokenizers import SENTENCES

from pyramidions import SavedModel
from pyramidions.hf import PyramidionsTokenizer
from pyramidions.inference.reader import Reader

# Without markers, with markers, byte-level, and with a prefix.
MODELS = [
    {"kind": "vanilla"},
    {"kind": "pooled"},
    {"kind": "vanilla", "byte_level": True},
    {"kind": "vanilla", "prefix": "summarize:"},
    {"kind": "vanilla", "prefix": "summarize:", "byte_level": True},
]


def our_ids(saved: SavedModel, text: str, query: str | None = None, most: int = 64) -> list[int]:
    reader = Reader(saved.tokenizer, most, saved.queries, saved.source_prefix).asking(query)
    document = reader.head(text, "the text")
    return saved.tokenizer.framed(saved.tokenizer.ids_of(document.tokens), document.query)


@pytest.mark.parametrize("which", MODELS)
def test_texts_have_the_ids_that_our_summarizer_reads_and_are_decoded_as_ours(which: dict[str, object]) -> None:
    saved = model_of(**which)  # type: ignore[arg-type]
    tokenizer = PyramidionsTokenizer.from_saved(saved)
    for text in (*SENTENCES[:6], "Two sentences. And </s> with <pad>.", "Ünknown ☃ 字"):
        assert tokenizer(text, truncation=True)["input_ids"] == our_ids(saved, text)
    long = " ".join(SENTENCES)
    assert tokenizer(long, truncation=True)["input_ids"] == our_ids(saved, long)
    assert tokenizer(long, truncation=True, max_length=20)["input_ids"] == our_ids(saved, long, most=20)
    ids = [2, *saved.tokenizer.framed(saved.tokenizer.encode("Bees fly fast. A dog jumps.")), 1, 1]
    assert (
        tokenizer.decode(ids, skip_special_tokens=True) == saved.tokenizer.decode(ids) == "Bees fly fast. A dog jumps."
    )
    whole = tokenizer.decode(ids)
    assert whole.startswith("</s>") and whole.endswith("</s><pad><pad>")
    assert tokenizer.decode(5) == saved.tokenizer.decode([5])
    assert tokenizer.convert_tokens_to_ids(tokenizer.convert_ids_to_tokens(ids)) == ids
    assert len(tokenizer) == tokenizer.vocab_size == saved.tokenizer.vocab_size


def test_a_batch_is_padded_on_the_right() -> None:
    tokenizer = PyramidionsTokenizer.from_saved(model_of("vanilla"))
    batch = tokenizer(TEXTS, padding=True)
    lengths = [len(tokenizer(text)["input_ids"]) for text in TEXTS]
    for ids, mask, length in zip(batch["input_ids"], batch["attention_mask"], lengths, strict=True):
        assert len(ids) == max(lengths) and set(ids[length:]) <= {1}
        assert mask == [1] * length + [0] * (max(lengths) - length)
    assert sorted(batch) == ["attention_mask", "input_ids"]


def test_a_summary_has_no_source_prefix_and_its_own_greatest_length() -> None:
    saved = model_of("vanilla", prefix="summarize:", byte_level=True)
    tokenizer = PyramidionsTokenizer.from_saved(saved)
    text = " ".join(SENTENCES[:6])
    pair = tokenizer(text, text_target=text, truncation=True)
    assert (len(pair["input_ids"]), len(pair["labels"])) == (64, 24)
    assert pair["labels"] == [0, *saved.tokenizer.encode(text)[:22], 2]
    assert tokenizer(text, truncation=True)["input_ids"] == pair["input_ids"]
    assert tokenizer(text_target="a bee")["input_ids"] == saved.tokenizer.framed(saved.tokenizer.encode("a bee"))


@pytest.mark.parametrize("kind", ["vanilla", "pooled"])
def test_a_query_stands_before_its_document(kind: str) -> None:
    saved = model_of(kind, queries=True, prefix="answer:")
    tokenizer = PyramidionsTokenizer.from_saved(saved)
    long = " ".join(SENTENCES)
    for text in (TEXTS[0], long):
        for query in ("What flies? Who?", "What is ☃? Or </s>?", "☃"):
            found = tokenizer(query, text, truncation="only_second")["input_ids"]
            assert found == our_ids(saved, text, query)
    with refused("text_pair"):
        tokenizer(TEXTS[0])
    with refused("text_pair"):
        PyramidionsTokenizer.from_saved(model_of(kind))("What flies?", TEXTS[0])


@pytest.mark.parametrize("byte_level", [False, True])
def test_a_tokenizer_is_saved_and_read_again(byte_level: bool, tmp_path: Path) -> None:
    tokenizer: Any = PyramidionsTokenizer.from_saved(model_of("vanilla", byte_level, queries=True, prefix="answer:"))
    tokenizer.save_pretrained(tmp_path)
    again, text = PyramidionsTokenizer.from_pretrained(tmp_path), " ".join(SENTENCES)
    assert again("What?", text, truncation=True) == tokenizer("What?", text, truncation=True)
    assert again(text_target=text, truncation=True) == tokenizer(text_target=text, truncation=True)
    assert (again.source_prefix, again.queries, again.model_max_length) == ("answer:", True, 64)
    # What is saved with a model says the same.
    for name, value in (("source_prefix", "summarize:"), ("queries", False)):
        with pytest.raises(AttributeError):
            setattr(tokenizer, name, value)
        with refused(name):
            PyramidionsTokenizer.from_pretrained(tmp_path, **{name: value})


def test_the_vocabulary_stays_as_it_is(tmp_path: Path) -> None:
    tokenizer = PyramidionsTokenizer.from_saved(model_of("vanilla"))
    assert tokenizer.add_tokens(["<pad>"]) == 0
    with refused("<new>"):
        tokenizer.add_tokens(["<new>"])
    with refused("eos_token"):
        PyramidionsTokenizer(tokenizer=model_of("vanilla").tokenizer, eos_token="<end>")
    with refused("sentencepiece.model"):
        PyramidionsTokenizer.from_pretrained(tmp_path)
    mask = tokenizer("bees", return_special_tokens_mask=True)["special_tokens_mask"]
    assert mask == [0] * (len(mask) - 1) + [1]
    # What is unknown is text all the same.
    unknown = tokenizer("☃", return_special_tokens_mask=True)
    assert 3 in unknown["input_ids"] and unknown["special_tokens_mask"] == [0] * (len(unknown["input_ids"]) - 1) + [1]


def test_no_setting_turns_text_into_special_pieces(tmp_path: Path) -> None:
    saved = model_of("vanilla")
    PyramidionsTokenizer.from_saved(saved).save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "split_special_tokens": False}))
    tokenizer, text = PyramidionsTokenizer.from_pretrained(tmp_path), "a <pad> and </s>"
    ids = our_ids(saved, text)
    assert 1 not in ids and ids.count(2) == 1
    assert tokenizer(text)["input_ids"] == tokenizer(text, split_special_tokens=False)["input_ids"] == ids


@pytest.mark.parametrize(
    "fields",
    [
        *({"source_prefix": 5}, {"queries": "no"}, {"max_target_positions": 1}, {"padding_side": "above"}),
        {"extra_special_tokens": ["<new>"]},
    ],
    ids=str,
)
def test_damaged_settings_are_told_with_their_values(fields: dict[str, Any], tmp_path: Path) -> None:
    PyramidionsTokenizer.from_saved(model_of("vanilla")).save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    ((name, value),) = fields.items()
    with refused(name if name != "extra_special_tokens" else "'<new>'") as error:
        PyramidionsTokenizer.from_pretrained(tmp_path)
    assert repr(value).strip("[]") in str(error.value)
