# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's folder: what is complete stays, what was cut short is kept and repeated."""

import json
import random
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from errors import Exit, UserError
from run.arguments import parse
from run.campaign import Campaign, few_runs_warning, remaining
from run.identity import identified
from run.run_folders import completed, refuse_another_host
from setup.kernels import Kernel, resolve


def kernel(label: str, digest: str = "d1", config: Path | None = None) -> Kernel:
    return Kernel(
        spec=f"debian:{label}",
        label=label,
        release=f"{label}-amd64",
        image=Path("/none"),
        modules=None,
        config=config,
        image_digest=digest,
        config_digest=None,
    )


def opened(folder: Path, *argv: str, digest: str = "d1", config: Path | None = None) -> Campaign:
    """A campaign of the kernels in argv, which resolve to what they are called."""
    options = parse(list(argv))
    campaign = Campaign(options, argv)
    campaign.enter(
        [
            (variant, kernel(variant.kernel.removeprefix("debian:"), digest, config))
            for variant in options.variants
        ]
    )
    assert campaign.path == folder
    return campaign


def end(run: Path, state: str) -> None:
    (run / "status.json").write_text(json.dumps({"format": 1, "state": state, "why": ""}))


def finish(campaign: Campaign, state: str = "completed") -> None:
    while todo := campaign.left():
        run, _ = campaign.begin(*todo[0])
        end(run, state)


def plan(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "plan.toml").read_text())


TWO = ["--kernel", "debian:6.1", "--kernel", "debian:7.2"]


def test_runs_interleave_and_are_entered(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO, "--runs", "2", "--baseline", "7.2"))
    found = plan(out)
    assert [(r["variant"], r["number"], r["order"]) for r in found["run"]] == [
        ("6.1", 1, 1),
        ("7.2", 1, 2),
        ("6.1", 2, 3),
        ("7.2", 2, 4),
    ]
    assert (found["baseline"], found["runs"], found["margin"]) == ("7.2", 2, 0.1)
    assert [v["release"] for v in found["variant"]] == ["6.1-amd64", "7.2-amd64"]
    assert found["command"].startswith("./run_test.sh --out ")


def test_the_same_command_with_resume_repeats_nothing(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    campaign = opened(out, "--out", str(out), *TWO, "--runs", "2")
    for state in ("completed", "hung", "aborted"):
        run, _ = campaign.begin(*campaign.left()[0])
        end(run, state)
    campaign = opened(out, "--resume", str(out), *TWO, "--runs", "2")
    assert campaign.left() == [("6.1", 2), ("7.2", 2)]
    # The one that was cut short is kept beside its repeat.
    assert (out / "6.1/2.cut-1/status.json").exists() and not (out / "6.1/2").exists()
    finish(campaign)
    assert opened(out, "--resume", str(out)).left() == []
    assert [r.get("cut") for r in plan(out)["run"]] == [None, None, "2.cut-1", None, None]


def test_killed_anywhere_it_ends_as_one_that_ran_through(tmp_path: Path) -> None:
    """Each attempt is cut at a random place of begin … status; the result is the same runs."""
    rng = random.Random(7)
    through, cut = tmp_path / "through", tmp_path / "cut"
    finish(opened(through, "--out", str(through), *TWO, "--runs", "3"))
    campaign = opened(cut, "--out", str(cut), *TWO, "--runs", "3")
    kills = 0
    while todo := campaign.left():
        where = rng.randrange(6)
        if where == 0:  # killed between the folder and the plan
            (cut / todo[0][0] / str(todo[0][1])).mkdir()
        elif where == 1:  # killed while it ran
            campaign.begin(*todo[0])
        elif where == 2:  # killed while the plan or the status was written
            run, _ = campaign.begin(*todo[0])
            (cut / ".plan.toml.new").write_text("[[ru")
            (run / ".status.json.new").write_text("{")
        else:
            run, _ = campaign.begin(*todo[0])
            end(run, "completed")
            continue
        kills += 1
        campaign = opened(cut, "--resume", str(cut), *TWO, "--runs", "3")
    assert kills >= 3
    for label in ("6.1", "7.2"):
        assert completed(cut / label) == completed(through / label) == {1, 2, 3}
        assert len(list((cut / label).glob("*.cut-*"))) > 0
    orders = [run["order"] for run in plan(cut)["run"]]
    assert orders == sorted(set(orders))
    ran = [(r["variant"], r["number"]) for r in plan(cut)["run"] if "cut" not in r]
    assert ran == [(r["variant"], r["number"]) for r in plan(through)["run"]]


def test_variants_and_runs_are_added(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO, "--runs", "1"))
    more = opened(out, "--resume", str(out), "--kernel", "debian:6.12", "--runs", "2")
    assert more.left() == [("6.12", 1), ("6.1", 2), ("7.2", 2), ("6.12", 2)]
    assert [entry["label"] for entry in plan(out)["variant"]] == ["6.1", "7.2", "6.12"]
    # With --out: so many more of those that are named.
    finish(more)
    again = opened(out, "--out", str(out), "--kernel", "debian:7.2")
    assert again.left() == [("7.2", 3)]


def test_runs_added_after_a_look_cost_some_of_the_level(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO, "--runs", "5"))
    assert "extended" not in plan(out)
    campaign = opened(out, "--resume", str(out), "--runs", "8")
    run, _ = campaign.begin(*campaign.left()[0])
    end(run, "completed")
    # Interrupted, and gone on with by the same command, and by none.
    for argv in (["--runs", "8"], []):
        campaign = opened(out, "--resume", str(out), *argv)
        assert plan(out)["extended"] == [5] and len(campaign.left()) == 5
    finish(campaign)
    finish(opened(out, "--resume", str(out), "--stop-when-sure", "20"))
    assert plan(out)["extended"] == [5, 8]
    assert plan(out)["stop_when_sure"]["looks"] == [10, 14, 20]


def test_runs_that_cannot_give_a_verdict_are_said_before_they_are_done(tmp_path: Path) -> None:
    out, warning = tmp_path / "mine", "{} cannot give a verdict: {} take{} {} of each"
    few = ["--out", str(out), *TWO, "--runs", "3"]
    expected = warning.format("3 runs of each variant", "1 comparison", "s", 4)
    assert few_runs_warning(parse(few)) == expected
    campaign = opened(out, *few)
    assert campaign.few_runs_warning == expected
    finish(campaign)
    # With eight variants five runs are too few, whichever this command adds.
    more = ["--resume", str(out), "--runs", "5"]
    for minor in range(2, 8):
        more += ["--kernel", f"debian:6.{minor}"]
    expected = warning.format("5 runs of each variant", "7 comparisons", "", 6)
    assert (
        few_runs_warning(parse(more)) == expected
        and opened(out, *more).few_runs_warning == expected
    )
    assert opened(out, "--resume", str(out), "--runs", "6").few_runs_warning == ""
    # Each repetition of one alone adds to its runs, so those of all count.
    alone = ["--out", str(out), "--kernel", "debian:6.1", "--runs", "9"]
    assert few_runs_warning(parse(alone)) == "" and opened(out, *alone).few_runs_warning == ""


def test_the_dry_run_has_the_warning_of_the_run(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    warning = "{} of each variant cannot give a verdict: {} take{} {} of each"
    many = [f"--kernel=debian:6.{minor}" for minor in range(2, 8)]
    warnings: list[str] = []
    for more in (
        ["--out", str(out), "--kernel", "debian:6.1", "--kernel", "debian:6.1", "--runs", "3"],
        ["--out", str(out), *many, "--runs", "5"],
        ["--out", str(out), "--kernel", "debian:6.1", "--runs", "2"],
        ["--resume", str(out), "--runs", "6"],
        ["--resume", str(out), "--runs", "7", "--baseline", "debian:6.3"],
        ["--resume", str(out), "--runs", "10"],
    ):
        before = plan(out) if warnings else {}
        warnings.append(few_runs_warning(parse(more)))
        assert (plan(out) if before else {}) == before, "a dry run writes nothing"
        campaign = opened(out, *more)
        assert campaign.few_runs_warning == warnings[-1]
        finish(campaign)
    assert warnings == [
        warning.format("3 runs", "1 comparison", "s", 4),
        warning.format("3 to 5 runs", "7 comparisons", "", 6),
        warning.format("3 to 5 runs", "7 comparisons", "", 6),
        warning.format("6 runs", "7 comparisons", "", 7),  # the level halved after a look
        "",
        "",
    ]


def test_a_campaign_with_nothing_to_compare_has_no_warning(tmp_path: Path) -> None:
    for argv in ([], ["--kernel", "debian:6.1"], [*TWO, "--stop-when-sure", "20"]):
        command = ["--out", str(tmp_path / "mine"), *argv]
        assert few_runs_warning(parse(command)) == ""


def test_what_three_runs_beside_ten_showed_was_a_look(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO, "--runs", "3"))
    finish(opened(out, "--out", str(out), "--kernel", "debian:6.1", "--runs", "7"))
    assert "extended" not in plan(out)
    assert {entry["label"]: entry["requested_runs"] for entry in plan(out)["variant"]} == {
        "6.1": 10,
        "7.2": 3,
    }
    assert opened(out, "--resume", str(out), "--runs", "12").left() != []
    assert plan(out)["extended"] == [3]


def test_each_time_that_one_variant_alone_grows_is_a_look(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO, "--runs", "5"))
    for extended in ([5], [5, 5]):
        campaign = opened(out, "--out", str(out), "--kernel", "debian:7.2", "--runs", "4")
        # Interrupted, and gone on with: the same look.
        run, _ = campaign.begin(*campaign.left()[0])
        end(run, "completed")
        campaign = opened(out, "--resume", str(out), "--runs", "5")
        assert plan(out)["extended"] == extended
        finish(opened(out, "--out", str(out), "--kernel", "debian:7.2", "--runs", "3"))
        assert plan(out)["extended"] == extended
    assert len(list((out / "7.2").iterdir())) == 13


def test_a_look_counts_though_one_variant_never_finished(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    campaign = opened(out, "--out", str(out), *TWO, "--kernel", "debian:7.3", "--runs", "5")
    for label, number in campaign.left():
        if (label, number) != ("7.3", 5):
            run, _ = campaign.begin(label, number)
            end(run, "completed")
    opened(out, "--resume", str(out), "--runs", "10")
    assert plan(out)["extended"] == [5]


def test_a_raised_limit_counts_the_looks_that_were_taken(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    campaign = opened(out, "--out", str(out), *TWO, "--stop-when-sure", "20")
    assert campaign.looks == (5, 7, 10, 14, 20)
    for label, number in campaign.left(up_to=7):
        run, _ = campaign.begin(label, number)
        end(run, "completed")
    assert opened(out, "--resume", str(out)).looks == (5, 7, 10, 14, 20)
    assert opened(out, "--resume", str(out), "--stop-when-sure", "30").looks[0] > 7
    assert plan(out)["extended"] == [7]


def test_going_on_with_an_unfinished_campaign_is_no_look(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    campaign = opened(out, "--out", str(out), *TWO, "--runs", "5")
    run, _ = campaign.begin(*campaign.left()[0])
    end(run, "completed")
    finish(opened(out, "--resume", str(out), "--runs", "8"))
    assert "stop_when_sure" not in plan(out)


@pytest.mark.parametrize(
    ("argv", "digest", "said"),
    [
        (["--kernel", "debian:6.1", "--gitk", "3"], "d1", "gitk 4, and this asks for 3"),
        (["--kernel", "debian:6.1", "--cpus", "2"], "d1", "cpus 1, and this asks for 2"),
        (["--kernel", "debian:6.1"], "d2", r"another kernel \(6.1-amd64 d1, now 6.1-amd64 d2\)"),
        (["--kernel", "debian:6.1", "--margin", "0.3"], "d1", "its margin is 0.1"),
        ([*TWO, "--stop-when-sure", "9"], "d1", "--out cannot stop when sure"),
        (["--kernel", "debian:6.1", "--label", "Plan.TOML"], "d1", "cannot be called 'Plan.TOML'"),
        (
            [*["--kernel", "debian:6.1", "--label", "6.1", "--knob", "/proc/sys/vm/swappiness=1"]],
            "d1",
            "another knobs",
        ),
        (["--kernel", "debian:6.1", "--label", "report"], "d1", "cannot be called 'report'"),
        (["--kernel", "debian:6.1", "--baseline", "x"], "d1", "--baseline x: no such variant"),
    ],
)
def test_what_could_not_be_compared_is_refused(
    tmp_path: Path, argv: list[str], digest: str, said: str
) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO))
    before = plan(out)
    with pytest.raises(UserError, match=said) as refused:
        opened(out, "--out", str(out), *argv, digest=digest)
    assert (refused.value.status is Exit.USAGE) == ("--baseline" in argv)
    assert plan(out) == before


def test_the_same_kernel_twice_gets_two_labels(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    argv = ["--kernel", "debian:6.1", "--kernel", "debian:6.1"]
    assert opened(out, "--out", str(out), *argv).left() == [("6.1", 1), ("6.1-2", 1)]
    assert opened(out, "--resume", str(out), *argv).labels == ["6.1", "6.1-2"]


def test_the_config_is_kept_once(tmp_path: Path) -> None:
    out, config = tmp_path / "mine", tmp_path / "config-6.1"
    config.write_text("CONFIG_SWAP=y\n")
    opened(out, "--out", str(out), "--kernel", "debian:6.1", config=config)
    assert (out / "6.1/config").read_text() == "CONFIG_SWAP=y\n"
    assert completed(out / "6.1") == set()


def test_a_damaged_plan_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("[[run]\n")
    with pytest.raises(UserError, match=r"plan\.toml"):
        opened(tmp_path, "--out", str(tmp_path), *TWO)


@pytest.mark.parametrize(
    ("key", "damage", "said"),
    [
        ("variant", 7, "not a campaign's own"),
        ("variant", [{"kernel": "debian:6.1"}], "not a campaign's own"),
        ("run", ["6.1"], "was edited or damaged: run: "),
        ("runs", "many", "was edited or damaged: runs: "),
        ("extended", ["one"], "was edited or damaged: extended: "),
        (
            "variant",
            [{"label": "a", "requested_runs": "5"}],
            "was edited or damaged: requested_runs of a variant: ",
        ),
        ("stop_when_sure", 9, "was edited or damaged: stop_when_sure: "),
        ("parameters", 1, "was edited or damaged: parameters: no table"),
        ("machine", "laptop", "was edited or damaged: machine: no table"),
    ],
)
def test_a_plan_whose_parts_are_of_another_kind_is_one_line(
    tmp_path: Path, key: str, damage: Any, said: str
) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO))
    damaged = tomli_w.dumps(plan(out) | {key: damage})
    (out / "plan.toml").write_text(damaged)
    with pytest.raises(UserError, match=said) as raised:
        opened(out, "--out", str(out), *TWO)
    assert "\n" not in str(raised.value)
    assert (out / "plan.toml").read_text() == damaged


def test_a_dry_run_knows_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    campaign = opened(out, "--out", str(out), *TWO, "--runs", "2")
    run, _ = campaign.begin(*campaign.left()[0])
    end(run, "completed")
    assert remaining(parse(["--resume", str(out)])) == [("7.2", 1), ("6.1", 2), ("7.2", 2)]


def test_a_label_that_is_given_is_no_other_variants(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    text = '[[variant]]\nkernel = "debian:6.1"\n[[variant]]\nlabel = "6.1"\nkernel = "debian:6.1"\n'
    (tmp_path / "asked.toml").write_text(text)
    campaign = opened(out, "--out", str(out), "--plan", str(tmp_path / "asked.toml"))
    assert campaign.labels == ["6.1-2", "6.1"]


def test_the_very_same_command_with_resume(tmp_path: Path) -> None:
    out, asked = tmp_path / "mine", tmp_path / "asked.toml"
    asked.write_text('[[variant]]\nlabel = "a"\n[variant.knobs]\n"/proc/sys/x" = -1\n')
    argv = ["--plan", str(asked), "--out", str(out), "--runs", "2"]
    options = parse(argv)
    campaign = Campaign(options, argv)
    campaign.enter([(options.variants[0], kernel("stable"))])
    assert plan(out)["variant"][0]["knobs"] == {"/proc/sys/x": "-1"}
    again = parse([*argv, "--resume", str(out)])
    assert again.variants == options.variants and again.runs == 2
    asked.write_text(asked.read_text() + '[[variant]]\nlabel = "b"\nappend = "-- x"\n')
    assert [one.label for one in parse([*argv, "--resume", str(out)]).variants] == ["a", "b"]


def test_a_stored_kernel_is_resolved_as_the_version_it_was(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    argv = ["--out", str(out), "--kernel", "debian:6", "--kernel", "/boot/vmlinuz"]
    options = parse(argv)
    found = [
        (one, replace(kernel(f"6.1.{n}"), package=f"6.1.{n}-1"))
        for n, one in enumerate(options.variants)
    ]
    Campaign(options, argv).enter(found)
    options = parse(["--resume", str(out), "--kernel", "debian:7"])
    pins = [Campaign(options, []).pinned(one) for one in options.variants]
    assert pins == ["debian:6.1.0-1", "/boot/vmlinuz", "debian:7"]


def test_another_repository_or_music_is_another_test(tmp_path: Path) -> None:
    for name in ("a", "b"):
        repo = tmp_path / name
        subprocess.run(["git", "init", "-q", str(repo)], check=True)
        git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", name], check=True)
        (tmp_path / f"m{name}").mkdir()
        (tmp_path / f"m{name}" / f"{name}.ogg").write_bytes(name.encode() * 9)
    out = tmp_path / "mine"

    def enter(repo: str, music: str) -> None:
        argv = ["--out", str(out), "--label", "x"]
        argv += ["--repo", str(tmp_path / repo), "--music", str(tmp_path / music)]
        options = identified(parse(argv))
        Campaign(options, argv).enter([(options.variants[0], kernel("6.1"))])

    enter("a", "ma")
    enter("a", "ma")
    with pytest.raises(UserError, match="history repo"):
        enter("b", "ma")
    with pytest.raises(UserError, match="music_kind own"):
        enter("a", "mb")


def test_another_host_is_said_before_hours_of_runs(tmp_path: Path) -> None:
    found = opened(tmp_path, "--kernel", "debian:6.1", "--out", str(tmp_path))
    facts = {"accelerator": "tcg", "clock": {"kind": "guest"}, "machine": {"type": "pc-q35-7.2"}}
    facts |= {"host": {"cpu_model": "A"}}
    run, _ = found.begin("6.1", 1)
    (run / "meta.json").write_text(json.dumps(facts))
    later = {**facts, "machine": {"type": "pc-q35-10.0"}}
    refuse_another_host(tmp_path, ["6.1"], later)  # that run is no result yet
    end(run, "completed")
    refuse_another_host(tmp_path, ["6.1"], facts)
    with pytest.raises(
        UserError, match=r"with machine\.type pc-q35-7\.2, and here it is pc-q35-10"
    ):
        refuse_another_host(tmp_path, ["6.1"], later)
    moved = {**facts, "host": {"cpu_model": "B"}}
    refuse_another_host(tmp_path, ["6.1"], moved)  # the guest's clock does not heed it
    facts |= {"clock": {"kind": "host"}}
    (run / "meta.json").write_text(json.dumps(facts))
    with pytest.raises(UserError, match=r"with host\.cpu_model A, and here it is B"):
        refuse_another_host(tmp_path, ["6.1"], {**moved, "clock": {"kind": "host"}})
    facts |= {"disk": {"model": "a model of a disk", "kind": "rotating"}}
    (run / "meta.json").write_text(json.dumps(facts))
    throttled = {**facts, "disk": {"model": "sparse file"}}
    with pytest.raises(UserError, match=r"disk\.model a model of a disk, and here it is sparse f"):
        refuse_another_host(tmp_path, ["6.1"], throttled)
    (run / "meta.json").write_text("[")
    refuse_another_host(tmp_path, ["6.1"], later)


def test_what_a_guest_has_is_known_by_its_bytes(tmp_path: Path) -> None:
    found = opened(tmp_path, "--kernel", "debian:6.1", "--out", str(tmp_path))
    facts = {
        "parameters": {"workload": "desktop"},
        "machine": {"qemu": "7.2"},
        "guest": {"image": "a", "suite": "b"},
    }
    run, _ = found.begin("6.1", 1)
    (run / "meta.json").write_text(json.dumps(facts))
    end(run, "completed")
    refuse_another_host(tmp_path, ["6.1"], {**facts, "machine": {"qemu": "10.0"}})
    suite = {**facts, "guest": {"image": "a", "suite": "c"}}
    with pytest.raises(UserError, match=r"with guest\.suite b, and here it is c"):
        refuse_another_host(tmp_path, ["6.1"], suite)
    image = {**facts, "guest": {"image": "c", "suite": "b"}}
    with pytest.raises(UserError, match=r"with guest\.image a, and here it is c"):
        refuse_another_host(tmp_path, ["6.1"], image)
    # Another workload's guest has other packages.
    refuse_another_host(tmp_path, ["6.1"], image, "seqio")


def test_a_control_has_seeds_of_its_own(tmp_path: Path) -> None:
    again = [word for one in ("6.1", "7.2", "6.1", "6.1") for word in ("--kernel", f"debian:{one}")]
    found = opened(tmp_path, *again, "--out", str(tmp_path), "--runs", "2")
    assert found.labels == ["6.1", "7.2", "6.1-2", "6.1-3"]
    # All kernels here have one digest: 7.2 is 6.1 once more, too.
    assert [found.seed(label, 2) for label in found.labels] == [2, 1002, 2002, 3002]
    knob = ["--knob", "/proc/sys/vm/swappiness=10", "--label", "x"]
    more = opened(tmp_path, "--kernel", "debian:6.1", *knob, "--out", str(tmp_path))
    assert more.seed("x", 1) == 1 and more.seed("6.1-3", 1) == 3001


def test_names_mean_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = identified(parse(["--device", "a.img", "--destroy-data", "a.img"]))
    assert (found.device, found.destroy_data) == (f"{tmp_path}/a.img",) * 2
    kernels = ["bzImage,modules=m", "/boot/x", "host", "debian:6.1"]
    asked = identified(parse([word for one in kernels for word in ("--kernel", one)]))
    assert [one.kernel for one in asked.variants] == [
        f"{tmp_path}/bzImage,modules={tmp_path}/m",
        *kernels[1:],
    ]


def test_what_no_plan_can_hold_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(["--out", "/data/caf\udce9"])
    assert "not UTF-8" in capsys.readouterr().err


def test_a_home_that_nobody_has_is_a_name_like_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = identified(parse(["--repo", "~nosuchuser/linux", "--music", "~nosuchuser/m"]))
    assert str(found.repo).endswith("/~nosuchuser/linux")
    assert str(found.music).endswith("/~nosuchuser/m")
    with pytest.raises(UserError, match="unknown kernel '~nosuchuser/bzImage'"):
        resolve("~nosuchuser/bzImage")
    with pytest.raises(SystemExit, match="2"):
        parse(["--machine", "~nosuchuser/x.toml"])
    assert "/~nosuchuser/x.toml: No such file" in capsys.readouterr().err


def test_the_swap_is_in_the_labels_and_in_the_plan_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    argv = ["--kernel", "debian:6.1", "--swap", "disk", "--swap", "zram,size=64M"]
    finish(opened(out, "--out", str(out), *argv))
    stored = [(one["label"], one.get("swap")) for one in plan(out)["variant"]]
    assert stored == [("6.1-disk", None), ("6.1-zram-64M", "zram,size=64M")]
    assert opened(out, "--resume", str(out), *argv).left() == []
    assert opened(out, "--resume", str(out)).left() == []
    more = ["--resume", str(out), "--kernel", "debian:6.1", "--swap", "none"]
    assert remaining(parse(more)) == [("debian:6.1-none", 1)]
    assert opened(out, *more).left() == [("6.1-none", 1)]
    with pytest.raises(UserError, match=r"another swap \(none, now zram\)"):
        again = ["--kernel", "debian:6.1", "--swap", "zram", "--label", "6.1-disk"]
        opened(out, "--out", str(out), *again)
    text = (out / "plan.toml").read_text().replace("zram,size=64M", "zram,pool=64")
    (out / "plan.toml").write_text(text)
    with pytest.raises(UserError, match="zram takes size=, algorithm="):
        opened(out, "--out", str(out), "--kernel", "debian:6.1")
