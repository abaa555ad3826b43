#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All checks and tests, with all set-up: `tests/run.sh`; `tests/run.sh -m 'not vm'` for the fast ones;
# `tests/run.sh --all` adds the slow ones: more kernels in VMs, fresh Debian hosts, a container, KVM
# (as root).
# Other arguments go to pytest. Without any, the fast tests share the CPUs, then the VMs on clocks of
# their own do, and then each other VM has them alone.
set -euo pipefail

export PATH=$PATH:/usr/sbin:/sbin
unset PYTHONDONTWRITEBYTECODE # without bytecode each pytest compiles all tests again: half a minute
cd "$(dirname "${BASH_SOURCE[0]}")/.."
setup/packages.sh --dev
bin=.venv/bin

echo "== ruff, mypy, shellcheck"
$bin/ruff check .
$bin/ruff format --check .
$bin/mypy .
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck

echo "== tests"
if (($#)) && [[ $* != --all ]]; then
    exec $bin/python -m pytest "$@"
fi
all=("$@")
failed=0
durations=(--durations 15 --durations-min 1)
$bin/python -m pytest -m "not vm and not slow" -n auto "${durations[@]}" || failed=1
by_file=(--dist loadfile --no-loadscope-reorder) # tests/conftest.py has the order
$bin/python -m pytest "${all[@]}" -m "vm and own_clock" -n auto "${by_file[@]}" "${durations[@]}" || failed=1
$bin/python -m pytest "${all[@]}" -m "vm and not own_clock" "${durations[@]}" || failed=1
if ((${#all[@]})); then
    $bin/python -m pytest --all -m "slow and not vm" "${durations[@]}" || failed=1
fi
exit $failed
