# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepares what a run needs: kernels, images, tools, devices, encrypted LVM."""
