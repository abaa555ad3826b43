# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commit made it worse: kernels of a row of commits, built and run one after the other.

A bisect's folder holds bisect.json (`state`) and ordinary campaigns: `ends`, `search`, and
`finding-1` and so on. `rows` says which commits there are, `builder` makes their kernels,
`search_runs` decides which is run next by the package `bisection`, `memory` gives each the same
MemAvailable, `results` reads what a run or a campaign came to, `report` says it.
"""
