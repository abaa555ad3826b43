# SPDX-License-Identifier: GPL-2.0-or-later
"""What `measure` and `analysis` share: formats, names, options, levels. Imports neither package."""
