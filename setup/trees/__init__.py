# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built here, from a git tree, a folder or Debian's sources.

Three steps, each of which only reads what the user has:

    source = sources.from_git(Path("~/linux"), "v7.2")      # or from_folder(), from_debian()
    patched = changes.patched(source, [Path("fix.patch")])  # or reverted(source, "acd22fbb9f47")
    kernel = build.build_kernel(patched, config, progress=print_progress)

`sources`: a Source is a git tree in an object store, so its id stands for the bytes of all files.
`changes`: patches and reverts make another Source of one. `configs`: what it is configured with.
`build`: compiles it with the tools of `toolchain`, or takes it from the cache. `failures`: all that
can go wrong with one kernel while the others go on. `specs`: how a command line and a plan.toml
spell all this.
"""
