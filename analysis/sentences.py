# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts in words: what was measured, how sure it is, and what would make it sure."""

from analysis.metrics import Metric
from analysis.verdict import MANY, Comparison, Failures, Sample
from analysis.words import plural


def p_word(p: float) -> str:
    """'p = 0.016', 'p < 0.0001'."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def times(ratio: float) -> str:
    """A ratio with as many decimals as it can carry: 0.50, 12.3, 1,234."""
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"


def amount(metric: Metric, value: float) -> str:
    """'31.4 s'."""
    unit = {"%": " %", "": ""}.get(metric.unit, f" {metric.unit}")
    return f"{value:,.{metric.digits}f}{unit}"


def runs_word(size: int, others: int) -> str:
    """'5 runs each', '5 and 4 runs'."""
    return f"{plural(size, 'run')} each" if size == others else f"{size} and {others} runs"


def more_word(more: int) -> str:
    """'about 7 more runs of each'."""
    if more >= MANY:
        return f"more than {MANY - 1} more runs of each"
    return f"about {more} more run{'' if more == 1 else 's'} of each"


def why(one: Comparison, *, spread: bool = False) -> str:
    """The figures behind a verdict, and for an undecided one what would decide it."""
    size, others = len(one.sample.values), len(one.base.values)
    if not (size and others) or one.p_adjusted is None:
        return _nothing(one, spread)
    parts = [_spread(one) if spread else _figures(one)]
    if one.verdict == "equivalent":
        parts += _equivalent(one)
    parts.append(f"{p_word(one.p_adjusted)} after Holm")
    parts.append(runs_word(size, others))
    text = ", ".join(parts)
    if one.verdict == "undecided":
        text += _undecided(one, size, others)
    elif not spread:
        text += _doubts(one)
    return text


def _nothing(one: Comparison, spread: bool) -> str:
    if spread:
        return "no spread: it takes two runs of each that ended"
    who = "the baseline" if one.sample.values else "the variant"
    missing = (one.base if one.sample.values else one.sample).missing
    return f"{who} has " + ("no value of it in any run" if missing else "no run that counts")


def _figures(one: Comparison) -> str:
    sample, base = one.sample, one.base
    if sample.mean is None or base.mean is None:
        who = [name for s, name in ((sample, "its"), (base, "the baseline's")) if s.mean is None]
        return f"all of {' and '.join(who)} runs failed"
    text = f"{amount(one.metric, sample.mean)} a run against {amount(one.metric, base.mean)}"
    if one.ratio is None:
        return text
    bound = "at least " if sample.failed and not base.failed else ""
    text += f" ({bound}{times(one.ratio)} times"
    if one.low is not None or one.high is not None:
        low = times(one.low) if one.low is not None else "0"
        high = f"to {times(one.high)}" if one.high is not None else "and more"
        text += f", 95 % interval {low} {high}"
    return text + (" of the runs that ended)" if sample.failed or base.failed else ")")


def _spread(one: Comparison) -> str:
    sd, base = one.sample.sd, one.base.sd
    if sd is None or base is None:
        return "spread between runs not known"
    text = f"sd {amount(one.metric, sd)} between runs against {amount(one.metric, base)}"
    return text + (f" ({times(one.ratio)} times)" if one.ratio is not None else "")


def _equivalent(one: Comparison) -> list[str]:
    if not any(one.base.values) and not any(one.sample.values):
        return ["none in any run"]
    text = f"inside the margin of {100 * one.margin:g} %"
    if one.p_equivalent is not None:
        text += f" ({p_word(one.p_equivalent)} for a difference beyond it)"
    return [text, "the small difference is there" if one.differs else "a difference is not shown"]


def _undecided(one: Comparison, size: int, others: int) -> str:
    text = "; undecided"
    if one.too_few and one.smallest is not None and one.needed is not None:
        text += (
            f": {size} and {others} runs cannot reach the level: the smallest p they could give "
            f"is {one.smallest:.2g}, needed {one.needed:.2g}"
        )
    if one.more_runs is not None:
        text += f"; {more_word(one.more_runs)} would probably decide"
    return text


def _doubts(one: Comparison) -> str:
    """What a decided verdict must not hide."""
    text = ""
    word = {"improved": "better", "regressed": "worse"}.get(one.verdict)
    if word and one.ratio and (one.ratio > 1) == (word == "better") and one.ratio != 1:
        text += f"; most runs are {word}, their mean is not"
    if one.sample.failed:
        text += f"; but {failed_word(one.sample)} failed"
    return text


def failed_word(sample: Sample) -> str:
    """'2 of its 5 runs'."""
    return f"{sample.failed} of its {plural(len(sample.values), 'run')}"


def sentence(label: str, base: str, one: Comparison, spread: Comparison, failures: Failures) -> str:
    """The answer for one variant, in one to three sentences."""
    if not one.sample.values:
        return f"{label} cannot be compared: {one.why}."
    verb = {
        "improved": f"{label} stalls less than {base}",
        "regressed": f"{label} stalls more than {base}",
        "equivalent": f"{label} stalls as much as {base}",
        "undecided": f"{label} may be better or worse than {base}",
    }[one.verdict]
    text = f"{verb}: {one.why}."
    if failures.failed or failures.base_failed:
        text += (
            f" {failures.failed} of its {plural(failures.runs, 'run')} failed, of {base}'s "
            f"{failures.base_failed} of {failures.base_runs}"
            f" ({p_word(failures.p_adjusted)} after Holm, Fisher's exact test): "
            "a failed run counts as the worst."
        )
    if spread.verdict != "undecided":
        less = "more" if spread.verdict == "regressed" else "less"
        text += f" Its runs scatter {less} than {base}'s: {spread.why}."
    return text


def alone(label: str, sample: Sample, metric: Metric, baseline: bool) -> str:
    """The sentence of the baseline, or of a variant with nothing to compare it with."""
    name = f"{label} (the baseline)" if baseline else label
    if not sample.values:
        return f"{name} has no run that counts."
    if sample.mean is None:
        return f"{name}: all of its {plural(len(sample.values), 'run')} failed."
    text = f"{name} stalls for {amount(metric, sample.mean)} a run"
    if sample.sd is not None:
        text += f" (sd {amount(metric, sample.sd)}, {plural(len(sample.ended), 'run')})"
    text += "."
    if sample.failed:
        text += f" {failed_word(sample)} failed.".capitalize()
    if len(sample.values) == 1:
        text += " One run is a sign, not a finding."
    return text
