# SPDX-License-Identifier: GPL-2.0-or-later
"""Generates the C sources and headers that `shrinker` compiles; they are always the same.

Each source includes headers from all over the tree, as a kernel's sources do. So a compile looks up
many small files, for which the inode cache exists.
"""

from pathlib import Path

SOURCES = "src"  # each S.c becomes an S.o
INCLUDED = 16  # headers per source
FOLDER = 64  # files per folder
FUNCTIONS = 4  # functions per source


def make(tree: Path, objects: int, headers: int) -> None:
    """Write `objects` sources and `headers` headers below tree, which must not exist yet."""
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
    """C code that costs a compiler some work: loops, branches, calls of included functions."""
    # The strides are primes, so that for nearly all numbers of headers all folders are visited.
    included = sorted({(number * 7919 + k * 104_729) % headers for k in range(INCLUDED)})
    lines = [f'#include "{header(place)}"' for place in included]
    for k in range(FUNCTIONS):
        used = included[k % len(included)]
        lines += [
            f"int g{number}_{k}(struct s{used} *p, unsigned *v, int n)",
            "{",
            f"\tint i, sum = {k};",
            "\tfor (i = 0; i < n; i++) {",
            f"\t\tswitch (v[i] % {5 + k % 7}) {{",
            *(f"\t\tcase {c}: sum += f{used}(p, i) ^ v[i] << {c}; break;" for c in range(5)),
            f"\t\tdefault: v[i] = v[i] * {2 * k + 3}u + sum; sum -= v[(i + {k}) % n];",
            "\t\t}",
            "\t}",
            "\treturn sum;",
            "}",
        ]
    return "\n".join(lines) + "\n"
