# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds kernels from a git tree, a folder or Debian's sources.

It takes three steps, which only read the user's files:

    source = sources.from_git(Path("~/linux"), "v7.2")      # or from_folder(), from_debian()
    patched = changes.patched(source, [Path("fix.patch")])  # or reverted(source, "acd22fbb9f47")
    kernel = build.build_kernel(patched, config, progress=print_progress)

`sources`: a Source is a git tree in an object store, whose id stands for the bytes of all files.
`changes`: patches and reverts make a new Source from another. `configs`: finds the configuration.
`build`: compiles the kernel with the tools of `toolchain`, or takes it from the cache. `failures`:
errors of one kernel, after which the others go on. `specs`: how a command line and a plan.toml
spell all this.
"""
