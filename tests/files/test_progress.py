import io
import re
import sys
import time
from multiprocessing.connection import Connection

import pytest

from pyramidions.files.progress import counted, listed, progress_bar, with_elapsed


def test_work_that_tells_nothing_is_seen_to_go_on(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert with_elapsed("training", lambda: time.sleep(1.1) or "done") == "done"
    assert {*re.findall(r"training: (\d+) s", terminal.getvalue())} >= {"0", "1"}
    with pytest.raises(KeyError):
        with_elapsed("training", lambda: {}["x"])


def test_an_interrupt_does_not_wait_for_the_work(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    begin = time.monotonic()
    monkeypatch.setattr(Connection, "poll", interrupt)
    with pytest.raises(KeyboardInterrupt):
        with_elapsed("training", lambda: time.sleep(60))
    assert time.monotonic() - begin < 30


def test_a_bar_counts_on_but_not_of_quick_work_in_a_log_file(capsys, monkeypatch):
    with progress_bar("encoding", 30, "documents", 16) as bar:
        bar.update(7)
        # Seven documents in seven seconds leave seven seconds for the other seven.
        assert "23/30 [00:07<00:07" in bar.format_meter(**{**bar.format_dict, "elapsed": 7.0, "rate": None})
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    with progress_bar("encoding", 2, "documents") as bar:
        bar.update(2)
    assert "encoding: 100%" in capsys.readouterr().err


def test_a_number_agrees_with_its_noun_and_a_long_list_is_cut():
    assert (counted(1, "document"), counted(2000, "document")) == ("1 document", "2,000 documents")
    assert [counted(number, "summary") for number in (1, 0, 2000)] == ["1 summary", "0 summaries", "2,000 summaries"]
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(range(1, 2003), 2) == "1, 2 and 2,000 more"
