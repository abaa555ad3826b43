# SPDX-License-Identifier: GPL-2.0-or-later
"""The rings of QEMU 10.2 and later, in which a disk's requests stand beside what may never end."""

import subprocess
from pathlib import Path

import pytest

from vm.disk_model import SOURCES

SQE128 = 1 << 10  # include/uapi/linux/io_uring.h: entries of 128 bytes


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rings") / "rings_driver"
    sources = [Path(__file__).with_name("rings_driver.c"), SOURCES / "rings.c"]
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-fsanitize=address,undefined", f"-I{SOURCES}"]
    subprocess.run([*command, *sources, "-luring", "-o", made], check=True)
    return made


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
    assert sorted(ended) == ["0=4096", "16384=0", "8192=4096"]  # the file ends at 16384
    assert left == ["0", "0"]
