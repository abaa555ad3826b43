#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Measures each kernel that is new since the last night, then prints the trend over all nights: see
# --help and docs/guides/ci-nightly.md. setup/systemd/ has the units for a timer.
set -euo pipefail

suite=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$suite
export PYTHONSAFEPATH=1

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "nightly.sh: python3 of version 3.11 or newer is missing (install it, then run this again)" >&2
    exit 3
fi
PYTHONDONTWRITEBYTECODE=1 python3 -m run.nightly_options "$@" || exit $?
for option in "$@"; do
    case $option in
        -h | --help) exit 0 ;;
    esac
done
"$suite/setup/packages.sh"
exec "$suite/.venv/bin/python" -m run.nightly "$@"
