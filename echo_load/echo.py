# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends echo requests to 127.0.0.1 and counts those without a reply.

The kernel makes the reply in a softirq (net/ipv4/icmp.c, icmp_reply), with GFP_ATOMIC, and in one
piece, as lo's MTU is 65,536. For 15,000 bytes this is one order-2 allocation. It has __GFP_NOWARN:
a failure prints nothing, and the reply never comes.
"""

import os
import socket
import struct
import time

ADDRESS = "127.0.0.1"
PAYLOAD = {2: 15_000, 3: 30_000}  # order -> bytes of an echo's payload
REPLY_S = 1.0  # a later reply counts as lost
GIVE_UP = 3  # after this many echoes in a row without a reply no reply is expected
ECHO_REPLY, ECHO_REQUEST = 0, 8
SOL_RAW, ICMP_FILTER = 255, 1  # linux/socket.h, linux/icmp.h: a set bit blocks that type
SO_RCVBUFFORCE, ROOM_BYTES = 33, 8 << 20  # asm-generic/socket.h
SEQUENCES = 0x10000
HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence


class Echo:
    """Sends echoes and counts lost replies; OSError without CAP_NET_RAW."""

    def __init__(self, order: int, address: str = ADDRESS) -> None:
        self.sent = self.lost = 0
        self._address = address
        self._identifier = os.getpid() % 0x10000
        self._waiting: dict[int, float] = {}  # sequence -> when it was sent, monotonic s
        payload = bytes(range(250)) * (PAYLOAD[order] // 250)
        words = struct.unpack(f"!{len(payload) // 2}H", payload)
        # One sum for all: echoes only differ in their sequence numbers.
        self._sum = sum(words) + (ECHO_REQUEST << 8) + self._identifier
        self._packet = bytearray(HEADER.size) + payload
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        only_replies = ~(1 << ECHO_REPLY) & 0xFFFFFFFF
        self._socket.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("=I", only_replies))
        # Room for all replies that can wait unread, so that none is lost for lack of it.
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
        self._socket.setblocking(False)

    def send(self) -> bool:
        """Send an echo; False if the request could not be made, which is not a lost reply."""
        sequence = self.sent % SEQUENCES
        total = self._sum + sequence
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        checksum = ~total & 0xFFFF
        HEADER.pack_into(self._packet, 0, ECHO_REQUEST, 0, checksum, self._identifier, sequence)
        now = time.monotonic()
        try:
            self._socket.sendto(self._packet, (self._address, 0))
        except OSError:
            return False
        self._waiting[sequence] = now
        self.sent += 1
        return True

    def look(self) -> int:
        """Read the replies, then count what waited for REPLY_S as lost; the number of all lost.

        In this order, because a reply that came while we did not run is not lost.
        """
        while True:
            try:
                # Only the headers are read.
                packet = self._socket.recv(128)
            except BlockingIOError:
                break
            begin = (packet[0] & 0xF) * 4
            if len(packet) < begin + HEADER.size:
                continue
            kind, _, _, identifier, sequence = HEADER.unpack_from(packet, begin)
            if (kind, identifier) == (ECHO_REPLY, self._identifier):
                self._waiting.pop(sequence, None)
        over = time.monotonic() - REPLY_S
        # The oldest come first: those behind a recent one are more recent.
        while self._waiting and (oldest := next(iter(self._waiting.items())))[1] <= over:
            del self._waiting[oldest[0]]
            self.lost += 1
        return self.lost

    @property
    def waiting(self) -> int:
        """The number of echoes whose reply may still come."""
        return len(self._waiting)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def exchange(order: int, count: int) -> int:
    """Send `count` echoes one after the other, awaiting each reply; returns the number of replies.

    Stops after GIVE_UP echoes in a row without a reply.
    """
    echo = Echo(order)
    replies = in_vain = 0
    try:
        for _ in range(count):
            echo.send()
            until = time.monotonic() + REPLY_S
            while echo.waiting and time.monotonic() <= until:
                echo.look()
            echo.look()
            before, replies = replies, echo.sent - echo.lost - echo.waiting
            in_vain = in_vain + 1 if replies == before else 0
            if in_vain == GIVE_UP:
                break
        return replies
    finally:
        echo.close()
