# SPDX-License-Identifier: GPL-2.0-or-later
"""What has to be there before anything runs."""
