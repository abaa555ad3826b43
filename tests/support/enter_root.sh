#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a program in a root file system as if it were a machine's own. Needs root.
# usage: enter_root.sh ROOT USER FOLDER [NAME=VALUE]… PROGRAM [ARGUMENT]…
# The mounts are private, and all that the program started ends with it, and with who called this.
set -euo pipefail

if [[ ${1-} != --inside ]]; then
    exec unshare --mount --propagation private --pid --ipc --uts --fork --kill-child \
        -- "${BASH_SOURCE[0]}" --inside "$@"
fi
root=$2 user=$3 folder=$4
shift 4

# pivot_root, not chroot: in a chroot nobody may make a user namespace.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
cd "$root"
pivot_root . mnt
umount --lazy /mnt
hostname "$(</etc/hostname)"
cd "$folder"
home=$(getent passwd "$user" | cut -d : -f 6)
# Not exec: this is PID 1 of the namespace, and reaps what nobody else does.
setpriv --reuid="$user" --regid="$user" --init-groups --reset-env \
    env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" \
    USER="$user" LOGNAME="$user" LANG=C.UTF-8 "$@" </dev/null &
wait $!
