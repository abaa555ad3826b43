# SPDX-License-Identifier: GPL-2.0-or-later
"""The rings of QEMU 10.2 and later, in which a disk's requests stand beside what may never end."""

import errno
import string
import subprocess
from pathlib import Path

import pytest

from tests.support.library_drivers import compiled

SQE128 = 1 << 10  # include/uapi/linux/io_uring.h: entries of 128 bytes


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rings"), "rings_driver", "rings", "-luring")


@pytest.fixture(scope="module")
def rest_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("rest"), "rest_driver", "rings", "-luring")


@pytest.fixture(scope="module")
def order_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(
        tmp_path_factory.mktemp("order"), "order_driver", "rings", "-luring", "-pthread"
    )


@pytest.mark.parametrize("flags", [0, SQE128])
def test_requests_of_files_are_done_and_nothing_else_is_waited_for(
    program: Path, tmp_path: Path, flags: int
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(4 * 4096))
    done = subprocess.run([program, file, str(flags)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    waits, taken, ended, left = (part.split() for part in done.stdout.split(":"))
    assert waits == ["1"]
    assert taken == ["4096", "12288", "20480", "3"]  # each as it is taken, and their number
    assert ended == ["0=4096", "8192=4096", "16384=0"]  # the file ends at 16384
    assert left == ["0", "0"]


def test_requests_end_in_their_order_whatever_the_host_does_first(
    order_program: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("abcd")
    words = [str(order_program), str(tmp_path / "file")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["1=1", "2=1", "3=1", "4=1"])


@pytest.mark.parametrize("parts", [0, 1, 2])
@pytest.mark.parametrize(
    ("result", "corrected", "buffer"),
    [
        (3, 10, "...fghijkl"),  # from the file's third byte on, without what the kernel has read
        (7, 10, ".......jkl"),
        (10, 10, ".........."),  # as a whole
        (-errno.EAGAIN, 10, "cdefghijkl"),
        (-errno.EINTR, 10, "cdefghijkl"),
        (-errno.EIO, -errno.EIO, ".........."),
        (0, 0, ".........."),
    ],
)
def test_the_rest_of_a_read_is_done(
    rest_program: Path, tmp_path: Path, parts: int, result: int, corrected: int, buffer: str
) -> None:
    assert rest_of(rest_program, tmp_path, "r", parts, 2, result) == (corrected, buffer)


def test_a_read_ends_with_the_file(rest_program: Path, tmp_path: Path) -> None:
    assert rest_of(rest_program, tmp_path, "r", 2, 22, 1) == (4, ".xyz......")
    assert rest_of(rest_program, tmp_path, "r", 2, 22, 4) == (4, "..........")


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_the_rest_of_a_write_is_done(rest_program: Path, tmp_path: Path, parts: int) -> None:
    assert rest_of(rest_program, tmp_path, "w", parts, 2, 7)[0] == 10
    assert (tmp_path / "file").read_text() == string.ascii_lowercase[:9] + "WWWmnopqrstuvwxyz"
    assert rest_of(rest_program, tmp_path, "w", parts, 2, -errno.ENOSPC)[0] == -errno.ENOSPC
    assert (tmp_path / "file").read_text() == string.ascii_lowercase


def rest_of(
    program: Path, folder: Path, kind: str, parts: int, at: int, result: int
) -> tuple[int, str]:
    """The result of a request for 10 bytes of the alphabet, as corrected, and its buffer."""
    (folder / "file").write_text(string.ascii_lowercase)
    words = [str(program), str(folder / "file"), kind, str(parts), str(at), "10", str(result)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    corrected, buffer = done.stdout.split()
    return int(corrected), buffer
