# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the commit that made stalls worse: builds and runs kernels of a row of commits.

A bisect's folder holds bisect.json (`state`) and ordinary campaigns: `ends`, `search`,
`finding-1` and so on. `rows` lists the commits, `builder` makes their kernels, `search_runs`
chooses the next kernel to run with the package `bisection`, `memory` gives all kernels the same
MemAvailable, `results` reads the results of runs and campaigns, `report` writes the report.
"""
