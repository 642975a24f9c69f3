"""A run that is killed, anywhere: the next one goes on to the same bytes."""

import os
import re
import signal
from pathlib import Path

import pytest
from folders import contents
from killing import die, die_at_call, run_killed

from pyramidions.data import encode as encode_module
from pyramidions.data import prepare as prepare_module
from pyramidions.data.prepare import prepare
from pyramidions.data.vocabulary import Settings
from pyramidions.files.parallel import KilledError

SMALL = Settings(vocab_size=60)
TRAIN, TEST = 30, 10  # documents


def _while_the_vocabulary_is_trained():
    # Training has a process of its own.
    prepare_module.train_tokenizer = lambda *_: os.kill(os.getppid(), signal.SIGKILL)


def _while_the_vocabulary_is_saved():
    Path.replace = die_at_call(2, Path.replace)


def _before_the_first_document():
    prepare_module.encode = die


def _in_mid_train():
    encode_module._SplitFiles.add = die_at_call(22, encode_module._SplitFiles.add)


def _while_the_train_split_is_finished():
    Path.replace = die_at_call(4, Path.replace)


def _between_the_splits():
    prepare_module.encode = die_at_call(2, prepare_module.encode)


def _in_mid_test():
    encode_module._SplitFiles.add = die_at_call(TRAIN + 10, encode_module._SplitFiles.add)


def _while_the_references_are_synced():
    encode_module.sync = die


def _while_the_manifest_is_written():
    def write_half(folder, *_):
        folder.manifest_path.write_text('{"format": 1, "fi')
        die()

    prepare_module.write_manifest = write_half


@pytest.mark.parametrize(
    ("place", "taken", "workers"),
    [
        (_while_the_vocabulary_is_trained, [], (1, 2)),
        (_while_the_vocabulary_is_saved, [], (2, 1)),
        (_before_the_first_document, ["vocabulary"], (1, 1)),
        (_in_mid_train, ["vocabulary"], (2, 1)),
        (_while_the_train_split_is_finished, ["vocabulary"], (1, 2)),
        (_between_the_splits, ["vocabulary", "train"], (1, 1)),
        (_while_the_references_are_synced, ["vocabulary"], (2, 1)),
        (_in_mid_test, ["vocabulary", "train"], (1, 2)),
        (_while_the_manifest_is_written, ["vocabulary", "train", "test"], (1, 1)),
    ],
)
def test_killed_anywhere_it_goes_on_to_the_same_bytes(out, corpora, whole, capfd, place, taken, workers):
    run_killed(place, lambda: prepare(out, corpora, SMALL, workers=workers[0]))
    assert [path.name for path in out.parent.iterdir()] == [".data.partial"]
    capfd.readouterr()
    assert prepare(out, corpora, SMALL, workers=workers[1])
    assert contents(out) == whole
    assert [path.name for path in out.parent.iterdir()] == ["data"]
    messages = capfd.readouterr().err
    assert re.findall("takes the (vocabulary|train|test)", messages) == taken
    assert "damaged" not in messages


def _encode_or_be_killed(*given):
    if given[-1][-1].id == "paper-29":
        die()
    return _encode_or_be_killed.__wrapped__(*given)


def test_a_killed_worker_is_an_interruption(out, corpora, whole, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_encode_or_be_killed, "__wrapped__", encode_module.Encoder.__call__, raising=False)
        patch.setattr(encode_module.Encoder, "__call__", _encode_or_be_killed)
        with pytest.raises(KilledError):
            prepare(out, corpora, SMALL, workers=2)
    capsys.readouterr()
    assert prepare(out, corpora, SMALL)
    assert "takes the vocabulary that was trained before" in capsys.readouterr().err
    assert contents(out) == whole
