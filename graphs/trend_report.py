# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the trend's files: the picture, the text, and all figures."""

from pathlib import Path

from analysis.text import trend as trend_text
from analysis.trends import export
from analysis.trends.trend import Trend
from errors import UserError
from graphs.pictures import trend as picture


def write(trend: Trend, folder: Path) -> list[Path]:
    """Write trend.png, trend.txt and trend.json; UserError if the folder cannot be written."""
    texts = {"trend.txt": trend_text.text(trend), "trend.json": export.json_text(trend)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = [folder / "trend.png", *(folder / name for name in texts)]
        for path in made:
            path.unlink(missing_ok=True)  # else a link would lead out of the folder
        picture.draw(trend, made[0])
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror}") from error
    return made
