# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels' packages, and an archive of them that the real apt reads and verifies."""

import contextlib
import hashlib
import io
import struct
import subprocess
import tarfile
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

FLAVOUR = "cloud-amd64"
CONFIG = b"CONFIG_64BIT=y\n"


def bz_image(release: str, size: int = 64 << 10) -> bytes:
    """The header of a bzImage as the boot protocol has it, and as many bytes as it announces."""
    head = bytearray(size)
    head[0x1F1] = 1
    struct.pack_into("<I", head, 0x1F4, (size - 1024) // 16)
    head[0x1FE:0x206] = b"\x55\xaa\xeb\x66HdrS"
    struct.pack_into("<H", head, 0x20E, 0x3000 - 0x200)
    text = f"{release} (builder@example) #1 SMP\0".encode()
    head[0x3000 : 0x3000 + len(text)] = text
    return bytes(head)


def deb(folder: Path, name: str, files: dict[str, bytes], version: str = "1-1") -> Path:
    """A real Debian package with these files, not compressed."""
    tree = folder / f"{name}-{version}.tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: A <a@example>\n"
        "Description: a test\n"
    )
    for path, data in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    out = folder / f"{name}.deb"
    command = ["dpkg-deb", "-Znone", "--build", "--root-owner-group", str(tree), str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@contextlib.contextmanager
def signing_key(gnupg: Path) -> Iterator[None]:
    """A key to sign suites with, in a folder for nothing else; within, gpg has an agent there."""
    gnupg.mkdir(mode=0o700)
    user = "An archive of a test <archive@example>"
    command = ["gpg", "--homedir", str(gnupg), "--batch", "--quiet", "--passphrase", ""]
    command += ["--quick-gen-key", user, "ed25519", "sign"]
    subprocess.run(command, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["gpgconf", "--homedir", str(gnupg), "--kill", "gpg-agent"], check=True)


def _modules(release: str, above: str = "") -> dict[str, bytes]:
    names = ("modules.order", "modules.builtin")
    return {f"{above}lib/modules/{release}/{name}": b"" for name in names}


class Archive:
    """A mirror of Debian in a folder, its suites signed with a key of its own."""

    def __init__(self, folder: Path, gnupg: Path) -> None:
        self.folder = folder
        self.keyring = folder / "keyring.gpg"
        self._gpg = ["gpg", "--homedir", str(gnupg), "--batch", "--quiet"]
        (folder / "pool").mkdir(parents=True)
        self._run("--export", "-o", str(self.keyring))

    def _run(self, *arguments: str) -> None:
        subprocess.run([*self._gpg, *arguments], check=True, capture_output=True)

    def kernel(
        self, abi: str, version: str, *, unsigned: bool = False, flavour: str = FLAVOUR
    ) -> tuple[str, Path]:
        """A whole kernel in one package: its record for a list, and its file in the pool."""
        release = f"{abi}-{flavour}"
        name = f"linux-image-{release}{'-unsigned' if unsigned else ''}"
        # Smaller ones are the empty packages of the split shape.
        image = bz_image(release, 1536 << 10) + (b"" if unsigned else b"signature")
        files = {f"boot/vmlinuz-{release}": image, f"boot/config-{release}": CONFIG}
        return self._package(name, version, files | _modules(release))

    def split_kernel(self, abi: str, version: str) -> tuple[str, Path]:
        """A kernel in three packages: their records, and the file of the one with the modules."""
        release = f"{abi}-{FLAVOUR}"
        parts = {
            "binary": {f"boot/vmlinuz-{release}": bz_image(release)},
            "base": {f"usr/lib/modules/{release}/config": CONFIG},
            "modules": _modules(release, "usr/"),
        }
        made = [
            self._package(f"linux-{part}-{release}", version, files)
            for part, files in parts.items()
        ]
        return "\n".join(record for record, _ in made), made[-1][1]

    def source(self, series: str, version: str, files: dict[str, str]) -> tuple[str, Path]:
        """The source of a kernel in a package: its record, and its file in the pool."""
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:xz") as tar:
            for name, text in files.items():
                member = tarfile.TarInfo(f"linux-source-{series}/{name}")
                member.mode = 0o755 if name.endswith(".sh") else 0o644
                if text.startswith("-> "):
                    member.type, member.linkname = tarfile.SYMTYPE, text.removeprefix("-> ")
                    tar.addfile(member)
                    continue
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        packed = {f"usr/src/linux-source-{series}.tar.xz": data.getvalue()}
        return self._package(f"linux-source-{series}", version, packed)

    def _package(self, name: str, version: str, files: dict[str, bytes]) -> tuple[str, Path]:
        pool = self.folder / "pool"
        path = deb(pool, name, files, version)
        path = path.rename(pool / f"{name}_{version}_amd64.deb")
        data = path.read_bytes()
        record = (
            f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nDepends: kmod\n"
            f"Filename: pool/{path.name}\nSize: {len(data)}\n"
            f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
        )
        return record, path

    def publish(self, suite: str, records: list[str], *, days_left: float = 7) -> None:
        """The suite's lists, signed; what they name need not be in the pool."""
        dists = self.folder / "dists" / suite
        packages = dists / "main/binary-amd64/Packages"
        packages.parent.mkdir(parents=True, exist_ok=True)
        packages.write_text("\n".join(records))
        data = packages.read_bytes()
        (dists / "Release").write_text(
            f"Origin: Debian\nSuite: old{suite}\nCodename: {suite}\n"
            f"Date: {formatdate(usegmt=True)}\n"
            f"Valid-Until: {formatdate(time.time() + 86400 * days_left, usegmt=True)}\n"
            "Architectures: amd64\nComponents: main\nSHA256:\n"
            f" {hashlib.sha256(data).hexdigest()} {len(data)} main/binary-amd64/Packages\n"
        )
        signed = str(dists / "InRelease")
        self._run("--yes", "--clearsign", "-o", signed, str(dists / "Release"))
