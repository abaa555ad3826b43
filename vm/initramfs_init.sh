#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# /init of the initramfs (busybox): load the modules, find the disks by their serials, start the
# suite's guest_init.sh. With probe=1 on the command line: say so on the console and power off.
# Lines for the host begin with DESKTOP-FREEZE-.
set -u

say() {
    echo "DESKTOP-FREEZE-$*" >/dev/console
}

give_up() {
    say "INIT failed: $*"
    sleep 1
    poweroff -f
    exit 1
}

mkdir -p /proc /sys /dev /root-mnt
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev || say "INIT no devtmpfs"

case " $(cat /proc/cmdline) " in
*" probe=1 "*)
    say "PROBE user space reached"
    # The serial port's buffer is sent by interrupt: give it time before the power goes.
    sleep 1
    poweroff -f
    ;;
esac

# One module a line, in order of dependence; "-" before the name: its failure is no news (a CPU
# without AES instructions, for example).
while read -r module; do
    case "$module" in
    -*) insmod "/modules/${module#-}" 2>/dev/null ;;
    *) error=$(insmod "/modules/$module" 2>&1) || say "INIT module $module: $error" ;;
    esac
done </modules.list

disk_with_serial() {
    for serial in /sys/block/*/serial; do
        [ -r "$serial" ] || continue
        if [ "$(cat "$serial")" = "$1" ]; then
            device=${serial%/serial}
            echo "/dev/${device##*/}"
            return 0
        fi
    done
    return 1
}

wait_for_disk() {
    tenths=0
    until disk_with_serial "$1"; do
        tenths=$((tenths + 1))
        [ "$tenths" -lt 200 ] || return 1
        sleep 0.1
    done
}

root=$(wait_for_disk root) || give_up "no disk with the serial root after 20 s"
mount -t ext4 -o rw,noatime "$root" /root-mnt || give_up "cannot mount $root"
job=$(wait_for_disk job) || give_up "no disk with the serial job after 20 s"
mount -t ext4 -o ro "$job" /root-mnt/job || give_up "cannot mount $job"

for tree in /proc /sys /dev; do
    mount -o move "$tree" "/root-mnt$tree" || give_up "cannot move $tree"
done
exec switch_root /root-mnt /bin/sh /job/suite/vm/guest_init.sh
