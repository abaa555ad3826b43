#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs run_test.sh in a rootless container, for systems other than Debian. It only needs podman.
# usage: ./container.sh [OPTION of run_test.sh]…
# Results are in results/ here and belong to you; the cache is podman's volume desktop-freeze. The
# variable BASE names another base image than docker.io/library/debian:12.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
if ! command -v podman >/dev/null; then
    echo "container.sh: podman is missing (install it, then run this again)" >&2
    exit 3
fi
echo "container.sh: building the image desktop-freeze (the first time it takes minutes)"
podman build --quiet ${BASE:+--build-arg "BASE=$BASE"} --tag desktop-freeze . >/dev/null
mkdir -p results
# The disk model needs io_uring, which podman's system-call filter refuses; SELinux would deny the
# container access to results/.
options=(--security-opt "seccomp=unconfined" --security-opt "label=disable")
if [[ -r /dev/kvm && -w /dev/kvm ]]; then
    options+=(--device /dev/kvm --group-add keep-groups)
fi
if [[ -t 0 && -t 1 ]]; then
    options+=(--interactive --tty)
fi
exec podman run --rm "${options[@]}" --volume desktop-freeze:/cache \
    --volume "$PWD/results:/suite/results" desktop-freeze "$@"
