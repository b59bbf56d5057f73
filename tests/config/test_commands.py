"""The command lines of headrace, how configurations are found and read, and the stand-ins for Click's tools."""

import fcntl
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import termios

import pytest

READERS = ("run", "bench", "check", "graph", "flatten")
COMMANDS = (*READERS, "elements", "limits", "patterns")
# What run and bench are told besides, so that they end.
ENDS = {"run": ("-d", "0.1", "-q"), "bench": ("-s", "0.1")}
PATH = "TrafficSource(uniform) -> {} -> TrafficSink;"



def test_no_command(headrace):
    assert "no command given" in headrace(status=2).stderr
    assert "unknown command 'frob'" in headrace("frob", status=2).stderr
    for word in (*COMMANDS, "click"):
        assert re.search(rf"^  {word}\b", headrace("--help").stdout, re.M)
    assert headrace("-h").stdout == headrace("help").stdout == headrace("--help").stdout
    assert re.match(r"headrace \d+\.\d+\.\d+\ncommit \w+", headrace("--version").stdout)
    assert headrace("-V").stdout == headrace("--version").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_version(headrace, command):
    text = headrace(command, "--help").stdout
    assert headrace(command, "-h").stdout == text
    assert text.startswith(f"Usage: headrace {command} [OPTION]...")
    assert max(map(len, text.splitlines())) <= 80
    assert headrace(command, "-V").stdout == headrace(command, "--version").stdout == headrace("--version").stdout
    wrong = headrace(command, "operand", "--nonsense", status=2)
    assert "--nonsense" in wrong.stderr and f"Try 'headrace {command} --help'" in wrong.stderr and wrong.stdout == ""


@pytest.mark.parametrize("options", ([], ["--mode", "device", "--backend", "reference"]))
def test_bench_replaces_the_router_that_it_measures(headrace, options):
    conf = "TrafficSource(uniform) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> TrafficSink;"
    done = headrace("bench", "-e", conf, "--rate", "0.1", "-s", "0.8", "--swap", "0.15", "--json", *options)
    answer = json.loads(done.stdout)
    assert answer["swaps"]["count"] >= 3 and answer["swaps"]["failed_jobs"] == 0
    assert answer["lost"] == 0 and answer["reordered"] == 0 and answer["drops"] == 0
    # The rate goes on over the swaps: no frame that was due is forgotten.
    assert answer["mpps_out"] == pytest.approx(0.1, rel=0.1)
    assert answer["latency_us"]["max"] > 0
    assert answer["cpu"]["vectors"] is not None
    assert "--swap needs --load or --rate" in headrace("bench", "-e", conf, "--swap", "1", status=2).stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_command_lines_are_described_for_programs(headrace, command):
    described = json.loads(headrace(command, "--describe").stdout)
    assert described["name"] == f"headrace {command}"
    listed = dict(line.split("\t") for line in headrace("--describe").stdout.splitlines())
    assert listed[command]
    help_text = headrace(command, "--help").stdout
    for option in described["options"]:
        assert option["description"], option
        for name in option["names"]:
            assert f"--{name}" in help_text
    assert ["help"] in [option["names"] for option in described["options"]]


@pytest.mark.parametrize("command", READERS)
def test_one_way_into_a_configuration(headrace, command):
    """All commands find, name and refuse configurations alike."""
    folder = headrace.folder
    ends = ENDS.get(command, ())
    (folder / "good.click").write_text(PATH.format("Null"))
    headrace(command, "good.click", *ends)
    headrace(command, "-f", "good.click", *ends)
    headrace(command, "-", *ends, stdin=PATH.format("Null"))
    headrace(command, "-e", PATH.format("Paint($A)"), "A=3", *ends)
    assert "multiply defined" in headrace(command, "good.click", "A=1", "A=2", *ends, status=2).stderr
    assert "more than one" in headrace(command, "good.click", "-e", "Idle", *ends, status=2).stderr
    assert "specified twice" in headrace(command, "good.click", "other.click", *ends, status=2).stderr
    assert "no configuration" in headrace(command, *ends, status=2).stderr
    assert headrace(command, "missing.click", *ends, status=1).stderr == "missing.click: No such file or directory\n"
    # A library beside the file, and in the folders of -C and $CLICKPATH.
    (folder / "beside").mkdir()
    (folder / "elsewhere").mkdir()
    library = "elementclass Mine { -> Null -> }\n"
    user = "require(library mine.click) " + PATH.format("Mine")
    (folder / "beside" / "mine.click").write_text(library)
    (folder / "beside" / "user.click").write_text(user)
    (folder / "user.click").write_text(user)
    headrace(command, "beside/user.click", *ends)
    assert "user.click:1: " in headrace(command, "user.click", *ends, status=1).stderr
    (folder / "elsewhere" / "mine.click").write_text(library)
    headrace(command, "user.click", "-C", folder / "elsewhere", *ends)
    headrace(command, "user.click", *ends, env={"CLICKPATH": str(folder / "elsewhere")})


@pytest.mark.parametrize("command", ("run", "bench", "check", "graph"))
def test_the_same_mistakes_in_the_same_words(headrace, command):
    def error(text):
        return headrace(command, "-e", text, *ENDS.get(command, ()), status=1).stderr

    assert error("c :: Coutner; " + PATH.format("c")).startswith("config:1: unknown element class 'Coutner' (did you mean 'Counter'?)\n")
    assert error(PATH.format("DecIPTLL")).startswith("config:1: undeclared element 'DecIPTLL' (did you mean 'DecIPTTL'?)\n")
    assert error("TrafficSource(uniform) -> Discard; Idle\n-> Queue\n-> Queue -> Idle").startswith(
        "config:3: 'Queue@4 :: Queue' pull output 0 connected to 'Queue@5 :: Queue' push input 0\n")
    assert "required package 'mine' not found: no mine.so in " in error("require(package mine) Idle -> Mine -> Idle")
    assert "unknown element class" not in error("require(package mine) Idle -> Mine -> Idle")


@pytest.mark.parametrize("command", READERS)
def test_variables_must_be_of_use(headrace, command):
    (headrace.folder / "x.click").write_text("define($FILE a, $DEV b) Idle -> Paint($C) -> Idle;\n"
                                             "elementclass E { $inner | Idle -> Paint($inner) -> Idle; } E(3);")
    done = headrace(command, "x.click", "FIEL=b", "C=1", status=1)
    assert done.stderr == "x.click: there is no variable 'FIEL' (did you mean 'FILE'?)\n"
    assert "no variable 'inner'" in headrace(command, "x.click", "inner=4", "C=1", status=1).stderr
    if command in ("check", "flatten"):
        headrace(command, "x.click", "C=1", "FILE=x", "DEV=x")


def test_click_accepts_variables_that_are_not_used(click):
    assert click("-q", "-e", "Idle -> Idle", "B=3").stderr == ""


def test_options_leave_the_configuration_alone(headrace):
    (headrace.folder / "v.click").write_text("define($A 0) i :: Idle -> c :: Strip($A) -> Discard;")
    ends = ENDS["run"]
    assert "c.class: Strip" in headrace("run", "-r", "c.class", "v.click", "A=1", *ends).stdout
    assert "c.class: Strip" in headrace("run", *ends, "-r", "c.class", "-", stdin="Idle -> c :: Strip(1) -> Discard").stdout
    headrace("run", *ends, "-u", "x.sock", "v.click", "A=1")
    out = headrace("run", "-r", "c.class", "-r", "i.class", "-p", "0", "v.click", *ends).stdout
    assert "c.class: Strip" in out and "i.class: Idle" in out


@pytest.mark.parametrize("handler, message", [
    ("nobody.count", "no element named 'nobody'"),
    ("c.nothing", "no 'c.nothing' handler"),
    ("c.reset_counts", "'c.reset_counts' is a write handler"),
])
def test_handlers_are_looked_up_before_the_run(headrace, handler, message):
    done = headrace("run", "-d", "30", "-r", handler, "-e", "Idle -> c :: Counter -> Discard", status=1)
    assert message in done.stderr and "ran" not in done.stdout


@pytest.mark.parametrize("command", ("run", "bench", "check"))
def test_workers_and_threads_are_the_same(headrace, command):
    ends = ENDS.get(command, ())
    for option in ("-w", "--workers", "-j", "--threads"):
        assert "out of range" in headrace(command, "-e", "StaticThreadSched(s 9); s :: TrafficSource(uniform) -> TrafficSink;",
                                          option, "2", *ends, status=None).stderr
        assert "--workers: Value 0 not in range" in headrace(command, "-e", "Idle", option, "0", status=2).stderr


def test_output_that_cannot_be_written(headrace):
    (headrace.folder / "x.click").write_text("Idle -> Idle;")
    for command in ("elements", "elements Switch", "check x.click", "flatten x.click", "graph x.click", "run -d 0.1 x.click",
                    "--help", "run --help", "--version", "click -e Script(stop) -h version"):
        for target, why in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            done = subprocess.run(["bash", "-c", f"{headrace._path} {command.replace('(', chr(92) + '(').replace(')', chr(92) + ')')} {target}"],
                                  cwd=headrace.folder, capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and f"standard output: {why}" in done.stderr, (command, target, done)


def test_captures_are_no_configurations(headrace):
    (headrace.folder / "x.pcap").write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) * 100)
    for command in READERS:
        assert headrace(command, "x.pcap", status=1).stderr == "x.pcap: not a configuration: it has bytes that are not text\n"


def test_the_search_path_reaches_packages(headrace):
    """A file that is no library shows where packages are looked for."""
    folder = headrace.folder / "packages"
    folder.mkdir()
    (folder / "mine.so").write_text("no library")
    text = "require(package mine) Idle -> Idle"
    error = headrace("check", "-e", text, "-C", folder, status=1).stderr
    assert "package 'mine': " in error and str(folder / "mine.so") in error
    for variable in ("CLICKPATH", "HEADRACE_PATH"):
        assert "package 'mine': " in headrace("check", "-e", text, status=1, env={variable: str(folder)}).stderr
        assert f"${variable}" in " ".join(headrace("run", "--help").stdout.split())


def run_in_terminal(headrace, columns, *arguments):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([headrace._path, *arguments], stdout=theirs, cwd=headrace.folder)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait(60) == 0
    return text.decode().replace("\r\n", "\n")


def test_lines_fit_a_terminal(headrace):
    table = run_in_terminal(headrace, 80, "elements")
    assert max(map(len, table.splitlines())) == 80
    assert len(table.splitlines()) == len(headrace("elements").stdout.splitlines())


@pytest.mark.parametrize("workers", (1, 2, 12))
def test_lines_of_a_run_fit_a_terminal(headrace, workers):
    text = ("s :: RatedSource(LENGTH 60, RATE 5000) -> q :: Queue(3) -> Idle; "
            "t :: TrafficSource(uniform) -> c :: Counter -> k :: TrafficSink;")
    out = headrace("run", "-w", workers, "-d", "1", "-i", "0.3", "-e", text).stdout
    lines = [line for line in out.splitlines()[2:] if not line.startswith(("t ::", "s ::")) and "buffers" not in line]
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    rate = r"(0|[\d.]+ [kMG]?)"
    assert re.search(rf"^ +\d+ s  in +{rate}pps +{rate}bps  out +{rate}pps +{rate}bps  drops ", out, re.M)
    assert "full" in out or "drops" in out
    table = out[out.index("worker "):]
    assert ("median" in table) == (workers > 8)
    assert re.search(r"^in  t +[\d,]{5,} +[\d,]+ +[\d.]+ [kM]pps +[\d.]+ [kMG]bps$", out, re.M)


def test_packets_in_jobs_have_buffers(headrace):
    def buffers(element, *options):
        text = f"TrafficSource(uniform, LIMIT 1, STOP true) -> {element} Strip(14) -> TrafficSink"
        out = headrace("run", "-w", 3, "--backend", "reference", *options, "-e", text).stdout
        return int(re.search(r"([\d,]+) buffers", out)[1].replace(",", ""))

    assert buffers("Offload(MODE device) ->") == buffers("", "--mode", "device") > buffers("", "--mode", "cpu")


def test_a_run_that_received_nothing_says_so(headrace):
    out = headrace("run", "-d", "0.1", "-q", "-e", "TrafficSource(uniform, LIMIT 0, ACTIVE false) -> TrafficSink", status=None)
    if out.returncode == 0:
        assert "no packets came in" in out.stdout and "no drops" not in out.stdout


def test_small_loads_have_readable_rates(headrace):
    text = "s :: TrafficSource(uniform, RATE 500) -> k :: TrafficSink;"
    out = headrace("run", "-w", "1", "-d", "1.2", "-e", text).stdout
    assert re.search(r"^ +1 s  in +\d{2,3}(\.\d)? pps +\d+\.\d+ kbps", out, re.M), out


def test_check(headrace):
    (headrace.folder / "good.click").write_text("Idle -> Null -> Idle;\n")
    (headrace.folder / "bad.click").write_text("a :: Switch(x);\nb :: Script(frob);\nIdle -> a -> Idle;\n")
    assert headrace("check", "good.click").stdout == "good.click: 3 elements, 2 connections, no errors\n"
    assert headrace("check", "-q", "good.click").stdout == ""
    errors = headrace("check", "bad.click", status=1).stderr
    assert "bad.click:1: While configuring 'a :: Switch':" in errors
    assert "bad.click:2: While configuring 'b :: Script':" in errors
    # A script would print; checking must not run it.
    assert headrace("check", "-e", "Script(print \"ran\", stop)").stdout == "config: 1 elements, 0 connections, no errors\n"
    # A check leaves the machine alone.
    touching = "FromDevice(no-such) -> ToDump(out.pcap); ControlSocket(UNIX, sock); Idle -> ToIPSummaryDump(out.txt);"
    assert headrace("check", "-q", "-e", touching).stderr == ""
    assert not [p.name for p in headrace.folder.iterdir() if p.name in ("out.pcap", "sock", "out.txt")]
    assert "no-such: no such interface" in headrace("click", "-e", touching, status=1).stderr
    assert "--workers" in headrace("check", "-j", "0", "-e", "Idle", status=2).stderr


def test_check_knows_threads(headrace):
    text = "StaticThreadSched(s 3); s :: Script(pause);"
    assert "out of range" in headrace("check", "-e", text).stderr
    assert headrace("check", "-j", "4", "-e", text).stderr == ""


def test_table_of_elements(headrace):
    table = headrace("elements").stdout
    assert re.match(r"element +ports +mode +runs on +summary\n", table)
    assert re.search(r"^DecIPTTL +1/1-2 +a/ah +shader +Decrements the IP time-to-live", table, re.M)
    assert re.search(r"^Script +-/- +ah/ah +host +Runs a small program", table, re.M)


def test_every_element_has_a_page(headrace):
    names = [line.split()[0] for line in headrace("elements").stdout.splitlines()[1:]]
    assert names == sorted(names) and len(names) > 5
    pages = headrace("elements", *names).stdout
    assert "There is no page" not in pages


def test_page_of_an_element(headrace):
    page = headrace("elements", "Switch").stdout
    assert page.startswith("Switch\nports 1/-, processing h/h, flow x/x, runs on the host\n\n")
    assert "\n    Switch([OUTPUT])\n" in page
    assert "///" not in page


def test_unknown_element(headrace):
    assert "no element 'Swich' (did you mean 'Switch'?)" in headrace("elements", "Swich", status=1).stderr


def test_flatten(headrace, click_flatten):
    text = "elementclass C { $x | Unknown($x) -> output } C(5) -> o :: Other"
    flat = headrace("flatten", "-e", text).stdout
    assert flat == "o :: Other;\nC@1/Unknown@1 :: Unknown(5);\n\nC@1/Unknown@1 -> o;\n"
    assert click_flatten("-e", text).stdout == flat
    assert click_flatten("-c", "-e", text).stdout == "Other\nUnknown\n"
    assert click_flatten("-n", "-e", text).stdout == "C@1/Unknown@1\no\n"
    assert click_flatten("-d", "-e", text).stdout == "C@1/Unknown@1 :: Unknown\no :: Other\n"
    click_flatten("-o", "out.click", "-e", text)
    assert (click_flatten.folder / "out.click").read_text() == flat
    assert "config:1: " in click_flatten("-e", "a -> -> b", status=1).stderr


def test_flatten_without_a_package(headrace, click_flatten):
    """Classes need not exist, nor what brings them. docs/elements.md flattens a compound of a package."""
    done = headrace("flatten", "-e", "require(package mine) Idle -> Mine -> Idle")
    assert "Mine@2 :: Mine;" in done.stdout
    assert done.stderr.startswith("config:1: warning: required package 'mine' not found: no mine.so in ")
    assert done.stderr.endswith("; its compound elements are not expanded\n")


def test_buildtool(click_buildtool):
    click_buildtool("provides", "Script", "umultithread", "userlevel")
    click_buildtool("provides", "linuxmodule", status=1)
    click_buildtool("provides", "Script", "NoSuchElement", status=1)
    click_buildtool("provides", "-r", "NoSuchElement", "NoSuchElement")
    assert click_buildtool("provides", "-l", "Script").stdout == "1\n"
    assert "\nSwitch\n" in click_buildtool("provides", "-q").stdout
    assert "only 'provides'" in click_buildtool("frob", status=1).stderr


def test_the_closing_table_has_every_source_and_sink(headrace, tmp_path):
    """What entered is what left, what was dropped by reason, and nothing else."""
    made, copied = tmp_path / "made.pcap", tmp_path / "copied.pcap"

    def ends(out):
        table = out.partition("\nkept or discarded at ")[2].partition("\n\n")[0]
        return [(name, int(n.replace(",", "")), why) for name, n, why in re.findall(r"^(\S+) +([\d,]+)  (.+)$", table, re.M)]

    def run(text):
        (tmp_path / "c.click").write_text(text)
        out = headrace("run", str(tmp_path / "c.click"), "-q").stdout
        ports = {name: (int(n.replace(",", "")), int(size.replace(",", "")))
                 for name, n, size in re.findall(r"^((?:in |out) +\S+) +([\d,]+) +([\d,]+) ", out, re.M)}
        dropped = re.findall(r"^(\S+) +([\d,]+)  (.+)$", out.partition("\ndrops at ")[2], re.M)
        return ports, [(name, int(n.replace(",", "")), why) for name, n, why in dropped if name != "ran"], out

    ports, dropped, out = run(f"i :: InfiniteSource(LIMIT 3000, LENGTH 60, BURST 9, STOP true) -> t :: ToDump({made});")
    assert ports == {"in  i": (3000, 180000), "out t": (3000, 180000)} and not dropped, out
    ports, dropped, out = run(f"f :: FromDump({made}, STOP true) -> q :: Queue(10) -> d :: ToDevice(pcap:{copied});\n"
                              "Script(wait 0.2, write q.reset);")
    assert ports["in  f"] == (3000, 180000) and {why for _, _, why in dropped} <= {"queue reset"}, out
    assert ports["out d"][0] + sum(n for _, n, _ in dropped) + sum(n for _, n, _ in ends(out)) == 3000, out
    ports, dropped, out = run(f"f :: FromDump({made}, FORCE_IP true, STOP true) -> Discard;")
    assert ports == {"in  f": (3000, 180000)} and dropped == [("f", 3000, "not IP")], out
    ports, dropped, out = run("i :: InfiniteSource(LIMIT 3000, LENGTH 60, STOP true) -> s :: RoundRobinSwitch;\n"
                              "s[0] -> d :: Discard; s[1] -> k :: Queue(2000) -> Discard(ACTIVE false); s[2] -> n :: Idle;\n"
                              "s[3] -> q :: Queue(7) -> Discard(ACTIVE false);")
    assert ports == {"in  i": (3000, 180000)} and dropped == [("q", 743, "queue full")], out
    assert sorted(ends(out)) == [("d", 750, "discarded"), ("k", 750, "still inside"),
                                 ("n", 750, "discarded"), ("q", 7, "still inside")], out


def test_undefined_variables_are_named(headrace):
    error = headrace("check", "-e", "Idle -> Strip($LENGTH) -> Discard", status=1).stderr
    assert "  LENGTH: expected an integer (variable '$LENGTH' is not defined)\n" in error
    # Variables of scripts are not those of the configuration.
    error = headrace("check", "-e", "Script(set x 1, frob $x)", status=1).stderr
    assert "frob" in error and "not defined" not in error


@pytest.mark.parametrize("argument, what", [
    ("Idle -> Print(ACTIVE maybe) -> Idle", "ACTIVE: expected true or false"),
    ("Idle -> Paint(x) -> Idle", "expected an integer"),
    ("Idle -> IPEncap(4, 1:2, 3.0.0.0) -> Idle", "SRC: expected an IPv4 address"),
    ("Idle -> EtherEncap(0x800, 1:2:3, 1:1:1:1:1:1) -> Idle", "SRC: expected an Ethernet address"),
    ("Idle -> CheckIPHeader(x) -> Idle", "BADSRC: expected an IPv4 address"),
    ("Idle -> CheckIPHeader(1.0.0.1, x) -> Idle", "OFFSET: expected an integer"),
    ("Idle -> CheckIPHeader(1.0.0.1, 70000) -> Idle", "OFFSET: out of range, bound 65535"),
    ("Script(TYPE)", None),
    ("Idle -> Shaper(RATE x) -> Idle", None),
])
def test_errors_say_what_is_expected(headrace, argument, what):
    error = headrace("check", "-e", argument, status=None).stderr
    assert "parse error" not in error and "invalid number" not in error
    if what:
        assert what in error


def test_at_most_twenty_errors(headrace):
    text = "\n".join(f"Idle -> Paint(x{n}) -> Idle;" for n in range(50))
    lines = headrace("check", "-e", text, status=1).stderr.splitlines()
    assert len([line for line in lines if "expected an integer" in line]) == 20
    assert lines[-2:] == ["... and 30 more errors", "Router could not be initialized!"]


def test_out_of_memory(headrace):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (400_000_000, 400_000_000))

    done = subprocess.run([headrace._path, "run", "-w", "1", "-e", "TrafficSource(uniform) -> DirectIPLookup(0/0 0) -> TrafficSink"],
                          cwd=headrace.folder, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert done.returncode == 1, done
    assert re.search(r"^headrace run: out of memory: \d+ MB wanted for [a-z ]+; this process may use 400 MB", done.stderr, re.M)
