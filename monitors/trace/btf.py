# SPDX-License-Identifier: GPL-2.0-or-later
"""Offsets of structure members out of the kernel's own type information (BTF, since 5.2 with
CONFIG_DEBUG_INFO_BTF). Layout: Documentation/bpf/btf.rst.

Read once, before anything is locked in memory: the file has several MB.
"""

from __future__ import annotations

from struct import Struct, unpack_from

PATH = "/sys/kernel/btf/vmlinux"
MAGIC = 0xEB9F
STRUCT, TYPEDEF, POINTER, FUNC_PROTO = 4, 8, 2, 13
# Bytes after a type's own 12, by its kind: so many, or so many for each of its members.
TAIL = {1: 4, 3: 12, 14: 4, 17: 4}
MEMBERS = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
LAST_KIND = 19
KIND_FLAG = 1 << 31


class BadBtf(ValueError):
    """Not a BTF of the known version."""


class Btf:
    """The structures and tracepoint prototypes that were asked for.

    BadBtf if it is none; struct.error where a damaged one leads out of it.
    """

    def __init__(self, data: bytes, structs: list[str], tracepoints: list[str]) -> None:
        if len(data) < 24 or unpack_from("<HB", data) != (MAGIC, 1):
            raise BadBtf("no BTF version 1")
        header, types, type_bytes, strings, string_bytes = unpack_from("<IIIII", data, 4)
        types, strings = types + header, strings + header
        end = types + type_bytes
        if max(end, strings + string_bytes) > len(data):
            raise BadBtf("BTF cut short")
        self._data, self._strings = data, strings
        self._end_of_strings = strings + string_bytes
        wanted = {self._name(name): name for name in structs}
        typedefs = {self._name(f"btf_trace_{name}"): name for name in tracepoints}
        self._structs: dict[str, int] = {}
        self._typedefs: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        # Offset of each pointer or prototype that a tracepoint's typedef may lead to, by its id.
        self._places: dict[int, int] = {}
        type_id, at = 1, types
        head = Struct("<III").unpack_from
        while at + 12 <= end:
            name, info, _size = head(data, at)
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            if kind > LAST_KIND or kind == 0:
                raise BadBtf(f"a BTF type of unknown kind {kind}")
            if kind == STRUCT and name in wanted and count:
                self._structs.setdefault(wanted[name], at)
            elif kind == TYPEDEF and name in typedefs:
                self._typedefs[typedefs[name]] = at
                self._ids[typedefs[name]] = type_id
            elif kind in (POINTER, FUNC_PROTO):
                self._places[type_id] = at
            at += 12 + TAIL.get(kind, 0) + MEMBERS.get(kind, 0) * count
            type_id += 1

    def offset(self, struct: str, *members: str) -> int | None:
        """Offset in bytes of the first of these members that struct has; None if none."""
        at = self._structs.get(struct)
        if at is None:
            return None
        (info,) = unpack_from("<I", self._data, at + 4)
        found = {}
        for number in range(info & 0xFFFF):
            name, _kind, bits = unpack_from("<III", self._data, at + 12 + 12 * number)
            found[name] = (bits & 0xFFFFFF if info & KIND_FLAG else bits) // 8
        return next((found[n] for m in members if (n := self._name(m)) in found), None)

    def arguments(self, tracepoint: str) -> int | None:
        """How many arguments a tracepoint has (without the one that says who is called)."""
        at = self._typedefs.get(tracepoint)
        for _ in range(2):  # typedef -> pointer -> prototype
            if at is not None:
                at = self._places.get(unpack_from("<I", self._data, at + 8)[0])
        if at is None:
            return None
        info: int = unpack_from("<I", self._data, at + 4)[0]
        return (info & 0xFFFF) - 1

    def type_id(self, tracepoint: str) -> int | None:
        """The id by which a program names a tracepoint, to be attached to it."""
        return self._ids.get(tracepoint)

    def _name(self, text: str) -> int:
        # Offset of a whole string in the table, -1 if it is not there; each is there once.
        at = self._data.find(b"\0" + text.encode() + b"\0", self._strings, self._end_of_strings)
        return at + 1 - self._strings if at >= 0 else -1


def kernel_btf(structs: list[str], tracepoints: list[str], root: str = "") -> Btf:
    """The running kernel's; OSError or BadBtf."""
    with open(root + PATH, "rb") as handle:
        return Btf(handle.read(), structs, tracepoints)
