# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that load the machine: one module per workload."""
