# SPDX-License-Identifier: GPL-2.0-or-later
"""Secrets of all kinds, planted into each file of a run: none of them is in the bundle.

But for those that docs/reference/redaction.md names under "What stays in it": they are planted too.
"""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from analysis.reading import archive
from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import make_campaign
from graphs.bundle import bundle
from graphs.redaction.secret_names import Secrets

OWN = Secrets(
    frozenset({"annas-laptop", "annas-laptop.zuhause.example"}),
    frozenset({"anna", "Anna Beispiel"}),
    frozenset({"/data/people/anna"}),
)
UUID = "ddf6f908-54bf-469e-b0e3-{:012x}"
# (what a line says, what of it must not be in the bundle)
HOSTS = [
    ("annas-laptop kernel: up", "annas-laptop"),
    ("at ANNAS-LAPTOP.zuhause.example now", "zuhause"),
    ("root=/dev/mapper/annas--laptop--vg-root ro", "annas--laptop"),
    (r"Found device dev-mapper-annas\x2d\x2dlaptop\x2d\x2dvg\x2droot.device", "laptop\\x2d"),
    ("resume=/dev/mapper/bertas--pc--vg-swap_1", "bertas"),
    ("fsck of /dev/clara-vg/home", "clara"),
    ("rd.lvm.lv=fedora_doras-pc/root", "doras"),
    ("mounted /dev/mapper/rhel_emmas--server-root", "emmas"),
    ('Found volume group "fritz-pc-vg" using metadata', "fritz-pc"),
    (r"dev-mapper-gustavs\x2d\x2dpc\x2d\x2dvg\x2dswap_1.swap", "gustavs"),
    ("Hostname set to <heinrichs-pc>.", "heinrichs"),
    ("systemd.hostname=idas-pc", "idas-pc"),
    ("hostnamectl set-hostname julius-pc", "julius"),
    ("karls-pc login: ", "karls"),
    ("VG annas_laptop_vg found", "annas_laptop"),
    ("DHCP4 option host_name => 'hannos-pc'", "hannos"),
    ("authentication failure; rhost=ingos-pc user=root", "ingos"),
    ("Linux ludwigs-pc 6.12.117 #1 SMP", "ludwigs"),
    ("Linux version 6.12.1 (martha@marthas-pc) (gcc 14)", "martha"),
    ("[nora@noras-pc ~]$ make", "nora"),
    ("ottos-user@ottos-pc:~$ ls", "ottos"),
    ("nfs: server paulas-nas not responding", "paulas"),
    (r"CIFS: VFS: \\quelles-nas\share", "quelles"),
    ("//richards-nas/music on /music", "richards"),
    ("siegfrieds-nas:/export/music on /music", "siegfrieds"),
    ("ssh: connect to host theos-pc port 22: refused", "theos"),
    ("rsync://ulrichs-nas/music", "ulrichs"),
    ("looking up mail.viktors-firma.de", "viktors"),
    ("ntp server zeit.wilhelms-netz.org", "wilhelms"),
    ("found printer.xaver.lan", "xaver"),
    ("https://wiki.ypsilon-firma.com/x", "ypsilon"),
    ("2026-11-05T11:48:44+01:00 zachs-pc kernel: x", "zachs"),
]
USERS = [
    ("by Anna Beispiel", "Beispiel"),
    ("USER=ursula", "ursula"),
    ("session opened for user vincent(uid=1000)", "vincent"),
    ("New session 3 of user walburga.", "walburga"),
    ("Accepted publickey for xenia from 192.168.3.4 port 5", "xenia"),
    ("Failed password for invalid user yannick from 192.168.3.4", "yannick"),
    ("sudo: zenzi : TTY=pts/0", "zenzi"),
    ("su: (to root) albrecht on pts/1", "albrecht"),
    ("CRON[7]: (brunhild) CMD (true)", "brunhild"),
    ('audit: acct="cunigunde" exe="/bin/su"', "cunigunde"),
    ('AUID="dietlinde" UID="root"', "dietlinde"),
    ("polkitd: unix-user:eberhard (auth)", "eberhard"),
    ("LOGIN ON tty1 BY friedhelm", "friedhelm"),
    ("cd ~gerlinde/x", "gerlinde"),
    ("authentication failure; ruser=giselher rhost=", "giselher"),
    ("ssh gudrun@10.1.1.1", "gudrun"),
    ("hagen@nas: Permission denied", "hagen"),
    (r"C:\Users\heidrun\x", "heidrun"),
    ("/home/hildegard/src", "hildegard"),
    ("/Users/irmgard/src", "irmgard"),
    ("opened /data/people/anna/x", "people"),
    ("mail /var/mail/jolanthe", "jolanthe"),
    ("/var/spool/cron/crontabs/kriemhild", "kriemhild"),
    ("/run/media/lieselotte/STICK7", "lieselotte"),
    ("/media/mechthild/STICK8/x", "mechthild"),
    ("ftp://norbert:geheim77@ftp.example.net/", "geheim77"),
    ("mail of ottilie.x+y@mail.example.org.", "ottilie"),
]
ADDRESSES = [
    ("52:54:00:aa:bb:01 up", "52:54:00"),
    ("52-54-00-AA-BB-02 up", "52-54-00"),
    ("5254.00aa.bb03 up", "5254.00aa"),
    ("perm_addr 525400aabb04", "525400aabb04"),
    ("perm_addr: 525400aabb05", "525400aabb05"),
    ("HWaddr=525400aabb06", "525400aabb06"),
    ("link/ether 525400aabb07 brd", "525400aabb07"),
    ("wlx525400aabb08: renamed", "525400aabb08"),
    ("BD address 0x525400aabb09", "525400aabb09"),
    ("BSSID 525400aabb0a", "525400aabb0a"),
    ("peer 5254-00aa-bb0b up", "5254-00aa"),
    ("DHCP lease of 77.77.2.3", "77.77.2.3"),
    ("inet 192.168.77.5/24", "192.168.77"),
    ("nfs://10.77.2.3:/srv", "10.77.2"),
    ("connect to 5.9.77.2", "5.9.77"),
    ("ip=81.77.3.4:81.77.3.5:81.77.3.1:255.0.0.0::", "81.77.3"),
    ("[172.16.77.9-ma] idle", "172.16.77"),
    ("[203.77.113.8-manag] idle", "203.77.113"),
    ("addr:fe80::5054:ff:fe12:3477: up", "fe12:3477"),
    ("[2001:db8:77::1]:873", "db8:77"),
]
IDS = [
    (f"root=UUID={UUID.format(1)}", "ddf6f908"),
    ("root=PARTUUID=1234abcd-77", "1234abcd"),
    ("/dev/disk/by-uuid/ABCD-1277", "ABCD-1277"),
    (r"dev-disk-by\x2duuid-ABCD\x2dE278.device", "E278"),
    (rf"dev-disk-by\x2duuid-{UUID.format(2)}.device".replace("-54", r"\x2d54"), "f7a1cfee"),
    ("machine-id 0123456789abcdef0123456789abcd77", "abcdef0123456789abcd77"),
    ("Machine ID: 1123456789abcdef0123456789abcd77", "1123456789abcdef"),
    ("/var/log/journal/2123456789abcdef0123456789abcd77/system.journal", "2123456789ab"),
    ("rd.md.uuid=a1b2c377:e5f6a7b8:c9d0e1f2:a3b4c5d6", "c9d0e1f2"),
    ("LVM-" + "aB3x" * 16, "aB3xaB3x"),
    ("CRYPT-LUKS2-" + "0a1b2c77" * 4 + "-root", "0a1b2c77"),
    ("Disk identifier: 0x1234ab77", "1234ab77"),
    ("PV aBcDeF-1234-5678-9abc-defg-hijk-LmNo77", "LmNo77"),
]
SERIALS = [
    ("usb 1-1: SerialNumber: 4C530001230823115077", "4C53000123"),
    ("serial number WD-WCC4N1234577", "WCC4N1234577"),
    ("ID_SERIAL_SHORT=S3Z8NB0K123477A", "S3Z8NB0K123477A"),
    ("-device virtio-blk,serial=QM00477x", "QM00477x"),
    ("wwn-0x5002538e40b1f177", "5002538e40b1f177"),
    ("nvme-eui.0025385b71b04f77", "0025385b71b04f77"),
    ("/dev/disk/by-id/ata-X_S3Z8NB0K123478A-part2", "S3Z8NB0K123478A"),
    (r"dev-disk-by\x2did-ata\x2dX_S3Z8NB0K123479A.device", "S3Z8NB0K123479A"),
    ("ata-Samsung_SSD_860_S3Z8NB0K123480A", "S3Z8NB0K123480A"),
    ("ATA-9: Samsung SSD, RVT04B6Q, S3Z8NB0K123481A, x", "S3Z8NB0K123481A"),
    ("SN: 5CD1234X77", "5CD1234X77"),
    ("S/N 5CD1234X78", "5CD1234X78"),
    ("Service Tag: 7XK2P33", "7XK2P33"),
    ("chassis_serial=PF1ABC77", "PF1ABC77"),
    ("Serial#: PC0ABC77", "PC0ABC77"),
    ("Asset Tag: INV-0047-77", "INV-0047"),
    ("IMEI: 356938035643877", "356938035643877"),
    ("mmc0: cid 1b534d454231515430f1c2d3e4f50177", "1b534d4542"),
    ("iqn.2004-10.com.ubuntu:01:d83dcaf77", "d83dcaf77"),
    ("nqn.2014-08.org.nvmexpress:uuid:" + UUID.format(3), "org.nvmexpress:uuid"),
]
WORDS = [
    ('wlan0: ssid="My Secret Net77"', "Secret Net77"),
    ("SSID 'Bertas Funknetz 77' found", "Funknetz"),
    ("ssid=Claras-Netz77", "Claras-Netz77"),
    ("(wifi) connection 'Doras WLAN 77' chosen", "Doras WLAN"),
    ("password=hunter2277", "hunter2277"),
    ('password="two words 77"', "two words"),
    ("Password: hunter2278", "hunter2278"),
    ("wpa_passphrase=hunter2279", "hunter2279"),
    ("psk=hunter2280", "hunter2280"),
    ("pass=hunter2283", "hunter2283"),
    ("pw=hunter2284", "hunter2284"),
    ("Cookie: session=abcdef99", "abcdef99"),
    ("sk_live_abcdefghijklmnopqrst77", "sk_live"),
    ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW", "b3BlbnNz"),
    ("starting connection 'Emmas WLAN 77' (x)", "Emmas WLAN"),
    ("PGPASSWORD=hunter2281", "hunter2281"),
    ("--password hunter2282", "hunter2282"),
    ("token=abcdef772281", "abcdef772281"),
    ("https://x.example.org/?token=abcdef772282&x=1", "abcdef772282"),
    ("api_key: abcdef772283", "abcdef772283"),
    ("PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBm8=", "yAnz5TF"),
    ("Authorization: Basic YW5uYTpnZWhlaW0=", "YW5uYTpn"),
    ("Bearer fedcba0123456789abcd77", "fedcba0123456789abcd77"),
    ("git clone with ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_16C7"),
    ("got glpat-abcdef1234567890xy77", "glpat"),
    ("AKIAIOSFODNN7EXAMPL7", "AKIAIOSF"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3", "eyJhbGci"),
    ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ77abcdefghijk", "AAAAC3Nz"),
    ("SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8", "nThbg6kX"),
    ("root=LABEL=bertas-root77", "bertas-root77"),
    ("/dev/disk/by-label/CLARAS_DISK77", "CLARAS_DISK77"),
    (r"dev-disk-by\x2dlabel-DORAS_DISK77.device", "DORAS_DISK77"),
    ("BTRFS: device label emils-daten77 devid 1", "emils-daten77"),
]
PATHS = [
    ("--repo /zpool7/projekt-adler/src.git", "adler"),
    ("--repo=~/projekt-bussard", "bussard"),
    ("--out /zpool8/kunde-meier", "meier"),
    ("--music '/zpool9/Die Dohlen - Flug im Sturm.flac'", "Flug im Sturm"),
    ("--kernel /zpool10/projekt-eule/bzImage", "eule"),
    ("--kernel /vm/bzImage,modules=/zpool11/projekt-falke/lib", "falke"),
    ("--tree /zpool12/projekt-milan", "milan"),
    ("--patch /zpool13/projekt-nandu/x.patch", "nandu"),
    ("--patch '/vm/a.patch /zpool14/projekt-otter/x.patch'", "otter"),
    ("--kernel-config /zpool15/projekt-pirol/x.config", "pirol"),
    ("--kernel git:/zpool16/projekt-rabe/linux@v7.2", "rabe"),
    ("debian-source:7.2,patch=/zpool17/projekt-specht/x.patch", "specht"),
    ("--bisect-hunks /zpool18/projekt-taube/linux debian-source:7.2", "taube"),
    ("--bisect-hunks debian-source:7.2 /zpool19/projekt-uhu/linux", "uhu"),
    ("--qemu /zpool20/projekt-wachtel/qemu", "wachtel"),
    ("opened /srv/projekt-geier/x", "geier"),
    ("opened /mnt/projekt-habicht/x", "habicht"),
    ('opened "/data/projekt ibis/x y"', "ibis"),
    ("on /media/JAKOBS-STICK/x", "JAKOBS"),
    ("git@git.example.org:anna/projekt-kauz.git", "kauz"),
    ("resume /export/projekt-lerche", "lerche"),
]
PLANTED = [*HOSTS, *USERS, *ADDRESSES, *IDS, *SERIALS, *WORDS, *PATHS]
# (what a line says, what of it stays in the bundle, the words of redaction.md that say so)
STAYS = [
    ("seen 8.8.77.8 there", "8.8.77.8", "a public IPv4 address"),
    ("input: Ottokars Headset as /devices/x", "Ottokars", "names of people, places and products"),
    ("mapper/tresor77-daten", "tresor77", "names of volumes and volume groups"),
    ("ssid=Zwei Netze77", "Netze77", "the second word of a name that has no quotes"),
    ("https://github.com/dritter77/x", "dritter77", "the path of a URL"),
    ("opened /tmp/zehnter77/x", "zehnter77", "the system's folders (`/tmp/NAME`)"),
    ("opened /opt/vierter77/x", "vierter77", "a folder elsewhere (`/opt/NAME`"),
    ("opened /sechster77/x", "sechster77", "a folder elsewhere"),
    ("MAC 8c 16 45 87 ab 77", "8c 16 45 87", "spelled as no program spells it"),
    ("read siebter77 from a keyring", "siebter77", "a password that no word announces"),
    ("release 6.12.1-fuenfter77 #1", "fuenfter77", "the release of a kernel"),
]
ALL = [text for text, _ in PLANTED] + [text for text, *_ in STAYS]


def as_lines(run: Path, name: str) -> None:
    """Each as a line of a log."""
    stamp = "[   99.000000] <6> " if name == "kern.log" else ""
    path = run / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as log:
        log.write("".join(f"{stamp}{text}\n" for text in ALL))


def into_json(run: Path, name: str) -> None:
    """Each as a value, as an item of a list and as a key."""
    path = run / name
    facts = json.loads(path.read_text())
    if name == "status.json":
        facts["why"] = " | ".join(ALL)
    facts |= {"notes": ALL, "by_name": {text: 1 for text in ALL}}
    facts |= {f"note_{place}": text for place, text in enumerate(ALL)}
    path.write_text(json.dumps(facts))


def into_events(run: Path, name: str) -> None:
    """Each as an event, then as one that was cut short."""
    events = "".join(json.dumps({"t": 1.0, "event": "x", "words": text}) + "\n" for text in ALL)
    (run / name).write_text(events + '{"t": 1, "cut": "' + json.dumps(ALL[0])[1:-1])


def into_latency_log(run: Path, name: str) -> None:
    """Each as a line that a program prints."""
    with (run / name).open("a") as log:
        log.write("".join(f"999.000 0.000 {text}\n" for text in ALL))


def into_config(run: Path, name: str) -> None:
    """Each as the value of an option."""
    with (run.parent / name).open("a") as config:
        for place, text in enumerate(ALL):
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            config.write(f'CONFIG_TEXT_{place}="{quoted}"\n')


def into_plan(run: Path, name: str) -> None:
    """Each in the plan's command, and as a value."""
    path = run.parent.parent / name
    plan = tomllib.loads(path.read_text())
    plan["command"] += " " + " ".join(ALL)
    plan["variant"][0]["append"] = " ".join(ALL)
    plan["notes"] = ALL
    path.write_text(tomli_w.dumps(plan))


FILES: dict[str, Callable[[Path, str], None]] = {
    "kern.log": as_lines,
    "console.log": as_lines,
    "allocation-failures.log": as_lines,
    "hang/registers.txt": as_lines,
    "meta.json": into_json,
    "status.json": into_json,
    "events.jsonl": into_events,
    "latency-gitk-1.log": into_latency_log,
    "config": into_config,
    "plan.toml": into_plan,
}


@pytest.fixture(autouse=True)
def _annas_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "own_secrets", lambda: OWN)


def packed(folder: Path) -> dict[str, str]:
    """The files of the campaign's bundle."""
    report = folder / "report"
    report.mkdir(exist_ok=True)
    path = bundle.write(compare(load_campaign(folder), force=True), report)
    return {one.name: b"".join(one.chunks()).decode() for one in archive.members(path)}


def test_there_are_many() -> None:
    assert len({needle for _, needle in PLANTED}) == len(PLANTED) >= 107


@pytest.mark.parametrize("name", FILES)
def test_no_planted_secret_is_in_the_bundle(name: str, tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1)
    FILES[name](folder / "6.1" / "1", name)
    files = packed(folder)
    whole = "\n".join([*files, *files.values()]).lower()
    assert [needle for _, needle in PLANTED if needle.lower() in whole] == []
    # Those that docs/reference/redaction.md names came through, so these files are in it.
    assert [needle for _, needle, _ in STAYS if needle.lower() not in whole] == []


def test_what_stays_is_named_in_the_docs() -> None:
    text = " ".join((Path(__file__).parents[2] / "docs/reference/redaction.md").read_text().split())
    stays = text.partition("## What stays in it")[2]
    assert [words for *_, words in STAYS if words not in stays] == []


TASKS = ["192.168.77.5", "8.8.77.8", "203.77.113.8-ma", "annas-laptop", "52:54:00:aa:bb"]


def test_a_task_named_like_an_address_is_none_in_the_bundle(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1, with_evidence=True)
    path = folder / "6.1" / "1" / "tasks.tsv"
    rows = path.read_text().splitlines()
    for place, task in enumerate(TASKS, 1):
        cells = rows[place].split("\t")
        cells[4] = task
        rows[place] = "\t".join(cells)
    path.write_text("\n".join(rows) + "\n")
    found = packed(folder)["bug-report/6.1/1/tasks.tsv"]
    assert [task for task in TASKS[:-1] if task in found] == []
    assert len(found.splitlines()) == len(rows)


# (key of meta.json, its value, what of it must not be in the bundle)
KEYED: list[tuple[str, Any, str]] = [
    ("hostname", "pippins-pc", "pippins"),
    ("owner", "samweis", "samweis"),
    ("ssid", "My Secret Net", "Secret Net"),
    ("password", "hunter2277", "hunter2277"),
    ("auth_token", "x y z 77", "x y z"),
    ("music", "/home/anna/Die Dohlen - Sturm.flac", "Dohlen"),
    ("repo", "git/projekt-adler", "adler"),
    ("machine", "/zpool7/projekt-bussard/mine.toml", "bussard"),
    ("perm_addr", "525400aabb77", "525400aabb77"),
    ("machine_id", "0123456789abcdef0123456789abcd77", "0123456789ab"),
    ("disk", {"model": "Samsung SSD 860 EVO S3Z8NB0K123477A"}, "S3Z8NB0K123477A"),
    ("argv", ["x", "--password", "hunter2278", "--music", "Dohlen/Flug.flac"], "Flug"),
]


@pytest.mark.parametrize(("key", "value", "gone"), KEYED)
def test_a_key_says_what_its_value_is(key: str, value: Any, gone: str, tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1)
    run = folder / "6.1" / "1"
    facts = json.loads((run / "meta.json").read_text()) | {key: value}
    (run / "meta.json").write_text(json.dumps(facts))
    assert gone not in "\n".join(packed(folder).values())


def test_options_of_a_config_that_name_a_machine(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1)
    with (folder / "6.1" / "config").open("a") as config:
        config.write('CONFIG_DEFAULT_HOSTNAME="pippins-pc"\nCONFIG_BUILD_SALT="samweis-77"\n')
        config.write('CONFIG_LOCALVERSION="-annas-laptop"\n')
    (folder / "6.1" / "1" / "console.log").write_text("at pippins-pc\n")
    files = packed(folder)
    whole = "\n".join(files.values())
    assert [one for one in ("pippins", "samweis", "annas") if one in whole] == []
    assert 'CONFIG_LOCALVERSION="-<host-' in files["bug-report/6.1/config"]
