# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of verdicts says how many keys were slow, whatever the stalled seconds say."""

from pathlib import Path

from analysis.reading.load import load_campaign
from analysis.text import compare_text, summary_files
from analysis.text.layout import WIDTH
from analysis.text.verdict_table import legend, verdict_rows
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from tests.analysis.test_keys import LINES, log
from tests.analysis.test_remedies import KILLED, run, untreated
from tests.analysis.test_remedies import campaign as remedies
from tests.support.verdicts import campaign, cut_at_the_limit, stalling_run

AT_TERMINALS = "keys: of those typed at terminals, the share that took 0.1 s or more;"
IN_WINDOWS = "keys: of those typed in windows, the share that took 0.1 s or more;"
FAST = [(11.0, "due 1 shell idle 13.000"), (11.005, "key 1 shell late 0.005")]


def cells(compared: Compared) -> dict[str, str]:
    rows = list(verdict_rows(compared, ("verdict", "keys")))
    return {row[0]: row[-1] for row in rows} if rows[0][-1] == "keys" else {}


def two_variants(folder: Path) -> Compared:
    """6.1 stalls less, but its keys are slow; 7.2 stalls more, and they come at once."""
    for label, stalled, lines in (("6.1", 5.0, LINES), ("7.2", 50.0, FAST)):
        for number in (1, 2):
            path = stalling_run(folder / label / str(number), stalled)
            (path / "latency-keys.log").write_text(log(lines, 60.0))
    return compare(load_campaign(folder))


def run_with_windows(folder: Path) -> None:
    """Keys at a shell, and in the window of an xterm in the editor's place."""
    keys = {"programs": {"shell": "bash", "xterm": "xterm"}, "windows": ["xterm"]}
    observers = [{"name": "recorder"}, {"name": "sampler"}, {"name": "keys"}]
    path = stalling_run(folder, 5.0, keys=keys, observers=observers)
    in_window = [(at, line.replace("editor", "xterm")) for at, line in LINES]
    (path / "latency-keys.log").write_text(log(in_window, 60.0))


def test_the_share_of_slow_keys_stands_beside_the_verdict(tmp_path: Path) -> None:
    compared = two_variants(tmp_path)
    assert cells(compared) == {"variant": "keys", "6.1": "83 %", "7.2": "0 %"}
    assert AT_TERMINALS in legend(compared)
    summary = summary_files.summary(compared.campaign, compared)
    for text in (compare_text.text(compared), summary):
        assert AT_TERMINALS in " ".join(text.split())


def test_runs_that_were_not_done_say_how_slow_keys_were_up_to_the_limit(tmp_path: Path) -> None:
    two_variants(tmp_path)
    cut_at_the_limit(tmp_path / "6.1")
    compared = compare(load_campaign(tmp_path))
    assert cells(compared) == {"variant": "keys", "6.1": "83 %", "7.2": "0 %"}
    assert compared.samples["keys-0.1"]["6.1"].mean is None  # a share up to a limit has no verdict


def test_keys_in_windows_are_shown_if_there_are_some(tmp_path: Path) -> None:
    for label in ("6.1", "7.2"):
        run_with_windows(tmp_path / label / "1")
    compared = compare(load_campaign(tmp_path))
    # Both keys in the window were late, one of the four at the shell was not.
    assert cells(compared) == {"variant": "keys", "6.1": "100 %", "7.2": "100 %"}
    assert IN_WINDOWS in legend(compared) and AT_TERMINALS not in legend(compared)


def test_a_variant_without_windows_shows_the_terminals_of_all(tmp_path: Path) -> None:
    two_variants(tmp_path)
    for number in (1, 2):
        run_with_windows(tmp_path / "7.3" / str(number))
    compared = compare(load_campaign(tmp_path))
    assert cells(compared) == {"variant": "keys", "6.1": "83 %", "7.2": "0 %", "7.3": "75 %"}
    assert AT_TERMINALS in legend(compared)


def test_a_workload_whose_primary_metric_is_its_own_has_a_legend_of_keys(tmp_path: Path) -> None:
    figure = {"key": "answer", "title": "until it answers", "unit": "s", "digits": 1}
    workload = {
        **{"name": "runaway", "late": "the eater", "subject": "a window", "primary": "answer"},
        **{"subjects": ["gitk-1"], "figures": [figure | {"better": "lower"}]},
    }
    for label, lines in (("6.1", LINES), ("7.2", FAST)):
        path = stalling_run(tmp_path / label / "1", 5.0, workload=workload)
        (path / "latency-keys.log").write_text(log(lines, 60.0))
    compared = compare(load_campaign(tmp_path))
    assert not compared.felt and cells(compared)["6.1"] == "83 %"
    assert legend(compared) == AT_TERMINALS.replace("keys", "Keys", 1)[:-1] + "."


def test_all_runs_failed_is_said(tmp_path: Path) -> None:
    two_variants(tmp_path)
    for number in (1, 2):
        stalling_run(tmp_path / "7.3" / str(number), "hung")
    assert cells(compare(load_campaign(tmp_path)))["7.3"] == "failed"


def test_failed_runs_make_it_a_lower_bound(tmp_path: Path) -> None:
    two_variants(tmp_path)
    stalling_run(tmp_path / "6.1" / "3", "hung")
    assert cells(compare(load_campaign(tmp_path)))["6.1"] == ">=83 %"


def test_without_keys_there_is_no_column(tmp_path: Path) -> None:
    compared = compare(load_campaign(campaign(tmp_path, {"6.1": [5.0], "7.2": [6.0]})))
    assert cells(compared) == {} and "keys" not in legend(compared)


def test_a_summary_of_remedies_with_keys_fits_a_mail(tmp_path: Path) -> None:
    untreated(tmp_path)
    for n in range(1, 7):
        ends = {"gitk-1": (9.0, KILLED), "heartbeat": (9.0, KILLED)}
        run(tmp_path / "plain-systemd-oomd" / str(n), 1.0 + n / 10, ends, state="oom")
    for path in tmp_path.glob("*/*/meta.json"):
        (path.parent / "latency-keys.log").write_text(log(LINES, 60.0))
    compared = remedies(tmp_path, "plain-systemd-oomd")
    summary = summary_files.summary(compared.campaign, compared)
    head = next(line for line in summary.splitlines() if "killed" in line and "keys" in line)
    assert head.split()[-3:] == ["s", "ratio", "(interval)"]
    assert max(map(len, summary.splitlines())) <= WIDTH
