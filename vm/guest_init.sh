#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PID 1 of the guest: sets up the little that run_test.sh expects, runs the job, and powers off.
# Input: /job (read-only: suite/, run/command), the disks with the serials "work" and "history", and
# the PCI device whose memory takes the results (contract/results_memory.py).
set -eu

# PID 1 must not end: the kernel would panic without being at fault.
# shellcheck disable=SC2317  # called by the trap
power_off() {
    status=$?
    if [ "$status" -ne 0 ]; then
        echo "DESKTOP-FREEZE-INIT failed: guest_init.sh ended with status $status"
    fi
    sync
    echo o >/proc/sysrq-trigger
    # The disks vanish first: a program that is started or read from now on dies, and PID 1 with it.
    read -r _ </run/never || sleep 60
}
trap power_off EXIT

export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONPATH=/suite

mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/results /run/lock /history /dev/pts /dev/shm
mkfifo /run/never
mount -t devpts devpts /dev/pts
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true

# Shell builtins where possible: starting a program takes 50 ms on an emulated machine.
memory=
for device in /sys/bus/pci/devices/*; do
    read -r vendor <"$device/vendor"
    read -r kind <"$device/device"
    [ "$vendor $kind" = "0x1af4 0x1110" ] || continue # QEMU's ivshmem
    echo 1 >"$device/enable"
    memory=$device/resource2_wc
done
if [ ! -e "$memory" ]; then
    # Without it the measuring program would notice nothing, and its results would be lost.
    echo "DESKTOP-FREEZE-INIT failed: no ${memory:-PCI device} to write the results to (the kernel needs CONFIG_X86_PAT, and no nopat)"
    exit 0 # power_off() need not report it again
fi
ln -s "$memory" /run/results/.results-memory
for serial in /sys/block/vd*/serial; do
    # The file has no newline at its end: read fails because of that, but has read the name.
    read -r name <"$serial" || true
    block=${serial%/serial}
    case $name in
        work) WORK=/dev/${block##*/} ;;
        history) mount -o ro "/dev/${block##*/}" /history ;;
        music)
            # A guest with its own clock cannot wait for another machine: the music is on a disk.
            mkdir -p /music
            mount -o ro "/dev/${block##*/}" /music
            ;;
    esac
done
export WORK

ip link set lo up
for nic in /sys/class/net/e*; do
    [ -e "$nic" ] || continue
    ip addr add 10.0.2.15/24 dev "${nic##*/}"
    ip link set "${nic##*/}" up
done

# Program text lives on a real disk, as on a desktop: it can be evicted and must be read again.
cp -r /job/suite /suite
status=0
sh /job/run/command || status=$?
echo "desktop-freeze: the guest's command ended with status $status"
exit 0
