import multiprocessing
import os
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

pytestmark = pytest.mark.usefixtures("small_shards")
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
    encode_module._BegunShard.add = _at_call(22, encode_module._BegunShard.add)


def _while_a_shard_is_saved():
    Path.replace = _at_call(4, Path.replace)


def _between_the_splits():
    prepare_module.encode = _at_call(2, prepare_module.encode)


def _in_mid_test():
    encode_module._BegunShard.add = _at_call(TRAIN + 10, encode_module._BegunShard.add)


def _while_the_shards_are_joined():
    encode_module.sync = _die


def _while_the_manifest_is_written():
    def write_half(folder, *_):
        folder.manifest_path.write_text('{"format": 1, "fi')
        _die()

    prepare_module.write_manifest = write_half


@pytest.mark.parametrize(
    ("place", "saved"),
    [
        (_while_the_vocabulary_is_trained, None),
        (_while_the_vocabulary_is_saved, None),
        (_before_the_first_document, (0, 0)),
        (_in_mid_train, (16, 0)),
        (_while_a_shard_is_saved, (8, 0)),
        (_between_the_splits, (TRAIN, 0)),
        (_while_the_shards_are_joined, (TRAIN, 0)),
        (_in_mid_test, (TRAIN, 8)),
        (_while_the_manifest_is_written, (TRAIN, TEST)),
    ],
)
@pytest.mark.parametrize("workers", [(1, 2), (2, 1)])
def test_killed_anywhere_it_goes_on_to_the_same_bytes(out, corpora, whole, capfd, place, saved, workers):
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
    assert ("takes the vocabulary that was trained before" in messages) == (saved is not None)
    train, test = saved or (0, 0)
    assert (f"goes on after {train} of 30 documents of train" in messages) == (train > 0)
    assert (f"goes on after {test} of 10 documents of test" in messages) == (test > 0)
    assert "damaged" not in messages


def _encode_or_be_killed(chunk):
    if chunk[-1].id == "paper-29":
        _die()
    return encode_module._encode_chunk.__wrapped__(chunk)


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


@pytest.mark.parametrize("place", [_in_mid_train, _while_the_shards_are_joined, _in_mid_test])
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
