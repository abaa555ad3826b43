# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign of two kernels whose VMs are played, on other machines: each command is a process."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from run.run_folders import completed
from tests.support.vms import wait_for

SUITE = Path(__file__).resolve().parents[2]
LABELS = ("6.12", "7.2")
WAIT_S = 1800.0  # of a machine that is busy with other things


class FleetCampaign:
    """It is in `folder`/c; environment: what its commands need to find the other machines."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder / "c"
        self.log = folder / "ran"
        self.drivers: list[subprocess.Popen[bytes]] = []
        self._env = {
            **os.environ,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "DESKTOP_FREEZE_LOCKS": str(folder),
            **environment,
        }

    def begin(self, runs: int, where: str = "") -> "subprocess.Popen[bytes]":
        """Start a command; where: "" is where the campaign was before."""
        command = [sys.executable, "-m", "tests.support.played_campaign"]
        with open(self._log(len(self.drivers)), "wb") as log:
            process = subprocess.Popen(
                [*command, str(self.folder), where, str(runs)],
                cwd=SUITE,
                env=self._env,
                stdout=log,
                stderr=log,
            )
        self.drivers.append(process)
        return process

    def go(self, runs: int, where: str = "") -> str:
        """Do it to its end: what it said."""
        return self.end(self.begin(runs, where))

    def end(self, driver: "subprocess.Popen[bytes]") -> str:
        """Wait for the end of a command: what it said."""
        try:
            driver.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            driver.kill()
            raise AssertionError(self.said()) from None
        assert driver.returncode == 0, self.said()
        return self.said()

    def said(self) -> str:
        """What the last command has said so far."""
        return self._log(len(self.drivers) - 1).read_text()

    def _log(self, number: int) -> Path:
        return self.folder.with_name(f"driver-{number}.log")

    def wait(self, what: Callable[[], bool]) -> None:
        """Until what() is true; if it does not become so, the last command's words are shown."""
        driver = self.drivers[-1]
        if not wait_for(lambda: what() or driver.poll() is not None, WAIT_S) or not what():
            driver.kill()
            raise AssertionError(self.said())

    def ran(self) -> list[str]:
        """The runs that were done to their end, by whoever did them."""
        return sorted(self.log.read_text().splitlines()) if self.log.exists() else []

    def kept(self) -> dict[str, Any]:
        """Its hosts.json."""
        found: dict[str, Any] = json.loads((self.folder / "hosts.json").read_text())
        return found

    def check(self, runs: int) -> None:
        """Nothing is lost, nothing is left, and nothing is there twice."""
        wanted = set(range(1, runs + 1))
        for label in LABELS:
            assert completed(self.folder / label) == wanted
            for pattern in ("*partial*", ".*", "*differs*"):
                assert not list((self.folder / label).glob(pattern))
        assert self.kept()["runs"].keys() == {f"{one}/{n}" for one in LABELS for n in wanted}
        plan = tomllib.loads((self.folder / "plan.toml").read_text())
        entered = [(one["variant"], one["number"]) for one in plan["run"] if "cut" not in one]
        assert sorted(entered) == sorted((one, n) for one in LABELS for n in wanted)
