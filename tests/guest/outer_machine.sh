#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PID 1 of an emulated machine with /dev/kvm, whose root file system is a whole Debian: runs
# /job/run/command there and sends what is in /results to the disk "results", as a tar.
# The initramfs is the suite's own (vm/initramfs_init.sh); it starts this as /job/suite/vm/guest_init.sh.
set -u

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root USER=root LANG=C.UTF-8
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/pts /dev/shm /results
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
mkfifo /run/never

# QEMU's user network, and what answers it, are on 127.0.0.1.
python3 -c 'import fcntl, socket, struct
up = struct.pack("16sh14x", b"lo", 0x49)  # IFF_UP, IFF_LOOPBACK, IFF_RUNNING
fcntl.ioctl(socket.socket(), 0x8914, up)  # SIOCSIFFLAGS'

sh -e /job/run/command </dev/null
echo "OUTER-MACHINE the command ended with status $?"

for serial in /sys/block/vd*/serial; do
    read -r name <"$serial" || true # no newline at its end
    [ "$name" = results ] || continue
    block=${serial%/serial}
    tar -C /results -cf "/dev/${block##*/}" .
done
sync
echo o >/proc/sysrq-trigger
# The disks vanish first: a program that is started from now on dies, and PID 1 with it.
read -r _ </run/never || sleep 60
