# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's runs in Slurm's queue: sbatch, squeue and scancel, and a shared folder."""
