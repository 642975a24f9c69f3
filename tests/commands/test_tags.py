"""Parts of speech and entities of words: prepared, trained with, generated from, and refused where texts have none."""

import json
import re
from pathlib import Path

import invoking
import numpy as np
import pytest
import spacy
import torch
from fairseq_commands import TASK, finish, run

from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.models import build, preset
from pyramidions.nn import embedding as embeddings
from pyramidions.text.word_tags import ENTITY_NAMES, NUM_TAGS, PART_NAMES

TURNS = "Ann: Bees fly over London.\nBob: Who reads 1 paper?\n"
EXPECTED = {"Bees": "NOUN", "fly": "VERB", "London": "PROPN", "Bob": "PROPN", "paper": "NOUN"}
PLACES = {"London": "GPE", "Bob": "ROLE"}


def tag(word: str) -> int:
    part, entity = EXPECTED.get(word), PLACES.get(word)
    of_entity = 0 if entity is None else 1 + (*ENTITY_NAMES[:-1], "ROLE").index(entity)
    return (0 if part is None else 1 + PART_NAMES.index(part)) * (1 + len(ENTITY_NAMES)) + of_entity


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("attribute_ruler")
    for word, part in EXPECTED.items():
        ruler.add([[{"ORTH": word}]], {"POS": part})
    nlp.add_pipe("entity_ruler").add_patterns([{"label": label, "pattern": word} for word, label in PLACES.items()])
    path = tmp_path_factory.mktemp("spacy") / "rules"
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def prepared(pipeline: Path, tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    root = tmp_path_factory.mktemp("meetings")
    for split in ("train", "valid", "test"):
        records = [{"article": TURNS * (1 + number), "abstract": "Bees fly."} for number in range(2)]
        (root / f"{split}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    options = ["--turn-markers", "--vocab-size", 33, "--tags", pipeline, "--workers", 1]
    invoking.succeed("prepare", root, "--out", root / "data", *options)
    return DataFolder(root / "data")


def test_each_token_has_the_tag_of_its_word(prepared: DataFolder) -> None:
    tokenizer = prepared.tokenizer()
    found = np.array(IndexedReader(prepared.indexed("test", "source"))[0])
    ids, tags = found % tokenizer.vocab_size, found // tokenizer.vocab_size
    assert ids.tolist()[:-1] == tokenizer.encode(TURNS) and tags[-1] == 0
    word, words = "", []
    for text, number in zip(tokenizer.spellings(ids.tolist()), tags.tolist(), strict=True):
        word = text.strip() if text.startswith(" ") or not text else word + text
        words.append((word, number))
    for name in EXPECTED:
        assert (name, tag(name)) in [(re.sub(r"\W", "", each), number) for each, number in words]
    assert 0 < max(tags) < NUM_TAGS
    assert prepared.manifest["settings"]["tags"] == {"lang": "en", "name": "pipeline", "version": "0.0.0"}


def test_inventories_are_those_that_embeddings_have() -> None:
    assert (1 + len(PART_NAMES), 1 + len(ENTITY_NAMES)) == (embeddings.PARTS_OF_SPEECH, embeddings.ENTITIES)


def test_training_begins_as_without_tags_and_tags_then_change_the_output() -> None:
    tiny = {"embed_dim": 8, "num_heads": 2, "ffn_embed_dim": 8, "max_source_positions": 16, "dropout": 0.0}
    torch.manual_seed(0)
    model = build(preset("vanilla", **tiny, tag_dim=4), 20).eval()
    tokens, tags = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[30, 0, 25, 0]])
    core, mask = model.encoder, torch.zeros(1, 4, dtype=torch.bool)
    plain, tagged = (core(ids, mask).sequence.x for ids in (tokens, tokens + 20 * tags))
    torch.testing.assert_close(plain, tagged)
    with torch.no_grad():
        core.embedder.tags.joined.weight[:, 8:] = 1.0
    plain, tagged = (core(ids, mask).sequence.x for ids in (tokens, tokens + 20 * tags))
    assert not torch.allclose(plain, tagged)


def test_a_model_with_tags_trains_generates_and_refuses_texts(prepared: DataFolder, tmp_path: Path) -> None:
    shape = ["--embed-dim", "8", "--ffn-embed-dim", "8", "--num-heads", "2", "--max-source-positions", "64"]
    shape += ["--encoder-layers", "2", "--decoder-layers", "1", "--self-attention", "segments | full"]
    shape += ["--pooling-lengths", "8,None", "--memories", "1,last", "--arch", "hmnet"]
    command = ["fairseq-train", prepared.path, *TASK, *shape, "--optimizer", "adam", "--max-update", "2", "--cpu"]
    command += ["--batch-size", "2", "--save-dir", tmp_path, "--criterion", "pooled_cross_entropy"]
    refused = run(*command)
    assert refused.returncode != 0 and "have tags, so the model needs --tag-dim, such as 16" in refused.stdout
    finish(*command, "--tag-dim", "4")
    best = tmp_path / "checkpoint_last.pt"
    limits = ["--gen-subset", "test", "--max-len-b", "4", "--min-len", "1"]
    generated = finish("fairseq-generate", prepared.path, *TASK, "--path", best, *limits)
    assert "S-0\tAnn: Bees fly over London. Bob: Who reads 1 paper?\n" in generated
    (tmp_path / "text.txt").write_text(TURNS)
    done = run("fairseq-interactive", tmp_path, *TASK, "--path", best, "--input", tmp_path / "text.txt")
    refused_text = invoking.run("summarize", best, tmp_path / "text.txt")
    assert done.returncode != 0 != refused_text.exit_code
    for said in (done.stdout, refused_text.output):
        assert "The model reads tags of words, which texts lack" in said
