"""BERTScore, MoverScore and BARTScore equal their packages where these are installed.

They are no dependency: `pip install --target FOLDER --no-deps bert-score==0.3.13 moverscore==1.0.3 pyemd`, and FOLDER
on PYTHONPATH. Neither runs as it is. bert-score overflows on a tokenizer without a length, and transformers 5 ignores
the space that it asks for in front of a text of RoBERTa: its tokenizer is made here. moverscore puts a model onto a GPU
when it is imported, by names that libraries no longer have; these names are stand-ins here, and its sums are its own.
BARTScore is no package: bart_score.py of github.com/neulab/BARTScore in FOLDER will do.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from small_encoders import save_bert, save_encoder_decoder, save_roberta, transformers
from small_tokenizers import SENTENCES

from pyramidions.scoring import METRICS, Example

SUMMARIES = [
    "The quick fox reads documents.",
    "Summaries of long documents: a naïve fox, isn't it?",
    "Bees pool models",
    "The models of the corpus were trained by the lazy dog.",
    *SENTENCES[:3],
]
REFERENCES = [*SENTENCES[:6], " ".join(SENTENCES[2:4])]
LAYER = 2
STOP_WORDS = ["the", "of", "that"]


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(ours / 100, theirs, atol=1e-4)


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("save", [save_bert, save_roberta])
def test_bertscore_equals_bert_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Any, idf: bool) -> None:
    bert_score = pytest.importorskip("bert_score", reason="the package bert-score is not installed")
    folder = str(save(tmp_path / "model", length=40))

    def tokenizer(name: str, use_fast: bool = False) -> Any:
        return transformers.AutoTokenizer.from_pretrained(name, add_prefix_space=True, model_max_length=40)

    monkeypatch.setattr(sys.modules["bert_score.score"], "get_tokenizer", tokenizer)
    groups = [[reference, SENTENCES[n % 6]] for n, reference in enumerate(REFERENCES)]
    theirs = bert_score.score(SUMMARIES, groups, model_type=folder, num_layers=LAYER, idf=idf, nthreads=0)
    metric = METRICS.build("bertscore", {}, embedding_model=folder, embedding_layer=LAYER, bertscore_idf=idf)
    examples = [Example(summary, tuple(group)) for summary, group in zip(SUMMARIES, groups, strict=True)]
    metric.fit(examples)
    close(metric.score(examples), torch.stack(theirs, dim=-1).numpy())


def test_bartscore_equals_the_authors_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = pytest.importorskip("bart_score", reason="bart_score.py is not on PYTHONPATH")
    folder = save_encoder_decoder(tmp_path)
    # It reads vocab.json and merges.txt, which the small tokenizer does not have.
    monkeypatch.setattr(program, "BartTokenizer", transformers.AutoTokenizer)
    scorer = program.BARTScorer(device="cpu", checkpoint=folder, max_length=64)
    summaries, references = [*SUMMARIES, "", "bees " * 60], [*REFERENCES, *SENTENCES[:2]]
    groups = [[reference, SENTENCES[n % 6]] for n, reference in enumerate(references)]
    precision = [np.mean(scorer.score(group, [text] * 2)) for text, group in zip(summaries, groups, strict=True)]
    recall = scorer.multi_ref_score(summaries, groups)
    metric = METRICS.build("bartscore", {}, bartscore_model=folder)
    examples = [Example(summary, tuple(group)) for summary, group in zip(summaries, groups, strict=True)]
    close(100 * metric.score(examples)[:, :2], np.stack([precision, recall], axis=1))


class Runs:
    """Is called as the model of moverscore is: returns the hidden states of all layers, twice."""

    def __init__(self, model: Any, repeats: int) -> None:
        self._model = model
        self._repeats = repeats

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def __call__(self, ids: Any = None, _: Any = None, *, attention_mask: Any, input_ids: Any = None, **__: Any) -> Any:
        found = self._model(input_ids=ids if ids is not None else input_ids, attention_mask=attention_mask)[0]
        states = (found,) * self._repeats
        return (states, None) if ids is not None else (None, states, None)


def package(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of moverscore with a model of ours on the CPU."""
    found = importlib.util.find_spec(name)
    if found is None:
        pytest.skip("the package moverscore is not installed")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.max_len = 40
    model = transformers.AutoModel.from_pretrained(folder, num_hidden_layers=LAYER).eval()
    # The older module reads five layers; five times the same one is the same as one.
    runs = Runs(model, 5 if name == "moverscore" else 1)
    stand_in = SimpleNamespace(from_pretrained=lambda *_, **__: runs)
    tokenizers = SimpleNamespace(from_pretrained=lambda *_, **__: tokenizer)
    names = {"DistilBertConfig": stand_in, "DistilBertTokenizer": tokenizers, "DistilBertModel": stand_in}
    fake, older, modeling, requests = map(
        ModuleType, ("transformers", "pytorch_pretrained_bert", "modeling", "requests")
    )
    vars(fake).update(names)
    base = type("Base", (), {"from_pretrained": classmethod(lambda *_: runs)})
    vars(older).update({"BertTokenizer": tokenizers, "BertModel": stand_in})
    vars(modeling)["BertPreTrainedModel"] = base
    for key, module in {
        "transformers": fake,
        "pytorch_pretrained_bert": older,
        "pytorch_pretrained_bert.modeling": modeling,
        "requests": requests,
    }.items():
        monkeypatch.setitem(sys.modules, key, module)
    monkeypatch.setattr(np, "float", float, raising=False)
    # What it would download.
    (folder / "MNLI_BERT.zip").touch()
    monkeypatch.setitem(os.environ, "MOVERSCORE", str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.util.module_from_spec(found)
    assert found.loader is not None
    found.loader.exec_module(module)
    return module


def ours(folder: Path, stop_words: Path) -> np.ndarray:
    metric = METRICS.build(
        "moverscore", {}, embedding_model=str(folder), embedding_layer=LAYER, stop_words=str(stop_words)
    )
    examples = [Example(summary, (reference,)) for summary, reference in zip(SUMMARIES, REFERENCES, strict=True)]
    metric.fit(examples)
    return metric.score(examples)


def theirs(module: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    def idf(texts: list[str]) -> Any:
        class Here:
            def __enter__(self) -> "Here":
                return self

            def __exit__(self, *_: object) -> None: ...

            def map(self, function: Any, items: Any) -> list[Any]:
                return list(map(function, items))

        monkeypatch.setattr(module, "Pool", lambda _: Here())
        return module.get_idf_dict(texts)

    settings = {"stop_words": STOP_WORDS, "n_gram": n, "device": "cpu"}
    found: list[float] = module.word_mover_score(REFERENCES, SUMMARIES, idf(REFERENCES), idf(SUMMARIES), **settings)
    return found


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "words.txt").write_text(" ".join(STOP_WORDS))
    return save_bert(tmp_path / "model", length=40), tmp_path / "words.txt"


def test_mover_1_equals_moverscore_v2(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    found = ours(*files)
    module = package("moverscore_v2", files[0], monkeypatch)
    close(found[:, 0], np.array(theirs(module, 1, monkeypatch)))


def test_mover_2_equals_the_older_module_with_euclidean_distances(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ours(*files)
    module = package("moverscore", files[0], monkeypatch)
    # It squares the distances, unlike the paper and moverscore_v2.
    monkeypatch.setattr(module, "device", "cpu")
    squared = module.pairwise_distances
    monkeypatch.setattr(module, "pairwise_distances", lambda *of: squared(*of).sqrt())
    close(found[:, 1], np.array(theirs(module, 2, monkeypatch)))
