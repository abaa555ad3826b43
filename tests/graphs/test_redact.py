# SPDX-License-Identifier: GPL-2.0-or-later
"""Secrets go, the same one to the same token; figures, versions and everything else stay."""

import json
import re
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.kernel_log.records import count_failures
from analysis.reading.counter_tables import parse_table
from analysis.reading.latency_log import parse_lines
from benchmarks.synthetic_results.make import meta
from contract.command_line import build_parser
from graphs.bundle import redacted_view
from graphs.redaction.redact import TOKEN, Redactor
from graphs.redaction.result_files import learn, redacted
from graphs.redaction.secret_names import Secrets, is_searchable, own_secrets
from run.bisect import options as bisect_options
from run.changed_kernels import change_options
from run.hosts import host_list
from tests.support.loading import one_run

OWN = Secrets(
    frozenset({"annas-box"}), frozenset({"anna", "max"}), frozenset({"/data/people/anna"})
)
UUID = "ddf6f908-54bf-469e-b0e3-f7a1cfee96ae"


def taught(*texts: str) -> Redactor:
    redactor = Redactor(OWN)
    for text in texts:
        redactor.learn(text)
    return redactor


def in_json(values: dict[str, Any]) -> Any:
    """The values of a meta.json, redacted."""
    redactor, raw = taught(), json.dumps(values).encode()
    learn("meta.json", raw, redactor)
    return json.loads(redacted("meta.json", raw, redactor))


# (text, what it is afterwards)
SECRETS = [
    ("mac 52:54:00:aA:bb:cc: up", "mac <mac-1>: up"),
    ("52-54-00-AA-BB-CC", "<mac-1>"),
    ("5254.00aa.bbcc", "<mac-1>"),
    ("wlx525400aabbcc: renamed", "wlx<mac-1>: renamed"),
    ("guid 80:00:02:08:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:1f:52", "guid <mac-1>"),
    ("inet 192.168.1.5/24", "inet <ip-1>/24"),
    ("nfs://10.1.2.3:/srv", "nfs://<ip-1>:/srv"),
    ("myip_172.16.0.9.log", "myip_<ip-1>.log"),
    ("connect to 5.9.1.2", "connect to <ip-1>"),
    ("addr:fe80::5054:ff:fe12:3456: up", "addr:<ip-1>: up"),
    ("2001:DB8:0:0:0:0:0:1", "<ip-1>"),
    ("[2001:db8::1]:873 fe80::1%eth0", "[<ip-1>]:873 <ip-2>%eth0"),
    ("::ffff:192.168.1.5", "<ip-1>"),
    (f"root=UUID={UUID}", "root=UUID=<uuid-1>"),
    (UUID.upper(), "<uuid-1>"),
    ("root=PARTUUID=1234abcd-01", "root=PARTUUID=<uuid-1>"),
    ("/dev/disk/by-uuid/ABCD-1234", "/dev/disk/by-uuid/<uuid-1>"),
    ("dm LVM-" + "aB3x" * 16, "dm LVM-<uuid-1>"),
    ("PV aBcDeF-1234-5678-9abc-defg-hijk-LmNoPq", "PV <uuid-1>"),
    ("CRYPT-LUKS2-" + "0a1b2c3d" * 4 + "-root", "CRYPT-LUKS2-<uuid-1>-root"),
    ("usb 1-1: SerialNumber: 4C530001230823115033", "usb 1-1: SerialNumber: <serial-1>"),
    ("serial number WD-WCC4N1234567", "serial number <serial-1>"),
    ("ID_SERIAL_SHORT=S3Z8NB0K123456A", "ID_SERIAL_SHORT=<serial-1>"),
    ("-device virtio-blk,serial=QM00421x", "-device virtio-blk,serial=<serial-1>"),
    ("wwn-0x5002538e40b1f1c2", "wwn-<serial-1>"),
    ("nvme-eui.0025385b71b04f2e", "nvme-eui.<serial-1>"),
    ("/dev/disk/by-id/ata-X_S3Z8NB0K123456A-part2 x", "/dev/disk/by-id/<serial-1> x"),
    ("ata-Samsung_SSD_860_S3Z8NB0K123456A", "ata-Samsung_SSD_860_<serial-1>"),
    ("mail a.user+x@mail.example.org.", "mail <email-1>."),
    ("rsync://joe:pw@nas-7/music", "rsync://<login-1>@<host-1>/music"),
    ("/home/jdoe/src /root/x", "<home-1>/src <home-2>/x"),
    ("/data/people/anna/results", "<home-1>/results"),
    ("Anna on ANNAS-BOX", "<user-1> on <host-1>"),
    ("6.12-annas-box_1 annas-box.lan", "6.12-<host-1>_1 <host-1>"),
    ("USER=max", "USER=<user-1>"),
    ("Linux version 6.12 (kim@builder7) (gcc", "Linux version 6.12 (<user-1>@<host-1>) (gcc"),
    ("Hostname set to <gandalf>.", "Hostname set to <<host-1>>."),
    ("gandalf login: ", "<host-1> login: "),
    ("Nov  5 11:48:44 gandalf kernel: x", "Nov  5 11:48:44 <host-1> kernel: x"),
    ("ip=192.168.1.5:::255.255.255.0:gandalf:eth0", "ip=<ip-1>:::255.255.255.0:<host-1>:eth0"),
    ("sda: serial WD-WX12345678", "sda: serial <serial-1>"),
    ("serialno 12AB34CD", "serialno <serial-1>"),
    (
        "nguid 0025385b71b04f2e0025385b71b04f2e eui 0025385b71b04f2f",
        "nguid <serial-1> eui <serial-2>",
    ),
    ("ata1.00: WDC WD10EZEX-08WN4A0, WD-WCC6Y1234567", "ata1.00: WDC WD10EZEX-08WN4A0, <serial-1>"),
    (
        "ATA-9: Samsung SSD, RVT04B6Q, S3Z8NB0K123456A, x",
        "ATA-9: Samsung SSD, RVT04B6Q, <serial-1>, x",
    ),
    ("BD address 0x3413e8aabbcc", "BD address 0x<mac-1>"),
    ("mmc0: serial 0x1234abcd", "mmc0: serial <serial-1>"),
    ("mmc0: cid 1b534d454231515430f1c2d3e4f50123", "mmc0: cid <serial-1>"),
    (r"CIFS: VFS: \\fileserver\share", r"CIFS: VFS: \\<host-1>\share"),
    ("//fileserver/share on /mnt of fileserver", "//<host-1>/share on /mnt of <host-1>"),
    ("nfs: server fileserver not responding", "nfs: server <host-1> not responding"),
    ("DNS servers 203.0.113.7 198.51.100.9", "DNS servers <ip-1> <ip-2>"),
    ("DNS: 5.9.1.7, 81.2.3.9 and 81.2.3.10", "DNS: <ip-1>, <ip-2> and <ip-3>"),
    ("a 5.9.1.2:873 b 81.2.3.4/24", "a <ip-1>:873 b <ip-2>/24"),
    ("ip=5.9.1.2:5.9.1.3:5.9.1.1:255.0.0.0::", "ip=<ip-1>:<ip-2>:<ip-3>:255.0.0.0::"),
    ('wlan0: SSID "Wlan-of-Anna2"', 'wlan0: SSID "<ssid-1>"'),
]


@pytest.mark.parametrize(("text", "wanted"), SECRETS)
def test_a_secret_becomes_a_token(text: str, wanted: str) -> None:
    redactor = taught(text)
    assert redactor.text(text) == wanted
    assert redactor.text(wanted) == wanted
    assert taught(text).log(f"[    1.000000] <6> {text}\nx") == f"[    1.000000] <6> {wanted}\nx"


def _options_with_a_path() -> list[str]:
    """The options whose value can be a file or folder of the user's machine."""
    parser = build_parser()
    change_options.add(parser)
    bisect_options.add_options(parser)
    host_list.add_option(parser)
    # Paths in a kernel's tree, in /sys and /proc/sys, and of a control group.
    elsewhere = {"--paths", "--knob", "--slice"}
    words = re.compile("PATH|FILE|DIR|DEV|SPEC|COMMAND|WHERE")
    return [
        flag
        for action in parser._actions
        for flag in action.option_strings
        if words.search(str(action.metavar)) and flag not in elsewhere
    ]


@pytest.mark.parametrize("option", _options_with_a_path())
@pytest.mark.parametrize("form", ["{} {}", "{}={}", "{} '{}'", '{}="{}"'])
def test_each_option_with_a_users_absolute_path_loses_its_folder(option: str, form: str) -> None:
    kind = {"--kernel": "git:", "--on": "ssh:"}.get(option, "")
    text = f"run_test.sh {form.format(option, f'{kind}/vault/zeta/eta.toml')} --runs 2"
    shown = taught(text).text(text)
    assert "zeta" not in shown and shown.endswith(" --runs 2")


@pytest.mark.parametrize("option", sorted({*_options_with_a_path()} - {"--on", "--daemon"}))
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quoted_path_may_hold_a_space(option: str, quote: str) -> None:
    text = f"run_test.sh {option} {quote}/vault/my zeta/eta.toml{quote} --runs 2"
    shown = taught(text).text(text)
    assert "zeta" not in shown and shown.endswith(" --runs 2")


# No file keeps --on.
@pytest.mark.parametrize("option", sorted({*_options_with_a_path()} - {"--on"}))
def test_the_same_value_goes_from_json(option: str) -> None:
    key = option.removeprefix("--").replace("-", "_")
    shown = in_json({key: "/vault/zeta/eta.toml"})
    assert "zeta" not in shown[key]


def test_of_a_daemons_command_only_folders_go() -> None:
    command = "/opt/nohang/bin/nohang -p 5/10 --config /vault/zeta/eta.conf"
    shown = in_json({"daemon": command, "log": [f"run_test.sh --daemon '{command}' --runs 2"]})
    wanted = "<path-1>/nohang -p 5/10 --config <path-2>/eta.conf"
    assert shown == {"daemon": wanted, "log": [f"run_test.sh --daemon '{wanted}' --runs 2"]}


def test_the_options_with_a_path_are_known_by_their_help() -> None:
    assert {"--kernel", "--repo", "--patch", "--tree", "--on", "--out"} <= {*_options_with_a_path()}


INNOCENT = [
    "12:34:56 2026-11-21T05:39:40+0000 1:2:3",
    "pci 0000:00:1f.2: [8086:2922] [bus 00-ff] pnp 00:05",
    "Linux version 6.1.192.1 Debian 6.1.0-31 5.10.0.1-x 6.1.192.1 2.6.32.71",
    "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12) 6.12.117+deb13-cloud-amd64",
    "QEMU 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3) gcc 12.2.0-14+deb12u1",
    "bnxt firmware version 214.0.286.18, driver version 10.1.2.3, OID 1.2.3.4.5",
    "std::vector<int>::size() a::b Foo::dead::beef() ::",
    "127.0.0.1 ::1 0.0.0.0 255.255.255.0 10.0.2.15 00:00:00:00:00:00 ff:ff:ff:ff:ff:ff",
    "00000000-0000-0000-0000-000000000000",
    "debian-kernel@lists.debian.org dm-devel@lists.linux.dev x@vger.kernel.org",
    "Started getty@tty1.service and user@1000.service",
    "Serial: 8250/16550 driver, serial8250: ttyS0 at I/O 0x3f8, SerialNumber=3",
    "max_cycles: 0x256c062b117, -cpu max,-avx, max UDMA/133, mac80211",
    "root=/dev/vda /sysroot /boot/root init=/bin/sh HOME=/ ip=dhcp",
    "audit(1795239579.580:1) Code: 00 11 22 33 44 55 mem 0x1fe43000-0x1fe6dfff",
    "gitk: page allocation failure: order:2, mode:0x820(GFP_ATOMIC)",
    "X.509 cert 'Build time autogenerated kernel key: cdc248013ad440219bc6a7d71976b97edc126276'",
    "Linux-PAM 1.2.3.4, usbhid 2.0.0.1: probed, Chrome/1.2.3.4 x=5.9.1.2",
    "serial ttyUSB0, serial console1, serial 115200, serial 0000:00:16.3: cid 3, serial port 12",
    "ata1.00: ATA-8: QEMU HARDDISK, 2.5+, max UDMA/100",
    "https://x.kernel.org/a //lib/modules/x // one/two /usr//share/x",
    "uuid added, host, user, the user space and hostname",
    # A laptop's log, as a kernel's developer reads it.
    "ata1.00: ATA-9: Samsung SSD 850 EVO 250GB, EMT02B6Q, max UDMA/133",
    "scsi 0:0:0:0: Direct-Access     ATA      Samsung SSD 850  2B6Q PQ: 0 ANSI: 5",
    "nvme nvme0: 8/0/0 default/read/poll queues, nvme0: pci function 0000:01:00.0",
    "EXT4-fs (dm-0): mounted filesystem r/w with ordered data mode. Quota mode: none.",
    "device-mapper: ioctl: 4.48.0-ioctl (2023-03-01) initialised: dm-devel@lists.linux.dev",
    "r8169-0-100:00: attached PHY driver (mii_bus:phy_addr=r8169-0-100:00, irq=MAC)",
    "RIP: 0010:shrink_folio_list+0x5d0/0xd30 RSP: 0018:ffffc90000a3fb58 EFLAGS: 00010246",
    "python3[239]: segfault at 7f1234567890 ip 00007f1234567890 sp 00007ffd12345678 error 4 in "
    "libpython3.11.so.1.0[7f1234500000+100000]",
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
    "task_memcg=/system.slice/ssh.service,task=python3,pid=239,uid=0",
    "systemd[1]: systemd-pcrmachine.service - TPM2 PCR Machine ID Measurement was skipped",
    "systemd[1]: Listening on systemd-ask-password.path; dev-ttyS0.device, run-user-1000.mount",
    "memory.events.local memory.swap.max io.stat blkio.throttle.io_serviced debian/config.local",
    "i915.enable_guc=3 nvme_core.io_timeout=30 usbcore.autosuspend=-1 printk.time=1",
    "root=/dev/mapper/crypt--volume-crypt--fs /dev/crypt-volume/crypt-swap /dev/dm-1 /mnt/test/x",
    "Workqueue: kcryptd/253:0 kcryptd_crypt [dm_crypt], kworker/u8:3-events_unbound",
    "TIPC: Enabled bearer <eth:eth0>, invalid mount option token, PAM authentication token error",
    "passwd:amd64 1:4.13+dfsg1-1, JUMP_LABEL=n, ip6_tnl.net, control.tools.in, x::private key",
    "USB: serial: cp210x: baud rate, serial: 8250_bcm7271: port freed, tty: serial: max3100: x",
    "usb 1-1: New USB device strings: Mfr=1, Product=2, SerialNumber=3",
    "Modules linked in: dm_crypt ext4, __ratelimit: 14 callbacks suppressed, Node 0 DMA: 1*4kB (U)",
    "See https://www.kernel.org/doc/ and http://www.qemu.org, X.Org 1.20",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert taught(*INNOCENT).text(text) == text


GOLDEN = Path(__file__).parents[1] / "golden"
# All that goes from kernels' logs of the wild: the names of their machines and builders.
NAMES_IN_GOLDEN = {
    "2.6.31-syslog.log": {"frans@desk": "<user-1>@<host-1>", " desk ": " <host-1> "},
    "2.6.32-syslog-no-stamps.log": {" host1 kernel:": " <host-1> kernel:"},
    "4.14-stall-arm.log": {"+0000 pi ": "+0000 <host-1> "},
    "4.4-dmesg-T.log": {"buildd@lgw01": "buildd@<host-1>"},
    "6.12-rsyslog.log": {" desk kernel:": " <host-1> kernel:"},
}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("kernlog/*.log")), ids=lambda one: one.name)
def test_a_real_kernels_log_loses_names_only(path: Path) -> None:
    raw = path.read_bytes()
    redactor = Redactor(OWN)
    learn("kern.log", raw, redactor)
    wanted = raw.decode("utf-8", "surrogateescape")
    for name, token in NAMES_IN_GOLDEN.get(path.name, {}).items():
        assert name in wanted
        wanted = wanted.replace(name, token)
    assert redacted("kern.log", raw, redactor).decode("utf-8", "surrogateescape") == wanted


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("causes/*.tar.xz")), ids=lambda one: one.name)
def test_a_real_runs_files_keep_every_byte(path: Path) -> None:
    with tarfile.open(path) as tar:
        files = {one.name: tar.extractfile(one) for one in tar if one.isfile()}
        raw = {name: file.read() for name, file in files.items() if file}
    redactor = Redactor(OWN)
    for name, content in raw.items():
        learn(name.rpartition("/")[2], content, redactor)
    for name, content in raw.items():
        assert redacted(name.rpartition("/")[2], content, redactor) == content, name


CONFIGS = ("setup/kernel.config", "docs/example/laptop-no-io-reclaim/defconfig")
DEBIANS = b"""CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"
CONFIG_LOCALVERSION=""
CONFIG_BUILD_SALT="6.1.0-56-amd64"
CONFIG_DEFAULT_HOSTNAME="(none)"
CONFIG_CC_IMPLICIT_FALLTHROUGH="-Wimplicit-fallthrough=5"
CONFIG_MODULE_SIG_KEY="certs/signing_key.pem"
CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/debian-uefi-certs.pem"
CONFIG_MODPROBE_PATH="/sbin/modprobe"
CONFIG_NFS_V4_1_IMPLEMENTATION_ID_DOMAIN="kernel.org"
CONFIG_LSM="landlock,lockdown,yama,loadpin,safesetid,integrity,apparmor,selinux,smack,tomoyo,bpf"
CONFIG_CRYPTO_FIPS_NAME="Linux Kernel Cryptographic API"
"""


def test_a_real_kernels_config_keeps_every_byte() -> None:
    root = Path(__file__).parents[2]
    for raw in (*((root / path).read_bytes() for path in CONFIGS), DEBIANS):
        redactor = Redactor(OWN)
        learn("config", raw, redactor)
        assert redacted("config", raw, redactor) == raw


def test_one_secret_has_one_token_in_all_files_and_spellings() -> None:
    texts = ["mac 52:54:00:aa:bb:cc", "S/N: S3Z8NB0K123456A", f"UUID={UUID}", "/home/jdoe/x"]
    redactor = taught(*texts)
    first = [redactor.text(text) for text in texts]
    assert redactor.text("525400AABBCC 52-54-00-aa-bb-cc") == "<mac-1> <mac-1>"
    assert redactor.text("vendor-s3z8nb0k123456a") == "vendor-<serial-1>"
    assert redactor.text(UUID.replace("-", "")) == "<uuid-1>"
    assert redactor.text("jdoe: anna") == "<user-1>: <user-2>"
    assert [redactor.text(text) for text in texts] == first


def test_tokens_that_are_there_already_keep_their_meaning() -> None:
    redactor = taught("<host-3> said", "annas-box")
    assert redactor.text("<host-3> annas-box") == "<host-3> <host-4>"


@pytest.mark.parametrize(
    "name", ["max", "root", "debian", "swap", "deb13", "6.12", "test", "vm", "rc7", "1234", "page"]
)
def test_a_name_like_a_common_word_is_not_searched_for(name: str) -> None:
    assert not is_searchable(name)
    redactor = Redactor(Secrets(frozenset({name}), frozenset({name})))
    for text in INNOCENT:
        assert redactor.text(text) == text


def test_names_of_this_machine_and_of_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "graphs.redaction.secret_names.socket.gethostname", lambda: "annas-box.example.org"
    )
    monkeypatch.setattr("graphs.redaction.secret_names.getpass.getuser", lambda: "root")
    monkeypatch.setenv("SUDO_USER", "anna")
    monkeypatch.setenv("HOME", "/data/people/anna")
    found = own_secrets()
    assert {"annas-box", "annas-box.example.org"} <= found.hosts
    assert "anna" in found.users and "/data/people/anna" in found.homes
    for home in ("/", "/tmp", "/usr/sbin"):
        monkeypatch.setenv("HOME", home)
        assert home not in own_secrets().homes
    text = Redactor(found).text("annas-box.example.org annas-box root")
    assert text == "<host-1> <host-1> root"


def test_names_beyond_ascii_are_found_in_logs_that_escape_them() -> None:
    redactor = Redactor(Secrets(users=frozenset({"jürgen"})))
    assert redactor.text(r"j\xc3\xbcrgen Jürgen") == "<user-1> <user-1>"


def test_json_and_toml_stay_what_they_are_and_keys_are_redacted() -> None:
    meta: dict[str, Any] = {
        "t0": 16.077554666,
        "hostname": "pippin",
        "disk": {"serial": "x9", "size": 8 << 30},
        "gateway": "5.9.1.2",
        "address": "0x3f8",
        "driver": "5.9.1.2",
        "/home/anna/x": [1, None, True, 1e-7],
        "quote": 'by "anna" \\ \u2028 \ud800',
    }
    redactor = Redactor(OWN)
    raw = json.dumps(meta, indent=1).encode()
    learn("meta.json", raw, redactor)
    found = json.loads(redacted("meta.json", raw, redactor))
    assert found == {
        "t0": 16.077554666,
        "hostname": "<host-1>",
        "disk": {"serial": "<serial-1>", "size": 8 << 30},
        "gateway": "<ip-1>",
        "address": "0x3f8",
        "driver": "5.9.1.2",
        "<home-1>/x": [1, None, True, 1e-7],
        "quote": 'by "<user-1>" \\ \u2028 \ud800',
    }
    toml = (
        b'command = "./run_test.sh --out /home/anna/r"\n[[run]]\nvariant = "anna-1"\nnumber = 1\n'
    )
    assert tomllib.loads(redacted("plan.toml", toml, redactor).decode()) == {
        "command": "./run_test.sh --out <path-1>",
        "run": [{"variant": "<user-1>-1", "number": 1}],
    }
    cut = b'{"event": "x", "who": "annas-box'
    assert b"annas-box" not in redacted("events.jsonl", cut, redactor)


def test_untouched_files_keep_every_byte() -> None:
    redactor = Redactor(OWN)
    for name, raw in (
        ("meta.json", b'{"a":1.10,   "b":[2e3]}'),
        ("events.jsonl", b'{"t": 5.2780, "event": "x"}\n\n{"t":'),
        ("vmstat.tsv", b"elapsed_s\tlate_s\tanna\n1.000\t\t5\n"),
        ("plan.toml", b"a   = 1 # why\n"),
        ("config", b'# x\nCONFIG_ANNA=y\nCONFIG_B="b"\n'),
        ("kern.log", b"\xff\xfe not utf-8 \r\n"),
        ("latency-gitk-1.log", b"1.000 1.000 pass 1 commits 100\n1.1"),
    ):
        assert redacted(name, raw, redactor) == raw


def test_a_kernels_config_loses_values_only() -> None:
    raw = b'CONFIG_LOCALVERSION="-anna"\nCONFIG_ANNA_X=y\nCONFIG_CMDLINE="root=UUID=ABCD-1234"\n'
    found = redacted("config", raw, Redactor(OWN))
    assert found == (
        b'CONFIG_LOCALVERSION="-<user-1>"\nCONFIG_ANNA_X=y\nCONFIG_CMDLINE="root=UUID=<uuid-1>"\n'
    )


FRAGMENTS = st.sampled_from(
    [text for text, _ in SECRETS] + INNOCENT + ["12.345", "7", "\t", "12345678", "anna", "[end]"]
)
LINES = st.lists(FRAGMENTS, max_size=4).map(" ".join)


@given(st.lists(LINES, max_size=6))
def test_redacting_twice_is_redacting_once(lines: list[str]) -> None:
    text = "\n".join(lines)
    redactor = taught(text)
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert redactor.log(text) == once
    assert not TOKEN.search(text)
    again = Redactor(OWN)
    again.learn(once)
    assert again.text(once) == once


@given(st.lists(st.tuples(st.integers(0, 10**6), LINES), max_size=8), st.integers(0, 40))
def test_no_figure_of_a_latency_log_changes(rows: list[tuple[int, str]], cut: int) -> None:
    now, text = 0, ""
    for gap, line in rows:
        now += gap
        text += f"{now / 1000:.3f} {gap / 1000:.3f} {line}\n"
    raw = text.encode()[: max(0, len(text) - cut)]
    redactor = taught(text, "serial: 12345678", "S/N 100.000")
    before, after = parse_lines(raw), parse_lines(redacted("latency-x.log", raw, redactor))
    assert before.elapsed.tolist() == after.elapsed.tolist()
    assert before.gap.tolist() == after.gap.tolist()
    assert (before.end, before.problems) == (after.end, after.problems)


CELLS = st.sampled_from(["1", "12345678", "", "0.5", "x", "annas-box", "52:54:00:aa:bb:cc", "nan"])


@given(st.lists(st.lists(CELLS, min_size=3, max_size=5), max_size=6))
def test_no_number_of_a_table_changes(rows: list[list[str]]) -> None:
    text = "elapsed_s\tlate_s\tpswpin\n"
    text += "".join(f"{n}.000\t" + "\t".join(row[1:]) + "\n" for n, row in enumerate(rows))
    redactor = taught("serial: 12345678")
    found = redacted("vmstat.tsv", text.encode(), redactor)
    assert b"annas-box" not in found and b"52:54" not in found
    before = parse_table(text.encode(), ("late_s", "pswpin"))
    after = parse_table(found, ("late_s", "pswpin"))
    assert before is not None and after is not None
    assert before.problems == after.problems
    for name, values in before.columns.items():
        assert values.tobytes() == after.columns[name].tobytes()


@given(st.lists(LINES, max_size=8))
def test_the_failures_in_a_kernel_log_stay_as_many(lines: list[str]) -> None:
    text = "".join(f"[{n}.000001] <4> {line}\n" for n, line in enumerate(lines))
    text += "[9.0] <4> anna: page allocation failure: order:2, mode:0x820\n"
    redactor = taught(text)
    found = redacted("kern.log", text.encode(), redactor).decode()
    assert count_failures(text.splitlines()) == count_failures(found.splitlines())


def test_evidence_is_published_as_it_is() -> None:
    stacks = (
        b"elapsed_s\tlate_s\tstream\tsilent_s\tpid\tcomm\tstate\twchan\tmajflt\tminflt\tstack\n"
        b"1.513\t0.013\tgitk-1\t0.513\t239\tpython3\tD\tio_schedule\t3\t1531\tio_schedule <- "
        b"swap_readpage <- do_swap_page\n"
        b"1.513\t0.013\t-\t\t42\tkworker/u4:1\tD\tkcryptd_crypt\t0\t0\tkcryptd_crypt\n"
    )
    redactor = taught()
    learn("blocked.tsv", stacks, redactor)
    assert redacted("blocked.tsv", stacks, redactor) == stacks
    named = stacks.replace(b"python3", b"annas-box")
    assert redacted("blocked.tsv", named, redactor) == stacks.replace(b"python3", b"<host-1>")


def test_a_run_without_a_secret_is_itself_in_a_bundles_view(tmp_path: Path) -> None:
    clean = one_run(tmp_path / "clean", {})
    assert redacted_view._redacted_run(clean, Redactor(Secrets())) is clean
    facts = json.dumps(meta("k", hostname="annas-box"))
    named = one_run(tmp_path / "named", {"meta.json": facts})
    redactor = Redactor(Secrets())
    redactor.learn_value(named.meta)
    shown = redacted_view._redacted_run(named, redactor)
    assert shown is not named and "annas-box" not in json.dumps(shown.meta)
