# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrays of jobs for sbatch: their folders, scripts and options."""

from collections.abc import Collection, Sequence
from pathlib import Path

from run.hosts import sending
from run.jobs import plan_file
from run.jobs.job import Job
from run.slurm import submission
from run.slurm.controller import batch_script
from run.slurm.options import SlurmOptions
from run.slurm.tasks import SlurmTask
from vm.qemu import HOST

OVERHEAD_MIB = 1024  # memory of QEMU and the worker, beside the guest's
SLOWDOWN = 10  # host seconds that a guest second may take; sets --time
MARGIN_MIN = 30
SCRIPT = "job.sh"


class Arrays:
    """Makes the submissions of a campaign.

    folder: the campaign's. suite: the suite's folder for the nodes. proof: the short run with which
    a node proves itself.
    """

    def __init__(self, options: SlurmOptions, folder: Path, suite: Path, proof: Job) -> None:
        self._options, self._folder, self._suite = options, folder, suite
        self._exclusive = proof.guest.timing.clock == HOST
        planned = {"job": plan_file.portable(proof), "links": _links(proof)}
        self._shared = {"suite": suite.name, "proof": planned}

    def make(self, tasks: Sequence[SlurmTask]) -> Path:
        """Make the folder of a submission of these tasks, which is not submitted yet."""
        entries = [
            {
                "identity": task.identity,
                "where": str(task.run.parent.parent.relative_to(self._folder)),
                "job": task.entry,
                "links": _links(task.job),
            }
            for task in tasks
        ]
        made = submission.make(self._folder, {**self._shared, "tasks": entries})
        program = ["run.slurm.on_node", str(made.absolute())]
        (made / SCRIPT).write_text(batch_script(self._suite, program))
        return made

    def words(
        self, made: Path, tasks: Sequence[SlurmTask], excluded: Collection[str], node: str = ""
    ) -> list[str]:
        """The options of sbatch for these tasks, and the script.

        excluded: nodes that are left out. node: the only node that may do them; "": any node.
        """
        given = dict(self._options.sbatch) | ({"nodelist": node} if node else {})
        folder = made.absolute()
        words = ["--exclusive"] if self._exclusive else ["--cpus-per-task=1"]
        words += [f"--output={folder}/%a.log", f"--chdir={folder}"]
        if "mem" not in given:
            largest = max(task.job.guest.hardware.memory for task in tasks) >> 20
            words.append(f"--mem={largest + OVERHEAD_MIB}")
        if "time" not in given:
            limit_s = max(task.job.streams.limit_s for task in tasks)
            words.append(f"--time={MARGIN_MIN + int(limit_s * SLOWDOWN / 60)}")
        nodes = [*filter(None, [given.pop("exclude", "")]), *sorted(excluded)]
        words += [f"--{name}={value}" for name, value in given.items()]
        words += [f"--exclude={','.join(nodes)}"] if nodes else []
        return [*words, str(folder / SCRIPT)]


def _links(job: Job) -> dict[str, tuple[str, str]]:
    """The files that a job needs: place in the cache -> (digest, shared path)."""
    return {
        place: (digest, str(path.absolute()))
        for place, (digest, path) in sending.needed(job).items()
    }
