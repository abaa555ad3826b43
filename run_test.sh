#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Reproduces a desktop freeze on a real kernel, measures it and draws it: see --help and README.md.
# Installs what is missing first (setup/packages.sh) unless --no-install, --dry-run or --bare.
set -euo pipefail

suite=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$suite
export PYTHONSAFEPATH=1 # a run.py or errors.py of the folder that this is called from is not ours

for option in "$@"; do
    case $option in
        --bare) exec python3 -S -m measure.one_run "$@" ;;
        -h | --help) exec python3 -m run.arguments --help ;;
        --version) exec python3 -m run.arguments --version ;;
    esac
done
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "run_test.sh: python3 of version 3.11 or newer is missing (install it, then run this again)" >&2
    exit 3
fi
how=$(PYTHONDONTWRITEBYTECODE=1 python3 -m run.arguments "$@") || exit $?
needs=()
case $how in
    dry-run) exec env PYTHONDONTWRITEBYTECODE=1 python3 -m run.dry_run "$@" ;;
    no-install*) needs+=(--no-install) ;;&
    *device) needs+=(--device) ;;
esac
"$suite/setup/packages.sh" "${needs[@]}"
exec "$suite/.venv/bin/python" -m run.main "$@"
