# SPDX-License-Identifier: GPL-2.0-or-later
"""Does a campaign's runs in Slurm: with sbatch, squeue, scancel and a shared folder."""
