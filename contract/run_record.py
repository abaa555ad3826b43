# SPDX-License-Identifier: GPL-2.0-or-later
"""The record of a run: `events.jsonl`, and meta.json and status.json, which are made from it.

docs/reference/results-format.md describes every file and column. A guest appends to files on its
host (contract.results_memory): what is written survives the guest's death.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from contract.results_memory import open_appended
from contract.run_files import EVENTS, FORMAT_VERSION, META, STATES, STATUS
from contract.untrusted import json_object

# Event name -> keys that it must have: a guest with damaged memory may write an event without.
NEEDED = {"start": {"t0"}, "phase": {"name"}, "end": {"elapsed"}, "status": {"state", "why"}}


class Events:
    """Appends JSON objects, one per line: `{"t": CLOCK_MONOTONIC s, "event": name, …}`."""

    def __init__(self, path: Path) -> None:
        self._file = open_appended(path)

    def write(self, event: str, **facts: Any) -> None:
        """Append one event; facts are JSON values."""
        line = json.dumps({"t": round(time.monotonic(), 3), "event": event, **facts})
        data = line.encode() + b"\n"
        while data:
            data = data[self._file.write(data) or 0 :]

    def close(self) -> None:
        """Close the file; later writes fail."""
        self._file.close()


def read_events(path: Path) -> list[dict[str, Any]]:
    """Every complete event of an events.jsonl; omits a last line that a dying guest cut short."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    return [event for line in raw.split(b"\n")[:-1] if (event := read_event(line))]


def read_event(line: bytes | str) -> dict[str, Any] | None:
    """The event in a line of events.jsonl; None if the line is invalid or lacks a needed key."""
    event = json_object(line)
    if event is None or not isinstance(name := event.get("event"), str):
        return None
    has_all = NEEDED.get(name, set()) <= event.keys()
    return event if has_all and (name != "status" or event["state"] in STATES) else None


def write_whole(path: Path, data: bytes) -> None:
    """Write data to path through a temporary name in the same folder, synced, then renamed."""
    aside = path.with_name(f".{path.name}.new")
    with open(aside, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write an object as JSON with sorted keys, by `write_whole`."""
    write_whole(path, f"{json.dumps(value, indent=1, sort_keys=True)}\n".encode())


def write_meta(run: Path, facts: dict[str, Any]) -> None:
    """Write meta.json from facts that are known outside the machine and from the run's events.

    Values that are objects (`kernel`) are merged key by key.
    """
    meta: dict[str, Any] = {"format": FORMAT_VERSION, **facts}
    observers = []
    for event in read_events(run / EVENTS):
        values = {key: value for key, value in event.items() if key not in ("t", "event")}
        if event["event"] == "meta":
            for key, value in values.items():
                before = meta.get(key)
                are_objects = isinstance(before, dict) and isinstance(value, dict)
                meta[key] = {**before, **value} if are_objects else value  # type: ignore[dict-item]
        elif event["event"] == "start":
            meta["t0"] = values["t0"]
        elif event["event"] == "observer":
            observers.append(values)
    if observers:
        meta["observers"] = observers
    write_json(run / META, meta)


def write_status(run: Path, state: str, why: str, **facts: Any) -> None:
    """Write status.json, a run's last file: state is one of STATES, why is one line of text."""
    if state not in STATES:
        raise ValueError(f"no such state: {state}")
    write_json(run / STATUS, {"format": FORMAT_VERSION, "state": state, "why": why, **facts})


def reported_status(events: list[dict[str, Any]]) -> tuple[str, str] | None:
    """(state, why) as the machine under test last reported it itself; None if it did not."""
    for event in reversed(events):
        if event["event"] == "status":
            return str(event["state"]), str(event["why"])
    return None


def close(run: Path, facts: dict[str, Any], state: str, why: str) -> None:
    """Write meta.json again, with the final facts, and then status.json."""
    write_meta(run, facts)
    ends = (e["elapsed"] for e in read_events(run / EVENTS) if e["event"] == "end")
    write_status(run, state, why, elapsed_s=next(ends, None))
