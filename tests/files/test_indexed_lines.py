import os
import threading

import pytest
from refusals import refused

from pyramidions.files.lines import IndexedLines, read_lines


@pytest.mark.parametrize("content", [b"", b"\n", b"a", b"a\n", b"a\n\nb", "é\u2028b\r\nc\n".encode()])
def test_lines_are_those_of_reading_the_whole_file(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    lines = IndexedLines(path)
    assert len(lines) == len(read_lines(path))
    assert [lines[at] for at in reversed(range(len(lines)))] == read_lines(path)[::-1]
    assert list(lines) == read_lines(path)


def test_bytes_that_are_not_utf_8_are_named_when_their_line_is_read(tmp_path):
    (tmp_path / "x").write_bytes(b"a\n\xffabc\n")
    lines = IndexedLines(tmp_path / "x")
    assert lines[0] == "a"
    with refused("x, line 2: must be UTF-8, but byte 1 is 0xff (if it is WINDOWS-1252, "):
        lines[1]
    with pytest.raises(IndexError):
        lines[2]
    # No encoding is named where most bytes are beyond ASCII.
    (tmp_path / "x").write_bytes("供热占三分之一".encode("gbk") + b"\n")
    with refused("x, line 1: ") as refusal:
        IndexedLines(tmp_path / "x")[0]
    assert "WINDOWS" not in str(refusal.value)


def test_a_pipe_is_read_once_and_then_any_line_of_it(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    lines = IndexedLines(path)
    writer.join()
    assert (lines[1], lines[0]) == ("b", "a")
