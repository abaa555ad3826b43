# SPDX-License-Identifier: GPL-2.0-or-later
"""./container.sh in rootless podman, on a host that has nothing else: the same run as anywhere."""

import json
from collections.abc import Callable

import pytest

from contract.run_files import STATUS
from tests.hosts.test_fresh_debian import main_job, same_bytes
from tests.support.fleet import Fleet, meta_of
from tests.support.fresh_host import ROOT, NoSuite

pytestmark = [pytest.mark.slow, pytest.mark.jobs("container", "12 root")]


@pytest.mark.timeout(2700)
def test_the_main_job_in_a_container(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    try:
        job = fleet.container().result()
    except NoSuite as error:
        pytest.skip(str(error))
    assert job.output.status == 0, job.output.text
    record_property("measured", f"./container.sh, image and all: {job.output.seconds:.0f} s")
    assert json.loads((job.run / STATUS).read_text())["state"] == "completed"
    # Root in the container is the user outside.
    clone = job.host.path(job.clone)
    assert {path.stat().st_uid for path in job.results.rglob("*")} == {clone.stat().st_uid}
    outside = main_job(fleet, "12", ROOT)
    assert meta_of(job.run)["guest"] == meta_of(outside.run)["guest"]
    assert same_bytes(job.run, outside.run) == []
