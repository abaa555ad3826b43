# SPDX-License-Identifier: GPL-2.0-or-later
"""What measuring and judging agree on: formats, names, options, levels. Imports neither."""
