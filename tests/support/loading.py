# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: from the files of one run to the run as analysis reads it."""

import json
from pathlib import Path

from analysis.reading.load import Run, load_campaign
from benchmarks.synthetic_results.make import meta, write_run


def one_run(folder: Path, files: dict[str, str | bytes], **status: object) -> Run:
    files = {"meta.json": json.dumps(meta("k")), **files}
    write_run(folder / "k" / "1", files, **status)  # type: ignore[arg-type]
    return load_campaign(folder).runs[0]
