"""Models learn under transformers: by its trainers, and by adapters of peft."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from kinds_of_summarizers import TEXTS, model_of
from torch import Tensor
from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

from pyramidions import Summarizer, export_model
from pyramidions.hf import PyramidionsForConditionalGeneration as Model
from pyramidions.hf import PyramidionsTokenizer

PAGE = Path(__file__).parents[2] / "docs" / "transformers.md"
SUMMARIES = ["bees fly", "a fox jumps", "the dog"]


def new(kind: str) -> tuple[Any, PyramidionsTokenizer]:
    """Return a model whose weights no other test shares, and its tokenizer."""
    saved = model_of(kind)
    model = Model(Model.from_saved(saved).config)
    model.load_state_dict(saved.transformer.state_dict())
    return model, PyramidionsTokenizer.from_saved(saved)


def test_a_trainer_teaches_a_model_and_scores_what_it_writes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("accelerate")
    torch.manual_seed(0)
    saved = model_of("pooled pointer")
    model, tokenizer = Model(Model.from_saved(saved).config), PyramidionsTokenizer.from_saved(saved)
    pairs = [tokenizer(text, text_target=summary) for text, summary in zip(TEXTS, SUMMARIES, strict=True)]
    written: list[str] = []

    def lengths(predicted: Any) -> dict[str, float]:
        ids = [[token for token in row if token != -100] for row in predicted.predictions]
        written[:] = tokenizer.batch_decode(ids, skip_special_tokens=True)
        return {"letters": sum(map(len, written))}

    arguments = Seq2SeqTrainingArguments(
        output_dir=str(tmp_path / "run"),
        max_steps=8,
        learning_rate=0.01,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        label_smoothing_factor=0.1,
        predict_with_generate=True,
        generation_num_beams=1,
        save_strategy="steps",
        save_steps=4,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    model.generation_config.min_length, model.generation_config.max_length = 5, 12
    collator = DataCollatorForSeq2Seq(tokenizer, model)
    trainer = Seq2SeqTrainer(model, arguments, collator, pairs, pairs, tokenizer, compute_metrics=lengths)
    before, _, after = trainer.evaluate(), trainer.train(), trainer.evaluate()
    assert after["eval_loss"] < 0.9 * before["eval_loss"]
    assert after["eval_letters"] == sum(map(len, written)) > 0
    # A run that broke off goes on.
    arguments.max_steps = 9
    Seq2SeqTrainer(model, arguments, collator, pairs, None, tokenizer).train(resume_from_checkpoint=True)
    assert "missing keys" not in caplog.text
    trainer.predict(pairs)
    # What it saves is a model of ours.
    trainer.save_model(str(tmp_path / "model"))
    found = Summarizer.from_pretrained(tmp_path / "model", "cpu").summarize(TEXTS, beam=1, min_len=4, max_len=10)
    assert [summary.text for summary in found] == written


def step(model: Any, batch: dict[str, Tensor]) -> None:
    model.train()(**batch).loss.backward()
    torch.optim.SGD([weight for weight in model.parameters() if weight.requires_grad], 0.5).step()
    model.eval()


@pytest.mark.parametrize("kind", ["pooled pointer", "buckets", "two memories"])
def test_adapters_of_queries_and_values_learn_alone_and_are_merged(kind: str) -> None:
    peft = pytest.importorskip("peft")
    model, tokenizer = new(kind)
    batch = dict(tokenizer(TEXTS, text_target=SUMMARIES, padding=True, return_tensors="pt"))
    before = model.eval()(**batch).logits
    kept = {name: weight.clone() for name, weight in model.state_dict().items()}
    config = peft.LoraConfig(task_type="SEQ_2_SEQ_LM", r=2, target_modules=["q_proj", "v_proj"])
    adapted = peft.get_peft_model(model, config)
    learning = [name for name, weight in adapted.named_parameters() if weight.requires_grad]
    assert learning and all("lora_" in name for name in learning)
    torch.testing.assert_close(adapted.eval()(**batch).logits, before)
    step(adapted, batch)
    step(adapted, batch)
    assert all(weight.grad is not None for weight in adapted.parameters() if weight.requires_grad)
    after = adapted(**batch).logits
    assert not torch.allclose(after, before, atol=1e-3)
    torch.manual_seed(0)
    written = adapted.generate(input_ids=batch["input_ids"], num_beams=2, min_length=2, max_length=9)
    merged = adapted.merge_and_unload()
    # What adapters add, as weights: no part reads a layer past its adapter.
    torch.testing.assert_close(merged(**batch).logits, after, atol=2e-3, rtol=2e-3)
    assert merged.generate(batch["input_ids"], num_beams=2, min_length=2, max_length=9).tolist() == written.tolist()
    moved = {name for name, weight in merged.state_dict().items() if not weight.equal(kept[name])}
    assert moved == {name for name in kept if name.endswith(("q_proj.weight", "v_proj.weight"))}


def test_the_page_about_transformers_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("accelerate", "peft"):
        pytest.importorskip(library)
    for name in ("my-summarizer", "checkpoints"):
        export_model(model_of("pooled"), tmp_path / name, "# A model\n")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    script = "\n".join(blocks).replace("max_steps=100", "max_steps=2, disable_tqdm=True, use_cpu=True")
    (tmp_path / "page.py").write_text(f"{script}\nscores = rouge(trainer.predict(pairs))\n")
    said = runpy.run_path(str(tmp_path / "page.py"))
    assert 0 <= said["scores"]["rouge2"] <= 1
    # Of the adapted model, which the page saves last.
    assert Summarizer.from_pretrained("tuned", "cpu").summarize(TEXTS[:1], beam=1, min_len=0, max_len=4)
