# SPDX-License-Identifier: GPL-2.0-or-later
"""The two graphs of the original report, by gnuplot: the raw sawtooth and the smoothed comparison.

Input: a campaign. Output: gitk-latency.gp, gitk-latency-smooth.gp, their data gitk-latency-NN.dat,
and the two .png that `gnuplot FILE.gp` draws in the same folder; for workloads other than the
desktop sawtooth.gp and so on.
"""

import math
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from analysis.figures.metrics import Metric, metrics_of
from analysis.figures.stalls import worst
from analysis.reading.load import Campaign, Run
from analysis.reading.streams import Stream
from analysis.reading.words import safe_line, seconds
from analysis.verdicts.choice import (
    SHOWN,
    extremes,
    medians,
    ranked_by,
    shown_words,
    worst_subject,
)
from contract.run_files import COMPLETED
from contract.workload import DESKTOP
from errors import UserError
from graphs.pictures.names import sawtooth
from graphs.pictures.style import OPEN, WIDTH_PX, fitted_label, line_style, text_width

FONT = "DejaVu Sans"
GNUPLOT_S = 120  # time limit; a smooth curve through a million points takes long
DPI = 96  # of pngcairo: a font of 10 points is 13 pixels high
# Fonts may lack non-Latin letters, and pngcairo draws a missing glyph as a box that
# covers the whole picture. Letters from here on are replaced.
LATIN_END = "\u0250"
# Open gaps are marked from this length: shorter ones are invisible, and every program has one.
OPEN_SHOWN_S = 0.5


@dataclass(frozen=True)
class Tooth:
    """What is drawn for a variant: a subject of one of its runs."""

    run: Run
    runs: int
    stream: Stream
    data: str  # name of the data file
    place: int  # of the variant among all, which sets its colour in every picture

    @property
    def is_open(self) -> bool:
        """Whether the silence at the end is long enough to be visible."""
        return self.stream.open_gap >= OPEN_SHOWN_S


def write(
    campaign: Campaign, variants: list[str], report: Path, notes: list[str], suffix: str = ""
) -> list[Path]:
    """Write both scripts and their data into report; notes get what cannot be drawn.

    `variants`: in order, the baseline first; `suffix`: of file names, if there are several
    workloads.
    """
    runs = campaign.variants()
    median_runs = medians(campaign, variants)
    notes += [
        f"{safe_line(variant, 60)}: no {campaign.subject} ran, not in the sawtooth graphs"
        for variant in variants
        if variant not in median_runs
    ]
    desktop = all(run.workload.name == DESKTOP for run in median_runs.values())
    stem = sawtooth(desktop, suffix)
    teeth: list[Tooth] = []
    for variant in extremes(median_runs):
        run, count = median_runs[variant], len(teeth)
        # Variants have the same colours as elsewhere; if they are too many, only the shown ones.
        place = variants.index(variant) if len(median_runs) <= SHOWN else count
        data = f"{stem}-{count + 1:02d}.dat"
        teeth.append(Tooth(run, len(runs[variant]), worst_subject(run), data, place))
    if not teeth:
        return []
    made = [_write(report / tooth.data, _data(tooth)) for tooth in teeth]
    left_out = shown_words(SHOWN, len(median_runs), _primary(teeth))
    raw = _write(report / f"{stem}.gp", _sawtooth(stem, teeth, left_out))
    smooth = _write(report / f"{stem}-smooth.gp", _smooth(stem, teeth, left_out))
    return [raw, smooth, *made]


def draw(sources: list[Path]) -> list[Path]:
    """Draw the scripts among the sources; UserError if gnuplot is missing or fails."""
    scripts = [path for path in sources if path.suffix == ".gp"]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_gnuplot, scripts))


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _gnuplot(script: Path) -> Path:
    """Run gnuplot on a script in the script's folder, without the user's .gnuplot."""
    command = ["gnuplot", "--default-settings", script.name]
    picture = script.with_suffix(".png")
    picture.unlink(missing_ok=True)  # an old picture must not be taken for the new one
    try:
        done = subprocess.run(
            command, cwd=script.parent, capture_output=True, text=True, timeout=GNUPLOT_S
        )
    except FileNotFoundError:
        raise UserError("gnuplot is missing", hint="apt-get install gnuplot-nox") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"gnuplot took longer than {GNUPLOT_S} s on {script}") from None
    if done.returncode or not picture.is_file():
        message = safe_line(done.stderr.strip() or f"status {done.returncode}")
        raise UserError(f"gnuplot failed on {script}: {message}")
    return picture


def _data(tooth: Tooth) -> str:
    """The data file. Block 0: elapsed and gap of each line. Block 1, if any: the open gap."""
    stream = tooth.stream
    rows = [
        f"# {quoted(tooth.run.label)}, run {tooth.run.number}, {safe_line(stream.name)}",
        "# elapsed_s gap_s; the second block: the silence at the end",
    ]
    rows += [f"{t:.3f} {g:.3f}" for t, g in zip(stream.elapsed, stream.gap, strict=True)]
    if not len(stream.elapsed):
        rows.append(f"{stream.begin:.3f} 0.000")
    if tooth.is_open:
        rows += ["", "", f"{stream.last:.3f} 0.000", f"{stream.until:.3f} {stream.open_gap:.3f}"]
    return "\n".join(rows) + "\n"


def quoted(text: str) -> str:
    """A gnuplot string literal for this text, without escapes, commands or macros."""
    # Single quotes keep gnuplot from interpreting backquotes, @ and backslashes. A doubled quote
    # should mean a quote, but gnuplot 5.4 fails if it is at the beginning.
    text = "".join(char if char < LATIN_END else "?" for char in safe_line(text, 400))
    return "'" + text.replace("'", "\u2019") + "'"


def _head(picture: str, width: int, height: int, size: int = 10) -> str:
    return (
        "# SPDX-License-Identifier: GPL-2.0-or-later\n"
        f"# Change it and run `gnuplot {picture.removesuffix('.png')}.gp` in this folder.\n"
        "set encoding utf8\n"
        f"set terminal pngcairo noenhanced size {width},{height} font '{FONT},{size}'\n"
        f"set output '{picture}'\n"
        "set border 3\nset tics nomirror out\nset grid xtics ytics lt 1 lw 0.6 lc rgb '#DDDDDD'\n"
    )


def _label(number: int, text: str, below: float, height: int, size: int) -> str:
    """A centred text, `below` pixels below the picture's upper edge."""
    place = f"at screen 0.5,{1 - below / height:.4f} center font '{FONT},{size}'"
    return f"set label {number} {quoted(text)} {place}"


def _limits(teeth: list[Tooth]) -> tuple[float, float]:
    """The limits of both axes of all panels: elapsed and gap, in seconds."""
    across = max(tooth.stream.until for tooth in teeth)
    up = max(worst(tooth.stream) for tooth in teeth)
    return max(across * 1.01, 1.0), max(up * 1.05, 0.1)


def _titles(tooth: Tooth, pixels: float) -> tuple[str, str]:
    """Two lines above a panel: the variant, and its worst gap."""
    run, stream = tooth.run, tooth.stream
    which = f", run {run.number} of {tooth.runs} (median)" if tooth.runs > 1 else ""
    label = fitted_label(run.label, pixels - text_width(which, 10, DPI), 10, DPI) + which
    end = safe_line(run.state, 20)
    return label, f"worst gap {seconds(worst(stream))}; {end} after {seconds(stream.until)}"


def _what(teeth: list[Tooth]) -> str:
    names = sorted({tooth.stream.name for tooth in teeth})
    return f"Gap before each line of {' or '.join(names)}"


def _which(teeth: list[Tooth], left_out: str) -> str:
    """A phrase about the selection, if not all runs are drawn."""
    several = any(tooth.runs > 1 for tooth in teeth)
    drawn = f"of each variant the run with the median {ranked_by(_primary(teeth))}"
    return "; ".join(part for part in (left_out, drawn if several else "") if part)


def _primary(teeth: list[Tooth]) -> Metric:
    """The metric that verdicts on the first run's workload compare."""
    return metrics_of(teeth[0].run.workload)[0]


def _sawtooth(stem: str, teeth: list[Tooth], left_out: str) -> str:
    """The script with a panel per kernel, on the same axes; margins make the panels align."""
    across = 1 if len(teeth) <= 4 else 2 if len(teeth) <= 24 else 3
    down = -(-len(teeth) // across)
    panel = {1: 330, 2: 260, 3: 220, 4: 200}.get(down, 165)
    which = _which(teeth, left_out)
    top, bottom, left, right = 62 if which else 44, 84, 64, 14
    height = top + down * panel + bottom
    x_limit, y_limit = _limits(teeth)
    cell = (WIDTH_PX - left - right) / across
    title = _what(teeth)
    script = [
        _head(f"{stem}.png", WIDTH_PX, height),
        f"set multiplot\nset xrange [0:{x_limit:.3f}]\nset yrange [0:{y_limit:.3f}]\nunset key\n"
        f"set ytics {_step(y_limit, panel / 42)}",
        _label(1, title, 16, height, 13),
        _label(4, which, 38, height, 9),
        f"set label 2 'time since the start of the workload (s)' at screen 0.5,{44 / height:.4f} "
        "center",
        f"set label 3 'gap since the line before (s)' at screen {14 / WIDTH_PX:.4f},"
        f"{(bottom + down * panel / 2) / height:.4f} center rotate by 90",
    ]
    for index, tooth in enumerate(teeth):
        row, column = divmod(index, across)
        x0, y0 = left + column * cell, bottom + (down - 1 - row) * panel
        first, second = _titles(tooth, cell - 24)
        lowest = index + across >= len(teeth)
        script += [
            f"\n# {quoted(tooth.run.label)}",
            f"set lmargin at screen {x0 / WIDTH_PX:.4f}",
            f"set rmargin at screen {(x0 + cell - 24) / WIDTH_PX:.4f}",
            f"set bmargin at screen {(y0 + 22) / height:.4f}",
            f"set tmargin at screen {(y0 + panel - 40) / height:.4f}",
            f'set title {quoted(first)}."\\n".{quoted(second)} offset 0,-0.6',
            "set format x" + ("" if lowest else " ''"),
            "set format y" + ("" if column == 0 else " ''"),
            _panel(tooth),
            *("unset label" for _ in range(index == 0)),
        ]
    return "\n".join(script) + "\n" + _key(teeth, height) + "unset multiplot\n"


def _step(limit: float, ticks: float) -> str:
    """A round distance between ticks, so that about `ticks` of them fit."""
    rough = limit / max(2.0, ticks)
    power = 10.0 ** math.floor(math.log10(rough))
    return f"{next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999):.12g}"


def _panel(tooth: Tooth) -> str:
    colour, _ = line_style(tooth.place)
    # A tooth rises during the gap, to the height of the gap, and then falls at once.
    parts = [
        f"'{tooth.data}' index 0 using ($1-$2):(0):2:2 with vectors nohead lw 1.3 "
        f"lc rgb '{colour}'",
        f"'{tooth.data}' index 0 with impulses lw 1.3 lc rgb '{colour}'",
    ]
    return "plot " + ", \\\n     ".join(parts + _open_gap(tooth, OPEN))


def _open_gap(tooth: Tooth, colour: str, dash: int = 2) -> list[str]:
    if not tooth.is_open:
        return []
    return [
        f"'{tooth.data}' index 1 with lines lw 2 dt {dash} lc rgb '{colour}'",
        f"'{tooth.data}' index 1 every ::1 with points pt 6 ps 1.4 lw 2 lc rgb '{colour}'",
    ]


def _key(teeth: list[Tooth], height: int) -> str:
    """A legend for all panels, in a strip below them."""
    entries = ["NaN with lines lw 1.3 lc rgb '#555555' title 'gap before the line printed then'"]
    if any(tooth.is_open for tooth in teeth):
        entries.append(
            f"NaN with linespoints lw 2 dt 2 pt 6 ps 1.4 lc rgb '{OPEN}' "
            "title 'silent at the end: no line ended this gap (open gap)'"
        )
    return (
        "\n# The key\nreset\nunset border\nunset tics\n"
        "set lmargin at screen 0.05\nset rmargin at screen 0.98\n"
        f"set bmargin at screen {2 / height:.4f}\nset tmargin at screen {30 / height:.4f}\n"
        "set key center center horizontal Left reverse samplen 5 width 2\n"
        "plot [0:1] [0:1] " + ", \\\n     ".join(entries) + "\n"
    )


def _smooth(stem: str, teeth: list[Tooth], left_out: str) -> str:
    """The script with all kernels in one picture; legend and caption say what the curves hide."""
    across = 1 if len(teeth) == 1 else 2
    rows = -(-len(teeth) // across)
    key, caption = 15 * rows + 16, 44
    title, which = f"{_what(teeth)}, smoothed (bezier)", _which(teeth, left_out)
    top = 62 if which else 44
    height = top + 456 + key + caption
    x_limit, _ = _limits(teeth)
    bottom = (key + caption + 56) / height
    script = [
        _head(f"{stem}-smooth.png", WIDTH_PX, height),
        f"set xrange [0:{x_limit:.3f}]\nset yrange [0:STATS_max * 1.1 + 0.01]",
        _label(5, title, 16, height, 13),
        _label(6, which, 38, height, 9),
        "set xlabel 'time since the start of the workload (s)'",
        "set ylabel 'smoothed gap (s)'",
        f"set lmargin at screen 0.07\nset rmargin at screen 0.98\nset tmargin at screen "
        f"{1 - top / height:.4f}\nset bmargin at screen {bottom:.4f}",
        "unset key",
        "set label 1 'Smoothing hides peaks: a curve is not the gap. The worst gap of each kernel "
        f"is in the key; the sawtooth shows every gap.' at screen 0.5,{28 / height:.4f} center",
    ]
    if any(tooth.is_open for tooth in teeth):
        script.append(
            "set label 2 'Dotted: silent at the end (open gap), not smoothed, and higher than the "
            f"picture if need be.' at screen 0.5,{11 / height:.4f} center"
        )
    parts: list[str] = []
    open_gaps: list[str] = []
    for index, tooth in enumerate(teeth):
        colour, dash = line_style(tooth.place)
        dashes = ("1", "(14,6)", "(4,4)", "(2,6)")[dash - 1]
        line = f"lw 2.5 dt {dashes} lc rgb '{colour}'"
        curve = "smooth bezier with lines" if len(tooth.stream.elapsed) > 2 else "with lines"
        parts.append(f"'{tooth.data}' index 0 {curve} {line}")
        open_gaps += _open_gap(tooth, colour, 3)[:1]
        below = height - caption - key + 10 + 15 * (index // across)
        script += _key_entry(tooth, index % across, across, 1 - below / height, line)
    # Plotted twice: only the curves set the height; with open gaps the curves would be flat.
    curves, everything = (", \\\n     ".join(group) for group in (parts, parts + open_gaps))
    script.insert(
        1,
        f"set samples 1000\nset table $curves\nplot {curves}\nunset table\n"
        "stats $curves using 2 nooutput",
    )
    script.append(f"plot {everything}")
    return "\n".join(script) + "\n"


def _key_entry(tooth: Tooth, column: int, across: int, up: float, line: str) -> list[str]:
    """A legend entry, line and text. (gnuplot's own legend guesses widths of texts wrongly.)"""
    figure = f", run {tooth.run.number} of {tooth.runs}" if tooth.runs > 1 else ""
    figure += f": worst gap {seconds(worst(tooth.stream))}"
    figure += "" if tooth.run.state == COMPLETED else f", {safe_line(tooth.run.state, 10)}"
    left, width = 0.07 + column * 0.91 / across, 0.91 / across
    room = (width - 0.08) * WIDTH_PX - text_width(figure, 9, DPI)
    text = quoted(fitted_label(tooth.run.label, room, 9, DPI) + figure)
    return [
        f"set arrow from screen {left:.4f},{up:.4f} to screen {left + 0.04:.4f},{up:.4f} "
        f"nohead {line}",
        f"set label {text} at screen {left + 0.05:.4f},{up:.4f} font '{FONT},9'",
    ]
