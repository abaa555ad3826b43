# SPDX-License-Identifier: GPL-2.0-or-later
"""What the compile of `shrinker` compiles: a made tree of C sources and headers, the same always.

Each source includes headers from all over the tree, as a kernel's do: a compile looks up many
small files, which is what an inode cache is for.
"""

from pathlib import Path

SOURCES = "src"  # each S.c becomes an S.o
INCLUDED = 16  # headers of each source
FOLDER = 64  # files in one folder
FUNCTIONS = 4  # of each source


def make(tree: Path, objects: int, headers: int) -> None:
    """Write `objects` sources and `headers` headers below tree, which is not there yet."""
    for number in range(headers):
        path = tree / header(number)
        if number % FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_text(_header(number))
    (tree / SOURCES).mkdir(parents=True)
    for number in range(objects):
        source(tree, number).write_text(_source(number, headers))


def source(tree: Path, number: int) -> Path:
    """The path of a source."""
    return tree / SOURCES / f"s{number}.c"


def header(number: int) -> str:
    """The path of a header below the tree."""
    return f"include/d{number // FOLDER}/h{number}.h"


def _header(number: int) -> str:
    return (
        f"#ifndef H{number}\n#define H{number}\n"
        f"struct s{number} {{ int a, b; struct s{number} *next; }};\n"
        f"static inline int f{number}(struct s{number} *p, int n)\n"
        f"{{\n\twhile (p && n--)\n\t\tp = p->next;\n\treturn p ? p->a * {number} + p->b : n;\n}}\n"
        "#endif\n"
    )


def _source(number: int, headers: int) -> str:
    """C that takes a compiler some work: loops, branches, calls of what it includes."""
    # A stride that has no factor in common with any number of headers visits all folders.
    included = sorted({(number * 7919 + k * 104_729) % headers for k in range(INCLUDED)})
    lines = [f'#include "{header(one)}"' for one in included]
    for k in range(FUNCTIONS):
        one = included[k % len(included)]
        lines += [
            f"int g{number}_{k}(struct s{one} *p, unsigned *v, int n)",
            "{",
            f"\tint i, sum = {k};",
            "\tfor (i = 0; i < n; i++) {",
            f"\t\tswitch (v[i] % {5 + k % 7}) {{",
            *(f"\t\tcase {c}: sum += f{one}(p, i) ^ v[i] << {c}; break;" for c in range(5)),
            f"\t\tdefault: v[i] = v[i] * {2 * k + 3}u + sum; sum -= v[(i + {k}) % n];",
            "\t\t}",
            "\t}",
            "\treturn sum;",
            "}",
        ]
    return "\n".join(lines) + "\n"
