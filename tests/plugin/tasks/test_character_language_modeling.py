"""Windows of a stream of characters, and the task that trains on them."""

import math
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models.transformer_lm import TransformerLanguageModel, base_lm_architecture
from fairseq_cli.eval_lm import eval_lm
from noise import add_noise
from omegaconf import OmegaConf
from refusals import refused
from small_language_models import OWN_LAYERS

from pyramidions.data.character_folder import CharacterFolder
from pyramidions.data.characters import CharacterSettings, prepare_characters
from pyramidions.data.text_streams import TextStream
from pyramidions.models import LANGUAGE_MODEL_PRESETS
from pyramidions.plugin.models.pyramidion_lm import PyramidionLanguageModel, PyramidionLanguageModelConfig
from pyramidions.plugin.tasks.character_language_modeling import CharacterLanguageModelingTask
from pyramidions.plugin.tasks.character_windows import CharacterWindows
from pyramidions.plugin.tasks.config import CharacterLanguageModelingConfig

PAD, END, SPACE = 1, 2, 4
STREAM = np.arange(10, 21)


@pytest.fixture
def folder(characters: CharacterFolder) -> CharacterFolder:
    return characters


def task(folder: CharacterFolder, **options: Any) -> CharacterLanguageModelingTask:
    return CharacterLanguageModelingTask(CharacterLanguageModelingConfig(data=str(folder.path), **options))


def rows(windows: CharacterWindows, name: str) -> list[list[int]]:
    return [windows[index][name].tolist() for index in range(len(windows))]


def joined(windows: CharacterWindows, name: str) -> list[int]:
    return [each for row in rows(windows, name) for each in row]


def test_windows_of_a_text_follow_each_other_and_the_last_may_be_shorter() -> None:
    windows = CharacterWindows(STREAM, 4)
    assert rows(windows, "source") == [[END, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19]]
    assert rows(windows, "target") == [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19, 20]]
    windows.set_epoch(2)
    assert rows(windows, "target")[0] == [10, 11, 12, 13]
    assert windows.ordered_indices().tolist() == [0, 1, 2] and windows.sizes.tolist() == [4, 4, 3]


def test_training_rolls_the_stream_in_each_epoch_and_begins_anew_at_its_end() -> None:
    windows = CharacterWindows(STREAM, 4, seed=1)
    rolls = set()
    for epoch in range(1, 99):
        windows.set_epoch(epoch)
        target = joined(windows, "target")
        roll = target[0] - 10
        assert target == np.roll(STREAM, -roll)[:8].tolist()
        expected = [END if character == 10 else character - 1 for character in target]
        assert joined(windows, "source") == expected
        rolls.add(roll)
    assert rolls == set(range(11))


def test_an_epoch_is_the_same_after_a_restart_and_its_windows_are_shuffled() -> None:
    orders = []
    for epoch in (1, 2, 3, 2):
        windows = CharacterWindows(np.arange(400), 4, seed=5)
        windows.set_epoch(epoch)
        orders.append((windows.ordered_indices().tolist(), rows(windows, "target")))
    assert orders[1] == orders[3] and orders[0] != orders[1] != orders[2]
    assert sorted(orders[0][0]) == list(range(100)) != orders[0][0]


def test_context_stands_in_front_of_what_is_predicted_as_far_as_there_is_any() -> None:
    windows = CharacterWindows(STREAM, 3).with_context(5)
    assert rows(windows, "source") == [
        [END, 10, 11],
        [END, 10, 11, 12, 13, 14],
        [10, 11, 12, 13, 14, 15, 16, 17],
        [13, 14, 15, 16, 17, 18, 19],
    ]
    batch = windows.collater([windows[1], windows[3]])
    assert batch["target"].tolist() == [[PAD, PAD, PAD, 13, 14, 15, PAD], [PAD, PAD, PAD, PAD, PAD, 19, 20]]
    assert batch["start_indices"] == [3, 5] and batch["ntokens"] == 5
    assert batch["net_input"]["src_tokens"][0].tolist() == [END, 10, 11, 12, 13, 14, PAD]
    assert batch["net_input"]["src_lengths"].tolist() == [6, 7]


def test_boundaries_are_those_of_the_input_and_none_at_its_end_or_padding() -> None:
    ends = np.isin(STREAM, [12, 15, 20]).astype(np.uint8)
    windows = CharacterWindows(STREAM, 4, boundaries=ends)
    batch = windows.collater([windows[0], windows[1], windows[2]])
    assert batch["boundaries"].tolist() == [
        [False, False, False, True],
        [False, False, True, False],
        [False, False, False, False],
    ]
    windows = CharacterWindows(STREAM, 4, boundaries=ends, seed=1)
    for epoch in range(1, 9):
        windows.set_epoch(epoch)
        assert joined(windows, "boundaries") == [each in (12, 15, 20) for each in joined(windows, "source")]


def test_a_batch_has_boundaries_of_pieces_only_where_they_are_asked_for(folder: CharacterFolder) -> None:
    for split, is_asked in (("train", True), ("test", True), ("valid", False)):
        made = task(folder, tokens_per_sample=32, piece_boundaries=is_asked)
        made.load_dataset(split)
        windows = made.dataset(split)
        batch = windows.collater([windows[0], windows[1]])
        assert ("boundaries" in batch) is is_asked
        if is_asked:
            source, ends = batch["net_input"]["src_tokens"], batch["boundaries"]
            assert ends.shape == source.shape and ends[source == SPACE].all() and ends[source > SPACE].any()


def model(made: CharacterLanguageModelingTask) -> TransformerLanguageModel:
    args = Namespace(
        decoder_layers=1,
        decoder_embed_dim=8,
        decoder_ffn_embed_dim=8,
        decoder_attention_heads=2,
        tokens_per_sample=made.cfg.tokens_per_sample,
    )
    base_lm_architecture(args)
    torch.manual_seed(0)
    return TransformerLanguageModel.build_model(args, made).eval()


def naive_bits(built: TransformerLanguageModel, stream: list[int], step: int, context: int) -> float:
    """Score each character by a forward pass of its own."""
    source, nats = [END, *stream], 0.0
    for place, character in enumerate(stream):
        begin = max(place // step * step - context, 0)
        logits, _ = built(torch.tensor([source[begin : place + 1]]))
        nats -= float(logits[0, -1].log_softmax(dim=-1)[character])
    return nats / len(stream) / math.log(2)


@pytest.mark.parametrize(("step", "context", "batch"), [(8, 24, 5), (32, 0, 3), (7, 12, 1)])
@torch.no_grad()
def test_bits_per_character_are_those_of_a_naive_loop_over_the_whole_split(
    folder: CharacterFolder, step: int, context: int, batch: int
) -> None:
    made = task(folder, tokens_per_sample=step + context)
    built = model(made)
    made.cfg.tokens_per_sample = step  # as fairseq-eval-lm leaves it
    made.load_dataset("test")
    batches = made.eval_lm_dataloader(
        made.dataset("test"), batch_size=batch, max_positions=step + context, context_window=context
    )
    found = eval_lm([built], made.source_dictionary, batches)
    expected = naive_bits(built, folder.tokens("test").tolist(), step, context)
    assert float(found["loss"]) == pytest.approx(expected, abs=1e-5)


def test_a_stream_shorter_than_a_window_is_scored(folder: CharacterFolder) -> None:
    made = task(folder, tokens_per_sample=501)
    made.load_dataset("test")
    assert made.dataset("test").sizes.tolist() == [100]
    # One as long as a window trains.
    made = task(folder, tokens_per_sample=500)
    made.load_dataset("train")
    assert made.dataset("train").sizes.tolist() == [500]
    state = made.state_dict()
    assert state == {"characters": "en-lines"}
    made.load_state_dict(state)
    assert task(folder, tokens_per_sample=1).cfg.tokens_per_sample == 1


def test_pieces_that_are_asked_for_must_be_there(tmp_path: Path) -> None:
    prepare_characters(
        tmp_path / "plain", {"train": TextStream("t", lambda: iter(["some text"]))}, CharacterSettings("en")
    )
    made = task(CharacterFolder(tmp_path / "plain"), tokens_per_sample=4, piece_boundaries=True)
    with refused("plain has no pieces"):
        made.load_dataset("train")


def hourglass(made: CharacterLanguageModelingTask, name: str) -> PyramidionLanguageModel:
    tiny = {"embed_dim": 8, "ffn_embed_dim": 16, "num_heads": 2, "layers": "1,1,1"}
    config = PyramidionLanguageModelConfig(**{**LANGUAGE_MODEL_PRESETS[name], **tiny, **OWN_LAYERS.get(name, {})})
    torch.manual_seed(0)
    built = PyramidionLanguageModel.build_model(OmegaConf.structured(config), made)
    add_noise(built, 0.3)
    return built.eval()


def continued(
    made: CharacterLanguageModelingTask, built: PyramidionLanguageModel, lines: list[str], **options: Any
) -> list[list[dict[str, Any]]]:
    """Do what fairseq-interactive does."""
    codec = made.build_bpe(None)
    dataset = made.build_dataset_for_inference(*made.get_interactive_tokens_and_lengths(lines, codec.encode))
    (batch,) = made.get_batch_iterator(dataset, max_sentences=len(lines)).next_epoch_itr(shuffle=False)
    generator = made.build_generator([built], GenerationConfig(**{"max_len_a": 1.0, "max_len_b": 12, **options}))
    found = made.inference_step(generator, [built], batch)
    for hypotheses in found:
        for each in hypotheses:
            each["text"] = codec.decode(made.source_dictionary.string(each["tokens"]))
    return [found[place] for place in np.argsort(batch["id"].numpy())]


@torch.no_grad()
def log_probabilities(built: PyramidionLanguageModel, tokens: torch.Tensor) -> torch.Tensor:
    """Of each token by a forward pass over the whole text."""
    logits, _ = built(torch.cat([torch.tensor([END]), tokens[:-1]])[None])
    found: torch.Tensor = logits[0].log_softmax(dim=-1)
    return found


@pytest.mark.parametrize("name", ["hourglass_whitespace", "hourglass_gumbel", "longformer_lm"])
def test_the_most_probable_letters_of_whole_forwards_are_written(folder: CharacterFolder, name: str) -> None:
    made = task(folder)
    built = hourglass(made, name)
    lines = ["a cab", "", "Dada 3"]
    for line, [best] in zip(lines, continued(made, built, lines, beam=1), strict=True):
        prompt = folder.alphabet.clean(line).strip()
        assert best["text"].startswith(prompt) and len(best["text"]) == len(prompt) + 12
        expected = log_probabilities(built, best["tokens"])
        assert expected[len(prompt) :, SPACE:].argmax(dim=-1).add(SPACE).equal(best["tokens"][len(prompt) :])
        scores = expected.gather(1, best["tokens"][:, None]).squeeze(1)
        torch.testing.assert_close(best["positional_scores"], scores, rtol=0, atol=1e-5)
        assert float(best["score"]) == pytest.approx(float(scores.mean()), abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"sampling": True, "sampling_topk": 3}])
def test_beams_and_samples_have_the_scores_of_whole_forwards(folder: CharacterFolder, options: dict[str, Any]) -> None:
    made = task(folder)
    built = hourglass(made, "hourglass_whitespace")
    (found,) = continued(made, built, ["a cab"], beam=4, nbest=4, **options)
    assert len({each["text"] for each in found}) == 4
    assert [float(each["score"]) for each in found] == sorted((float(each["score"]) for each in found), reverse=True)
    for each in found:
        scores = log_probabilities(built, each["tokens"]).gather(1, each["tokens"][:, None]).squeeze(1)
        torch.testing.assert_close(each["positional_scores"], scores, rtol=0, atol=1e-5)
        assert len(each["text"]) == 17 and each["tokens"].min() >= SPACE


def test_windows_are_continued_from_as_many_characters_as_are_asked_for(folder: CharacterFolder) -> None:
    made = task(folder, tokens_per_sample=40)
    built = hourglass(made, "hourglass_gumbel")
    made.load_dataset("test")
    (batch,) = made.get_batch_iterator(made.dataset("test"), max_sentences=3).next_epoch_itr(shuffle=False)
    generator = made.build_generator([built], GenerationConfig(beam=1, max_len_b=50))
    for given, shown in ((7, batch["target"][:, :7]), (None, batch["net_input"]["src_tokens"][:, 1:])):
        prefix = None if given is None else batch["target"][:, :given]
        found = made.inference_step(generator, [built], batch, prefix_tokens=prefix)
        for row, [best] in zip(shown, found, strict=True):
            row = row[row != PAD]
            assert best["tokens"][: len(row)].equal(row) and len(best["tokens"]) == 50


def test_a_prompt_must_leave_room(folder: CharacterFolder) -> None:
    made = task(folder)
    built = hourglass(made, "hourglass_vanilla")
    with refused("--max-len-b"):
        continued(made, built, ["abcd"], max_len_a=0.0, max_len_b=4)
    ((best,),) = continued(made, built, ["abcd"], beam=1, max_len_a=0.0, max_len_b=5)
    assert len(best["text"]) == 5
