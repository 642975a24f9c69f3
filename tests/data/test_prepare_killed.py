import multiprocessing
import os
import re
import signal
from itertools import count
from pathlib import Path

import pytest
from folders import contents

from pyramidions.data import encode as encode_module
from pyramidions.data import prepare as prepare_module
from pyramidions.data.prepare import prepare
from pyramidions.data.vocabulary import Settings
from pyramidions.files.parallel import KilledError

SMALL = Settings(vocab_size=60)
TRAIN, TEST = 30, 10  # documents


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def _at_call(number, function):
    """The function, which kills the process when it is called for the n-th time, counted from 1."""
    calls = count(1)
    return lambda *args, **options: _die() if next(calls) == number else function(*args, **options)


def _while_the_vocabulary_is_trained():
    # Training has a process of its own.
    prepare_module.train_tokenizer = lambda *_: os.kill(os.getppid(), signal.SIGKILL)


def _while_the_vocabulary_is_saved():
    Path.replace = _at_call(2, Path.replace)


def _before_the_first_document():
    prepare_module.encode = _die


def _in_mid_train():
    encode_module._SplitFiles.add = _at_call(22, encode_module._SplitFiles.add)


def _while_the_train_split_is_finished():
    Path.replace = _at_call(4, Path.replace)


def _between_the_splits():
    prepare_module.encode = _at_call(2, prepare_module.encode)


def _in_mid_test():
    encode_module._SplitFiles.add = _at_call(TRAIN + 10, encode_module._SplitFiles.add)


def _while_the_references_are_synced():
    encode_module.sync = _die


def _while_the_manifest_is_written():
    def write_half(folder, *_):
        folder.manifest_path.write_text('{"format": 1, "fi')
        _die()

    prepare_module.write_manifest = write_half


@pytest.mark.parametrize(
    ("place", "taken"),
    [
        (_while_the_vocabulary_is_trained, []),
        (_while_the_vocabulary_is_saved, []),
        (_before_the_first_document, ["vocabulary"]),
        (_in_mid_train, ["vocabulary"]),
        (_while_the_train_split_is_finished, ["vocabulary"]),
        (_between_the_splits, ["vocabulary", "train"]),
        (_while_the_references_are_synced, ["vocabulary"]),
        (_in_mid_test, ["vocabulary", "train"]),
        (_while_the_manifest_is_written, ["vocabulary", "train", "test"]),
    ],
)
@pytest.mark.parametrize("workers", [(1, 2), (2, 1)])
def test_killed_anywhere_it_goes_on_to_the_same_bytes(out, corpora, whole, capfd, place, taken, workers):
    def run():
        place()
        prepare(out, corpora, SMALL, workers=workers[0])

    killed = multiprocessing.get_context("fork").Process(target=run)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
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
        _die()
    return encode_module._encode_chunk.__wrapped__(*given)


def test_a_killed_worker_is_an_interruption(out, corpora, whole, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_encode_or_be_killed, "__wrapped__", encode_module._encode_chunk, raising=False)
        patch.setattr(encode_module, "_encode_chunk", _encode_or_be_killed)
        with pytest.raises(KilledError, match="give fewer --workers"):
            prepare(out, corpora, SMALL, workers=2)
    capsys.readouterr()
    assert prepare(out, corpora, SMALL)
    assert "takes the vocabulary that was trained before" in capsys.readouterr().err
    assert contents(out) == whole


@pytest.mark.parametrize("place", [_in_mid_train, _while_the_references_are_synced, _in_mid_test])
def test_labels_come_to_the_same_bytes(out, corpora, tmp_path, place):
    prepare(tmp_path / "labelled", corpora, SMALL, labels=True)

    def run():
        place()
        prepare(out, corpora, SMALL, labels=True, workers=2)

    killed = multiprocessing.get_context("fork").Process(target=run)
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert prepare(out, corpora, SMALL, labels=True)
    assert contents(out) == contents(tmp_path / "labelled")
