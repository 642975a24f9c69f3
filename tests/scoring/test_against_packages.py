"""BERTScore, MoverScore and BARTScore equal their packages where these are installed.

They are no dependency: `pip install --target FOLDER --no-deps bert-score==0.3.13 moverscore==1.0.3 pyemd`, and FOLDER
on PYTHONPATH. Neither runs as it is. bert-score overflows on a tokenizer without a length, and transformers 5 ignores
the space that it asks for in front of a text of RoBERTa: its tokenizer is made here. moverscore puts a model onto a GPU
when it is imported, by names that libraries no longer have; these names are stand-ins here, and its sums are its own.
BARTScore is no package: bart_score.py of github.com/neulab/BARTScore in FOLDER will do.
"""

import importlib.util
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
    """Is called as the model of moverscore is: returns the hidden states of all layers."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def __call__(self, input_ids: Any, attention_mask: Any, **_: Any) -> Any:
        return None, (self._model(input_ids=input_ids, attention_mask=attention_mask)[0],), None


class Here:
    """A pool of processes that is this one."""

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, function: Any, items: Any) -> list[Any]:
        return list(map(function, items))


def test_mover_1_equals_moverscore_v2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("moverscore_v2")
    if found is None or found.loader is None:
        pytest.skip("the package moverscore is not installed")
    folder = save_bert(tmp_path / "model", length=40)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.max_len = 40
    runs = Runs(transformers.AutoModel.from_pretrained(folder, num_hidden_layers=LAYER).eval())
    model = SimpleNamespace(from_pretrained=lambda *_, **__: runs)
    tokenizers = SimpleNamespace(from_pretrained=lambda *_, **__: tokenizer)
    fake = ModuleType("transformers")
    vars(fake).update(DistilBertConfig=model, DistilBertTokenizer=tokenizers, DistilBertModel=model)
    monkeypatch.setitem(sys.modules, "transformers", fake)
    monkeypatch.setattr(np, "float", float, raising=False)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setattr(module, "Pool", lambda _: Here())
    idf = [module.get_idf_dict(texts) for texts in (REFERENCES, SUMMARIES)]
    theirs = module.word_mover_score(REFERENCES, SUMMARIES, *idf, stop_words=STOP_WORDS, n_gram=1, device="cpu")
    (tmp_path / "words.txt").write_text(" ".join(STOP_WORDS))
    monkeypatch.undo()
    metric = METRICS.build(
        "moverscore",
        {},
        embedding_model=str(folder),
        embedding_layer=LAYER,
        stop_words=str(tmp_path / "words.txt"),
    )
    examples = [Example(summary, (reference,)) for summary, reference in zip(SUMMARIES, REFERENCES, strict=True)]
    metric.fit(examples)
    close(metric.score(examples)[:, 0], np.array(theirs))
