#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All checks and tests, with all set-up: `tests/run.sh`; `tests/run.sh -m 'not vm'` for the fast ones.
# Arguments go to pytest.
set -euo pipefail

export PATH=$PATH:/usr/sbin:/sbin
cd "$(dirname "${BASH_SOURCE[0]}")/.."
setup/packages.sh --dev
bin=.venv/bin

echo "== ruff, mypy, shellcheck"
$bin/ruff check .
$bin/ruff format --check .
$bin/mypy .
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck

echo "== tests"
exec $bin/python -m pytest "$@"
