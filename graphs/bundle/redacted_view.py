# SPDX-License-Identifier: GPL-2.0-or-later
"""The redacted view of compared results, as a bundle shows them."""

from dataclasses import replace

from analysis.reading.files import read_file
from analysis.reading.load import Campaign, Run
from analysis.reading.places import LARGEST_FACTS
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from contract.plan import CHANGES, parse_plan
from contract.run_files import CONFIG, PLAN_FILE
from graphs.bug_report import facts
from graphs.bundle.packed_runs import texts
from graphs.bundle.uncounted_runs import uncounted
from graphs.redaction import result_files
from graphs.redaction.redact import Redactor


def learn(campaign: Campaign, runs: list[Run], redactor: Redactor) -> None:
    """Let the redactor learn from everything that will be in the bundle."""
    result_files.learn(PLAN_FILE, campaign.plan.text.encode("utf-8", "replace"), redactor)
    result_files.learn(PLAN_FILE, campaign.machine, redactor)
    for variant, config in campaign.configs.items():
        redactor.learn(variant)
        result_files.learn(CONFIG, config.encode("utf-8", "replace"), redactor)
    for patch in campaign.changes.values():
        result_files.learn(CHANGES, patch.encode("utf-8", "replace"), redactor)
    for run in campaign.runs:
        redactor.learn_value([run.variant, run.meta, run.status])
    for run in runs:
        for name, content in texts(run.path):
            result_files.learn(name, content, redactor)
    for _, path, _ in uncounted(campaign):
        result_files.learn(path.name, read_file(path, [], LARGEST_FACTS) or b"", redactor)


def redacted(compared: Compared, redactor: Redactor) -> Compared:
    """The compared results without secrets; compared again if the verdicts contain a secret."""
    old = compared.whole
    toml = result_files.redacted(PLAN_FILE, old.plan.text.encode("utf-8", "replace"), redactor)
    campaign = replace(
        old,
        runs=[_redacted_run(run, redactor) for run in old.runs],
        incomplete=redactor.value(old.incomplete),
        set_aside=redactor.value(old.set_aside),
        problems=redactor.value(old.problems),
        plan=parse_plan(toml)[0] if old.plan.text else old.plan,
        configs={
            redactor.text(name): _redacted_config(old.configs[name], redactor)
            for result in compared.each
            for name in result.variants[: facts.KERNELS]
            if name in old.configs
        },
        changes={redactor.text(name): "" for name in old.changes},
    )
    if all(_is_clean(result, redactor) for result in compared.each):
        parts = zip(compared.each, by_workload(campaign), strict=True)
        first, *others = (replace(result, campaign=part, whole=campaign) for result, part in parts)
        return replace(first, others=others)
    causes = {
        path: replace(why, notes=redactor.value(why.notes))
        for path, why in compared.causes.runs.items()
    }
    return compare(
        campaign,
        baseline=[redactor.text(result.baseline) for result in compared.each],
        force=any(result.forced for result in compared.each),
        causes=causes,
        counters=compared.counters.figures,
    )


def _is_clean(compared: Compared, redactor: Redactor) -> bool:
    """Whether the verdicts contain no secret."""
    words = [compared.variants, compared.labels, compared.sentences, compared.notes]
    words += [compared.workload.as_meta(), compared.forced]
    return bool(redactor.value(words) == words)


def _redacted_config(config: str, redactor: Redactor) -> str:
    raw = result_files.redacted(CONFIG, config.encode("utf-8", "replace"), redactor)
    return raw.decode("utf-8", "replace")


def _redacted_run(run: Run, redactor: Redactor) -> Run:
    """The run without secrets; the same object, with its cached results, if it has none."""
    names = [redactor.text(name) for name in run.streams]
    variant = redactor.text(run.variant)
    facts = {key: redactor.value(getattr(run, key)) for key in ("meta", "status", "warnings")}
    clean = variant == run.variant and names == list(run.streams)
    if clean and all(value == getattr(run, key) for key, value in facts.items()):
        return run
    streams = dict(zip(names, run.streams.values(), strict=True))
    renamed = {name: replace(stream, name=name) for name, stream in streams.items()}
    return replace(run, variant=variant, streams=renamed, **facts)
