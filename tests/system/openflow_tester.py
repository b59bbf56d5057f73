"""os-ken's switch tester (os_ken/tests/switch/tester.py, as Debian packages it) against a switch.

The tester is a controller with two switches: it has the *tester* switch send a packet to the *target*, which its cases
have told what to do, and looks at what comes back. Both are connected by three cables, port i with port i. Everything
happens in one network namespace.

    cases = find_cases()
    results = run_cases(lab, "t0", start_switches, sorted(cases.glob("of13/action/*.json")), cases, "openflow13")

The cases are those of os-ken's wheel (tools/osken-cases). The tester keeps one file of those that have the same
description, so copies are run that have their path for a description.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
CONTROLLER_PORT = 6653
TARGET_DPID, TESTER_DPID = 1, 2
PORTS = (1, 2, 3)
START_S = 60
# A case waits for answers at most this long, several times.
WAIT_S = 3


@dataclasses.dataclass(frozen=True)
class Result:
    file: str  # "of13/action/00_OUTPUT.json"
    case: str
    ok: bool
    detail: str


def find_cases():
    """The folder with of10 and of13; None if it cannot be had."""
    done = subprocess.run([ROOT / "tools" / "osken-cases"], capture_output=True, text=True, timeout=120)
    return pathlib.Path(done.stdout.strip()) if done.stdout.strip() else None


def find_tester():
    """tester.py; None if os-ken is not installed."""
    path = pathlib.Path("/usr/lib/python3/dist-packages/os_ken/tests/switch/tester.py")
    return path if path.exists() and shutil.which("osken-manager") else None


def cases_of(path):
    return [case for case in json.loads(path.read_text()) if isinstance(case, dict)]


def measures_rates(path):
    """Cases of this file send for 30 s each."""
    return any(isinstance(step.get("egress"), dict) for case in cases_of(path) for step in case["tests"])


def seconds_of(path):
    """About how long a file takes: a packet that no entry may match is waited for."""
    seconds = 0
    for case in cases_of(path):
        for step in case["tests"]:
            seconds += 31 if isinstance(step.get("egress"), dict) else 1.1 if "table-miss" in step else 0.1
    return seconds


def shares(paths, count):
    """The files in so many lists that take about as long."""
    lists = [[] for _ in range(count)]
    loads = [0] * count
    for path in sorted(paths, key=seconds_of, reverse=True):
        least = loads.index(min(loads))
        lists[least].append(path)
        loads[least] += seconds_of(path)
    return [one for one in lists if one]


def interface(switch, port):
    """The name of a port's interface, "target1" or "tester1"."""
    return f"{switch}{port}"


def start_headrace(host, folder, version, options=()):
    """Both switches in one process of Headrace, which gets these options."""
    text = ""
    for switch, dpid, versions in ("target", TARGET_DPID, version[-2:].replace("1", "1.")), ("tester", TESTER_DPID, "1.3"):
        text += f"{switch} :: OpenFlowSwitch({dpid}, CONTROLLER tcp:127.0.0.1:{CONTROLLER_PORT}, VERSIONS {versions});\n"
        for port in PORTS:
            name = interface(switch, port)
            text += (f"FromDevice({name}, METHOD AF_PACKET, SNIFFER false, PROMISC true) -> [{port - 1}]{switch}[{port - 1}]"
                     f" -> Queue(10000) -> ToDevice({name}, METHOD AF_PACKET);\n")
    (folder / "switches.click").write_text(text)
    log = open(folder / "headrace.log", "w")
    return host.start(BINARY.resolve(), "run", "-q", *options, folder / "switches.click", stdout=log, stderr=log)


def _copy(paths, cases, folder):
    for path in paths:
        name = str(path.relative_to(cases))
        content = json.loads(path.read_text())
        content = [name if isinstance(part, str) else part for part in content]
        (folder / name.replace("/", "_")).write_text(json.dumps(content))


def parse(lines):
    """Results from what the tester has printed."""
    results, file, failed = [], None, None
    for line in lines:
        line = line.rstrip("\n")
        if re.fullmatch(r"of1\d/.*\.json", line):
            file = line
        elif file is None:
            continue
        elif failed is not None and line.startswith("        "):
            results.append(Result(file, failed, False, line.strip()))
            failed = None
        elif found := re.fullmatch(r"    (\S.*?) +(OK|ERROR)", line):
            if found[2] == "OK":
                results.append(Result(file, found[1], True, ""))
            else:
                failed = found[1]
        elif "--- Test report ---" in line:
            break
    return results


def run_cases(lab, name, start_switches, paths, cases, version, on_result=None):
    """Runs files of cases and returns their results.

    start_switches(host, folder, version) starts both switches in a namespace: the target with TARGET_DPID and interfaces
    target1 to target3, which speaks only `version` ("openflow10" or "openflow13"), and the tester switch with TESTER_DPID
    and tester1 to tester3, which speaks 1.3. Both connect to CONTROLLER_PORT of 127.0.0.1.
    """
    host = lab.host(name)
    for port in PORTS:
        lab.cable(host, interface("target", port), host, interface("tester", port))
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "cases").mkdir()
        _copy(paths, cases, folder / "cases")
        tester = host.start("osken-manager", "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", CONTROLLER_PORT,
                            "--test-switch-dir", folder / "cases", "--test-switch-target", f"{TARGET_DPID:016x}",
                            "--test-switch-tester", f"{TESTER_DPID:016x}", "--test-switch-target-version", version,
                            "--test-switch-tester-version", "openflow13", find_tester(), stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_S
        while "LISTEN" not in host.run("ss", "-Hltn", f"sport = :{CONTROLLER_PORT}").stdout:
            assert tester.poll() is None, tester.stdout.read()
            assert time.monotonic() < deadline, "os-ken's switch tester does not start"
            time.sleep(0.1)
        start_switches(host, folder, version)
        lines = []
        for line in tester.stdout:
            lines.append(line)
            found = parse(lines)
            for result in found[len(results):]:
                if on_result:
                    on_result(result)
            results = found
        tester.wait()
    expected = sum(len(cases_of(path)) for path in paths)
    assert len(results) == expected, f"{len(results)} of {expected} cases were run:\n{''.join(lines[-40:])}"
    return results
