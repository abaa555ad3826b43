#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what the suite needs on this machine: Debian packages with apt-get, and a Python
# environment in .venv from pinned requirements. Safe to repeat; prints nothing if all is there.
#
# usage: setup/packages.sh [--list | --no-install] [--dev] [--device]
#   --list        print the packages and exit
#   --no-install  only check; exit 3 and name what is missing and how to install it
#   --dev         also what the tests and checks need
#   --device      also what a test of this machine itself needs (run_test.sh --device)
# exit status: 0 all there, 2 usage, 3 something is missing
set -euo pipefail

name=setup/packages.sh
again=$name # the command that repeats this call
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=(
    debian-archive-keyring
    fonts-dejavu-core
    git
    gnuplot-nox
    kmod
    mmdebstrap
    python3-pexpect
    rsync
    uidmap
    util-linux
    xz-utils
    zstd
)
python_package=python3-venv
list=0 install=1 dev=0

usage() {
    sed -n '/^# usage:/,/^# exit status/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

for argument in "$@"; do
    case "$argument" in
    --list) list=1 ;;
    --no-install) install=0 ;;
    --dev) dev=1 again+=" --dev" ;;
    --device)
        packages+=(cryptsetup-bin e2fsprogs lvm2 xfsprogs)
        again+=" --device"
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        echo "$name: unknown option $argument (see --help)" >&2
        exit 2
        ;;
    esac
done
if ((dev)); then
    packages+=(busybox-static chromium e2fsprogs gcc gitk gpg gpg-agent libbpf-dev libc6-dev libelf-dev
        liburing-dev make openssh-client shellcheck xterm xvfb zlib1g-dev)
fi

missing_packages() {
    # Packages that are not "install ok installed"; one that dpkg does not know is missing, too.
    local status
    status=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
    local package
    for package in "${packages[@]}"; do
        grep -q "^.i  *$package\$" <<<"$status" || echo "$package"
    done
    # python3-venv is only needed for ensurepip, which other Pythons include.
    if [[ ! -x $root/.venv/bin/python ]] && ! python3 -c 'import ensurepip' 2>/dev/null; then
        echo "$python_package"
    fi
}

apt_get() {
    # --force-confold: ask no question about the user's configuration files.
    local command=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q
        -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold "$@")
    if ((EUID != 0)); then
        command=(sudo "${command[@]}")
    fi
    local log
    log=$(mktemp)
    if ! "${command[@]}" >"$log" 2>&1; then
        cat "$log" >&2
        local reason
        reason=$(grep '^E: ' "$log" | tail -n 1 || true)
        rm -f "$log"
        echo "$name: apt-get failed: ${reason:-see above} (then again: $again)" >&2
        exit 3
    fi
    rm -f "$log"
}

install_packages() {
    # Install the given packages; .venv is made while most of them are installed.
    local missing=("$@")
    if ((EUID != 0)) && ! command -v sudo >/dev/null; then
        echo "$name: missing: ${missing[*]} (as root: apt-get install --no-install-recommends" \
            "${missing[*]})" >&2
        exit 3
    fi
    echo "$name: installing ${missing[*]}"
    apt_get update
    if [[ " ${missing[*]} " == *" $python_package "* ]]; then
        apt_get install --no-install-recommends "$python_package"
    fi
    # In the background, where Ctrl-C does not reach it: dpkg must not be interrupted half-way.
    apt_get install --no-install-recommends "${missing[@]}" &
    trap wait EXIT
    make_environment
    trap - EXIT
    wait $!
}

make_environment() {
    local requirements=$root/requirements.txt
    if ((dev)); then
        requirements=$root/requirements-dev.txt
    fi
    local venv=$root/.venv
    local stamp=$venv/requirements.sha256 wanted
    wanted=$(cat "$root"/requirements*.txt | sha256sum | cut -d ' ' -f 1)-${requirements##*/}
    if [[ -x $venv/bin/python && -f $stamp ]]; then
        # An environment for development has all that a test needs.
        case "$(<"$stamp")" in
        "$wanted" | "${wanted/requirements.txt/requirements-dev.txt}") return ;;
        esac
    fi
    if ((!install)); then
        echo "$name: .venv is missing or not made from today's ${requirements##*/} (run $again)" >&2
        exit 3
    fi
    # If two runs start together, the second waits and then has nothing to do.
    if [[ -z ${venv_locked-} ]]; then
        venv_locked=1
        exec 9<"$requirements"
        flock 9
        make_environment
        return
    fi
    echo "$name: making .venv from ${requirements##*/}"
    # Without its stamp an environment is made again, so that an interruption leaves nothing half
    # done.
    rm -f "$stamp"
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -rf "$venv"
        if ! python3 -m venv "$venv"; then
            echo "$name: python3 -m venv failed (see above; then again: $again)" >&2
            exit 3
        fi
    fi
    if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check \
        --root-user-action=ignore -r "$requirements"; then
        echo "$name: pip could not fill .venv (see above; then again: $again)" >&2
        exit 3
    fi
    echo "$wanted" >"$stamp"
}

if ((list)); then
    printf '%s\n' "${packages[@]}" "$python_package"
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "$name: this system has no apt: run the suite in a container, ./container.sh and the" \
        "options of run_test.sh ('Other distributions' in README.md)" >&2
    exit 3
fi
mapfile -t missing < <(missing_packages)
if ((${#missing[@]})); then
    if ((!install)); then
        echo "$name: missing: ${missing[*]} (install with: $again, or" \
            "apt-get install --no-install-recommends ${missing[*]})" >&2
        exit 3
    fi
    install_packages "${missing[@]}"
else
    make_environment
fi
