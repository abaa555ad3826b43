# SPDX-License-Identifier: GPL-2.0-or-later
"""A music player without a loudspeaker, and a heartbeat."""
