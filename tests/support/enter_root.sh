#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a program in a root file system as if it were a machine's own. Needs root.
# usage: enter_root.sh ROOT USER FOLDER [NAME=VALUE]… PROGRAM [ARGUMENT]…
# The mounts are private, and all that the program started ends with it, and with this script.
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
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
mount --rbind /sys "$root/sys"
# cgroup v2, as Debian has it, whatever this machine has.
umount --recursive "$root/sys/fs/cgroup"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
# What udev opens to all, on machines where it runs.
for name in fuse net/tun; do
    if [[ -e /dev/$name ]]; then
        read -r major minor < <(stat -c '%Hr %Lr' "/dev/$name")
        mknod -m 0666 "$root/run/node" c "$major" "$minor"
        mount --bind "$root/run/node" "$root/dev/$name"
        rm "$root/run/node"
    fi
done
cd "$root"
pivot_root . mnt
umount --lazy /mnt
mount --make-rshared / # as systemd does
hostname "$(</etc/hostname)"
cd "$folder"
home=$(getent passwd "$user" | cut -d : -f 6)
# Not exec: this is PID 1 of the namespace, and reaps what nobody else does. A session of its own:
# the process group that this script is in has no number in the namespace.
setsid --wait setpriv --reuid="$user" --regid="$user" --init-groups --reset-env \
    env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" \
    USER="$user" LOGNAME="$user" LANG=C.UTF-8 "$@" </dev/null &
wait $!
