# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts in words: what was measured, how sure it is, and what would decide it."""

from dataclasses import dataclass, replace

from analysis.figures.metrics import Metric
from analysis.reading.words import plural
from analysis.verdicts.felt import Felt, felt_words, stalls_words, summed_words
from analysis.verdicts.verdict import MANY, Comparison, Failures, Sample
from contract.values import OF_REMEDIES
from contract.workload import STALLED

AT = {"": "", ">=": "at least ", "<=": "at most "}


@dataclass(frozen=True)
class Answer:
    """Sentences on a variant: what a user experiences with it, and any figures behind that."""

    head: str
    figures: str = ""

    @property
    def text(self) -> str:
        """Both parts as one text."""
        return f"{self.head} {self.figures}" if self.figures else self.head

    def and_then(self, sentence: str) -> "Answer":
        """The answer with this sentence at its end, unless it is empty."""
        if not sentence:
            return self
        if not self.figures:
            return Answer(f"{self.head} {sentence}")
        return Answer(self.head, f"{self.figures} {sentence}")


def p_equals(p: float) -> str:
    """'p = 0.016', 'p < 0.0001'."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.2g}"


def times(ratio: float) -> str:
    """A ratio with 3 to 0 decimals, the larger the fewer: 0.004, 0.50, 12.3, 1,234."""
    digits = 3 if ratio < 0.0995 else 2 if ratio < 9.995 else 1 if ratio < 99.95 else 0
    return f"{ratio:,.{digits}f}"


def amount(metric: Metric, value: float) -> str:
    """'31.4 s': a value in the metric's unit, with the unit."""
    unit = {"%": " %", "": ""}.get(metric.unit, f" {metric.unit}")
    return f"{value:,.{metric.digits}f}{unit}"


def limit_words(comparison: Comparison, *, brief: bool = False) -> str:
    """' in the first 120 s' (brief: ' in 120 s') if both are compared up to a limit; else ''."""
    limit = comparison.limit_s
    if limit is None:
        return ""
    return f" in {'' if brief else 'the first '}{limit:,.0f} s"


def _with_figure(comparison: Comparison) -> str:
    """What runs with a figure did: they 'ended', or up to a limit 'did not fail'."""
    return "ended" if comparison.limit_s is None else "did not fail"


def runs_word(size: int, others: int) -> str:
    """'5 runs each', '5 and 4 runs'."""
    return f"{plural(size, 'run')} each" if size == others else f"{size} and {others} runs"


def more_word(more: int) -> str:
    """'about 7 more runs of each'."""
    if more >= MANY:
        return f"more than {MANY - 1} more runs of each"
    return f"about {more} more run{'' if more == 1 else 's'} of each"


def least_word(least: int) -> str:
    """'with equally many runs it takes 6 of each at least'."""
    return f"with equally many runs it takes {least} of each at least"


def why(comparison: Comparison, *, spread: bool = False) -> str:
    """The figures behind a verdict, and what would decide it if it is undecided."""
    size, others = len(comparison.sample.values), len(comparison.base.values)
    if not (size and others) or comparison.p_adjusted is None:
        return _nothing(comparison, spread)
    parts = [_spread(comparison) if spread else _figures(comparison)]
    if comparison.verdict == "equivalent":
        parts += _equivalent(comparison)
    parts.append(f"{p_equals(comparison.p_adjusted)} after Holm")
    parts.append(runs_word(size, others))
    text = ", ".join(parts)
    if comparison.limit_s is not None:
        text += f"; {_lines_word(comparison)}"
    if comparison.verdict == "undecided" and not comparison.none_ended:
        text += _undecided(comparison, size, others)
    return text


def _nothing(comparison: Comparison, spread: bool) -> str:
    if spread:
        if comparison.within_hosts:
            return "no spread: the runs are of several hosts"
        return "no spread: it takes two runs of each that ended"
    who = "the baseline" if comparison.sample.values else "the variant"
    return (
        f"{who} has {none_word(comparison.base if comparison.sample.values else comparison.sample)}"
    )


def none_word(sample: Sample) -> str:
    """Why a sample has no value: 'no run that counts', '5 runs, none with this figure (…)'."""
    if not sample.missing:
        return "no run that counts"
    none = "none" if sample.missing > 1 else "not one"
    return f"{plural(sample.missing, 'run')}, {none} with this figure (the notes say why)"


def _figures(comparison: Comparison) -> str:
    sample, base = comparison.sample, comparison.base
    if comparison.all_failed:
        return "all runs of both failed"
    if sample.mean is None or base.mean is None:
        bad, who = (sample, "its") if sample.mean is None else (base, "the baseline's")
        return f"{who} only run failed" if bad.runs == 1 else f"all of {who} runs failed"
    text = f"{_mean(comparison.metric, sample)} a run against {_mean(comparison.metric, base)}"
    text += limit_words(comparison)
    text += f" of the runs that {_with_figure(comparison)}" if sample.failed or base.failed else ""
    if comparison.ratio is None:
        return text
    text += f" ({AT[comparison.bound]}{times(comparison.ratio)} times"
    if comparison.low is not None or comparison.high is not None:
        low = times(comparison.low) if comparison.low is not None else "0"
        high = f"to {times(comparison.high)}" if comparison.high is not None else "and more"
        text += f", interval {low} {high}"
    return f"{text})"


def _mean(metric: Metric, sample: Sample) -> str:
    """'31.4 s', 'at least 31.4 s'."""
    least = AT[">="] if any(sample.cut) else ""
    return least + amount(metric, sample.mean or 0.0)


def _lines_word(comparison: Comparison) -> str:
    """'no run of either was done by then; the variant had printed 9,120 lines, …', means."""
    sample, base = comparison.sample.limited, comparison.base.limited
    lines = [0.0 if side is None else side.lines for side in (sample, base)]
    return (
        "no run of either was done by then; "
        f"the variant had printed {lines[0]:,.0f} lines, the baseline {lines[1]:,.0f}"
    )


def _spread(comparison: Comparison) -> str:
    texts = [_sd(comparison.metric, sample) for sample in (comparison.sample, comparison.base)]
    return "sd {} against {}".format(*texts) if all(texts) else "spread between runs not known"


def _sd(metric: Metric, sample: Sample) -> str:
    """'8.3 s (1 % of the mean)': the test is of the scatter relative to the level."""
    if sample.sd is None:
        return ""
    text = amount(metric, sample.sd)
    return text + (f" ({100 * sample.sd / sample.mean:.0f} % of the mean)" if sample.mean else "")


def _equivalent(comparison: Comparison) -> list[str]:
    if not any(comparison.base.most) and not any(comparison.sample.most):
        return ["none in any run"]
    text = f"inside the margin of {100 * comparison.margin:g} %"
    if comparison.p_equivalent is not None:
        text += f" ({p_equals(comparison.p_equivalent)} for a difference beyond it)"
    return [
        text,
        "the small difference is there" if comparison.differs else "a difference is not shown",
    ]


def _undecided(comparison: Comparison, size: int, others: int) -> str:
    text = "; undecided"
    if comparison.doubt:
        return f"{text} (a longer limit: --timeout){_doubt(comparison)}"
    if comparison.too_few and comparison.smallest is not None and comparison.needed is not None:
        text += (
            f": {size} and {others} runs cannot reach the level: the smallest p they could give "
            f"is {comparison.smallest:.2g}, needed {comparison.needed:.2g}"
        )
    if comparison.more_runs is not None:
        text += f"; {more_word(comparison.more_runs)} would probably decide"
        if comparison.limit_s is not None and comparison.more_runs >= MANY:
            text += ", a longer limit (--timeout) perhaps sooner"
    elif comparison.least_runs is not None:
        text += f"; {least_word(comparison.least_runs)}"
    return text


def unfinished_word(sample: Sample) -> str:
    """'2 of its 5 runs went on and were not done at their limit'."""
    were = "was" if sample.unfinished == 1 else "were"
    runs = plural(sample.runs, "run")
    return f"{sample.unfinished} of its {runs} went on and {were} not done at the limit"


def _failed_word(sample: Sample) -> str:
    """'2 of its 5 runs failed'."""
    return f"{sample.failed} of its {plural(sample.runs, 'run')} failed"


def sentence(
    label: str,
    base: str,
    comparison: Comparison,
    spread: Comparison,
    failures: Failures,
    felt: tuple[Felt | None, Felt | None] = (None, None),
) -> Answer:
    """The answer for a variant, in one to four sentences; felt: of the variant, of the baseline."""
    if not (comparison.sample.values and comparison.base.values):
        return Answer(f"{label} cannot be compared:", f"{comparison.why}.")
    unlike = f"{label} cannot be told from {base}:"
    if comparison.all_failed:
        return Answer(unlike, f"{comparison.why}; more such runs would not decide.")
    if comparison.none_ended and comparison.verdict == "undecided":
        return Answer(
            unlike,
            f"{comparison.why}; no run of either was done, and more such runs would not decide "
            "(a longer limit: --timeout).",
        )
    with_it, with_base = felt
    verb, to_limit = _claim(label, base, comparison), comparison.limit_s is not None
    head, text = f"{_by_ranks(comparison, verb)}:", f"{comparison.why}."
    if with_it is not None and with_base is not None:
        head += f" {felt_words(with_it, base, with_base)}."
        what = stalls_words(with_it) if to_limit else summed_words(with_it, with_base)
        text = f"{what}: {text}"
    if failures.failed or failures.base_failed:
        text += f" {_failures(base, comparison, failures)}"
    if comparison.sample.unfinished and not to_limit:
        text += f" {unfinished_word(comparison.sample)}."
    if (comparison.lost or comparison.base_lost) and comparison.verdict != "trades":
        text += f" Programs killed: {comparison.lost:.2g} a run against {comparison.base_lost:.2g}."
    if spread.verdict != "undecided":
        less = "more" if spread.verdict == "regressed" else "less"
        text += f" For their level its runs scatter {less} than {base}'s: {spread.why}."
    return Answer(head, text)


def _doubt(comparison: Comparison) -> str:
    """Why the better one up to the limit may not be better in the end."""
    if comparison.better_and_worse is None:
        return ""
    better, worse = comparison.better_and_worse
    if comparison.doubt == "is slower":
        return ", since the better one had printed fewer lines"
    return (
        f", since the better one was frozen for {better.late:.1f} % of the second half of that "
        f"time, the other for {worse.late:.1f} %"
    )


def _claim(label: str, base: str, comparison: Comparison) -> str:
    """'7.2 stalls less than 6.12 in the first 120 s, but perhaps it only freezes later'."""
    if not comparison.doubt or comparison.verdict in OF_REMEDIES:
        return _verb(label, base, comparison) + limit_words(comparison)
    better = (comparison.delta or 0.0) < 0
    seeming = replace(comparison, verdict="improved" if better else "regressed")
    who = "it" if better else base
    seems = f"{_verb(label, base, seeming)}{limit_words(comparison)}"
    return f"{seems}, but perhaps {who} only {comparison.doubt}"


def _verb(label: str, base: str, comparison: Comparison) -> str:
    """'7.2 stalls more than 6.12', '7.2 is worse than 6.12 (rate inside, higher is better)'."""
    metric = comparison.metric
    if comparison.verdict in OF_REMEDIES:
        verb = (
            _trade(label, base, comparison)
            if comparison.verdict == "trades"
            else f"{label} never acted"
        )
    elif metric.key == STALLED:
        verb = {
            "improved": f"{label} stalls less than {base}",
            "regressed": f"{label} stalls more than {base}",
            "equivalent": f"{label} stalls as much as {base}",
            "undecided": f"{label} may be better or worse than {base}",
        }[comparison.verdict]
    else:
        verb = {
            "improved": f"{label} is better than {base}",
            "regressed": f"{label} is worse than {base}",
            "equivalent": f"{label} is as good as {base}",
            "undecided": f"{label} may be better or worse than {base}",
        }[comparison.verdict]
    direction = f" ({metric.title}, {metric.better} is better)"
    return verb if metric.key == STALLED else verb + direction


def _trade(label: str, base: str, comparison: Comparison) -> str:
    """'earlyoom trades 2 programs a run for 380 s of 6.12's'."""
    programs = comparison.lost - comparison.base_lost
    many = f"{programs:.2g} program{'' if programs == 1 else 's'} a run"
    gained = (comparison.base.mean or 0.0) - (comparison.sample.mean or 0.0)
    bound = ""
    if bool(comparison.base.cut) != bool(comparison.sample.cut):
        bound = "at least " if comparison.base.cut else "at most "
    figure = amount(comparison.metric, abs(gained))
    return f"{label} trades {many} for {bound}{figure} of {base}'s"


def _by_ranks(comparison: Comparison, verb: str) -> str:
    """The verb, and that the ranks decided if the means go the other way."""
    sample, base = comparison.sample.mean, comparison.base.mean
    if comparison.verdict not in ("improved", "regressed") or sample is None or base is None:
        return verb
    worse = (sample - base) * comparison.metric.sign > 0
    if sample == base or worse == (comparison.verdict == "regressed"):
        return verb
    if comparison.sample.cut or comparison.base.cut:  # such a mean is a bound and has no direction
        return verb
    if comparison.sample.failed or comparison.base.failed:
        return (
            f"By the ranks of the runs, a failed one being the worst, {verb}, "
            f"while the means of the runs that {_with_figure(comparison)} go the other way"
        )
    reason = "the hosts differ" if comparison.within_hosts else "of single runs"
    return f"By the ranks of the runs {verb}, while the means go the other way because {reason}"


def _failures(base: str, comparison: Comparison, failures: Failures) -> str:
    """How many runs failed on each side, unless the figures already say that all of them did."""
    test = "a permutation test within hosts" if comparison.within_hosts else "Fisher's exact test"
    tested = f"({p_equals(failures.p_adjusted)} after Holm, {test})"
    if not comparison.sample.known:
        counts = f"Of {base}'s {plural(failures.base_runs, 'run')} {failures.base_failed} failed"
    elif not comparison.base.known:
        counts = f"Of its {plural(failures.runs, 'run')} {failures.failed} failed"
    else:
        but = "But " if failures.failed and comparison.verdict == "improved" else ""
        counts = (
            f"{but}{failures.failed} of its {plural(failures.runs, 'run')} failed, of {base}'s "
            f"{failures.base_failed} of {failures.base_runs}"
        )
    return f"{counts} {tested}: a failed run counts as the worst."


def alone(
    label: str, sample: Sample, metric: Metric, baseline: bool, felt: Felt | None = None
) -> Answer:
    """The sentences on the baseline, or on a variant with nothing to compare it with."""
    name = f"{label} (the baseline)" if baseline else label
    if not sample.values:
        return Answer(f"{name} has {none_word(sample)}.")
    head = ""
    if sample.mean is None:
        runs = "its only run" if sample.runs == 1 else f"all of its {sample.failed} runs"
        text = f"{name}: {runs} failed."
    else:
        verb = f"{name} stalls for" if metric.key == STALLED else f"{name}: {metric.title}"
        if felt is not None:
            head, verb = f"{name}: {felt_words(felt)}.", f"{summed_words(felt)}:"
        text = f"{verb} {_mean(metric, sample)} a run"
        if sample.sd is not None:
            text += f" (sd {amount(metric, sample.sd)}, {plural(len(sample.ended), 'run')})"
        text += "."
        if sample.failed:
            text += f" {_failed_word(sample)}."
        if sample.unfinished:
            text += f" {unfinished_word(sample)}."
    if sample.missing:
        have = "has" if sample.missing == 1 else "have"
        text += f" {sample.missing} of its {sample.runs} runs {have} no such figure."
    if sample.runs == 1:
        text += " One run is a sign, not a finding."
    return Answer(head, text) if head else Answer(text)
