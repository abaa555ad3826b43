# SPDX-License-Identifier: GPL-2.0-or-later
"""Handles a stack by hand: python3 -m setup.crypt_lvm create|activate|… DEV."""

import argparse
import json
from pathlib import Path

from contract.swap import ON_DISK
from contract.swap import read as read_swap
from contract.values import size
from errors import Exit, UserError, run_command
from setup import crypt_lvm
from setup.crypt_lvm.activation import MOUNT, activate, deactivate
from setup.crypt_lvm.creation import create, destroy
from setup.crypt_lvm.stack import load
from setup.crypt_lvm.stack_build import FILE_SYSTEMS, SWAP_BYTES
from setup.crypt_lvm.status import status


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m setup.crypt_lvm", description=(crypt_lvm.__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument(
        "command", choices=("create", "activate", "deactivate", "destroy", "status")
    )
    parser.add_argument("device", metavar="DEV", help="an unused, empty partition, disk or file")
    parser.add_argument("--fs", choices=FILE_SYSTEMS, default="ext4")
    parser.add_argument("--no-crypt", action="store_true", help="put LVM directly on DEV")
    parser.add_argument("--swap-size", type=size, default=SWAP_BYTES, metavar="SIZE")
    parser.add_argument(
        "--swap",
        type=read_swap,
        default=ON_DISK,
        metavar="KIND",
        help="for activate: as run_test.sh's --swap",
    )
    parser.add_argument("--mount", type=Path, default=MOUNT, metavar="DIR")
    parser.add_argument("--destroy-data", metavar="DEV", help="DEV again: its data is lost")
    args = parser.parse_args()
    if args.command == "create":
        create(
            args.device,
            fs=args.fs,
            crypt=not args.no_crypt,
            swap_bytes=args.swap_size,
            destroy_data=args.destroy_data,
        )
    elif args.command != "status":
        stack = load(args.device)
        if stack is None:
            if args.command == "activate":
                raise UserError(f"{args.device}: nothing to activate", hint="create it first")
        elif args.command == "activate":
            activate(stack, args.mount, args.swap)
        else:
            {"deactivate": deactivate, "destroy": destroy}[args.command](stack)
    print(json.dumps(status(args.device), indent=1))
    return int(Exit.OK)


if __name__ == "__main__":
    raise SystemExit(run_command("crypt_lvm", main))
