"""Vectors of sentences from a trained encoder."""

from pathlib import Path

import numpy as np
import pytest
import torch
from invoking import run

from pyramidions import Extractor
from pyramidions.inference import Summarizer
from pyramidions.inference.sentence_vectors import EncoderVectors
from pyramidions.text.tokenizer import EOS

SENTENCES = ["Cells grow.", "The cells of a long document grow and grow.", "Cells grow."]


@pytest.fixture(scope="module")
def vectors(checkpoint: Path) -> EncoderVectors:
    return EncoderVectors.from_pretrained(checkpoint, "cpu")


def test_a_row_is_the_mean_of_what_the_encoder_hands_on(vectors: EncoderVectors, checkpoint: Path):
    model = Summarizer.from_pretrained(checkpoint, "cpu").model
    tokens = torch.tensor([[*model.tokenizer.encode(SENTENCES[1]), EOS]])
    with torch.inference_mode():
        mean = model.transformer.encoder(tokens, tokens.eq(1)).sequence.x[0].mean(dim=0)
    np.testing.assert_allclose(vectors(SENTENCES)[1], torch.nn.functional.normalize(mean, dim=0), atol=1e-5)


def test_rows_have_length_1_in_the_order_of_the_sentences_whatever_the_batch(vectors: EncoderVectors):
    rows = vectors(SENTENCES)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    np.testing.assert_allclose(rows[0], rows[2], atol=1e-6)
    vectors._batch_size = 1
    np.testing.assert_allclose(vectors(SENTENCES), rows, atol=1e-5)


def test_hiporank_ranks_by_them(vectors: EncoderVectors, checkpoint: Path):
    text = " ".join(SENTENCES)
    expected = Extractor("hiporank", vectors=vectors).extract(text, sentences=1)
    model = ["--vectors", checkpoint, "--device", "cpu", "--precision", "float32"]
    done = run("extract", *model, "--sentences", 1, text=text)
    assert (done.exit_code, done.stdout) == (0, f"{expected.text}\n")
