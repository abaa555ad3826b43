# SPDX-License-Identifier: GPL-2.0-or-later
"""Echo requests to 127.0.0.1, and which of them had no reply.

The reply to a request is made in a softirq (net/ipv4/icmp.c, icmp_reply): as one piece, since lo's
MTU is 65,536, with GFP_ATOMIC. Of 15,000 bytes it is one order-2 allocation. It carries
__GFP_NOWARN, so a failure prints nothing: it is a reply that never comes.
"""

import os
import socket
import struct
import time

ADDRESS = "127.0.0.1"
PAYLOAD = {2: 15_000, 3: 30_000}  # order -> bytes of an echo's payload
REPLY_S = 1.0  # a reply that has not come by then is lost
GIVE_UP = 3  # so many in a row without a reply: there will be none
ECHO_REPLY, ECHO_REQUEST = 0, 8
SOL_RAW, ICMP_FILTER = 255, 1  # linux/socket.h, linux/icmp.h: a set bit keeps that type away
SO_RCVBUFFORCE, ROOM_BYTES = 33, 8 << 20  # asm-generic/socket.h
SEQUENCES = 0x10000
HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence


class Echo:
    """Sends echoes and tells which replies came; OSError without CAP_NET_RAW."""

    def __init__(self, order: int, address: str = ADDRESS) -> None:
        self.sent = self.lost = 0
        self._address = address
        self._identifier = os.getpid() % 0x10000
        self._waiting: dict[int, float] = {}  # sequence -> when it was sent, monotonic s
        payload = bytes(range(250)) * (PAYLOAD[order] // 250)
        words = struct.unpack(f"!{len(payload) // 2}H", payload)
        # One sum for all: an echo differs from the next in its sequence number alone.
        self._sum = sum(words) + (ECHO_REQUEST << 8) + self._identifier
        self._packet = bytearray(HEADER.size) + payload
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        only_replies = ~(1 << ECHO_REPLY) & 0xFFFFFFFF
        self._socket.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("=I", only_replies))
        # Room for all replies that can wait unread: none is lost for want of it.
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
        self._socket.setblocking(False)

    def send(self) -> bool:
        """Send one; False if the request itself could not be made, which is no reply lost."""
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
        """Take the replies that have come, then count as lost what waited for REPLY_S; all lost.

        In this order: a reply that came while we did not run is none that was lost.
        """
        while True:
            try:
                # What is behind the headers is cut off unread.
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
        # The oldest come first: none behind one that still has time has waited longer.
        while self._waiting and (oldest := next(iter(self._waiting.items())))[1] <= over:
            del self._waiting[oldest[0]]
            self.lost += 1
        return self.lost

    @property
    def waiting(self) -> int:
        """Echoes whose reply may still come."""
        return len(self._waiting)

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()


def exchange(order: int, count: int) -> int:
    """Send count echoes one after the other, each with its reply awaited; how many replies came.

    After GIVE_UP in a row without one no more are sent.
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
