"""bench/peers/turns: two processes of one program take turns, and what it prints and writes."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace")).resolve()
TURNS = ROOT / "bench" / "peers" / "turns"


def has_dpdk():
    if not BINARY.exists() or not shutil.which("pkg-config"):
        return False
    headers = subprocess.run(["pkg-config", "--exists", "libdpdk"], check=False)
    elements = subprocess.run([BINARY, "elements", "FromDPDKDevice"], capture_output=True, check=False)
    return headers.returncode == 0 and elements.returncode == 0


pytestmark = pytest.mark.skipif(not has_dpdk(), reason="needs DPDK's headers and a headrace that is built with DPDK")


def turns(*arguments):
    cpu = str(max(os.sched_getaffinity(0)))
    return subprocess.run([TURNS, "--cpu", cpu, "--processes", "1", *arguments], capture_output=True, text=True, check=False)


def test_two_programs(tmp_path):
    out = tmp_path / "out.json"
    done = turns("--headrace", f"a={BINARY}", "--headrace", f"b={BINARY}", "--chains", "none", "--routes", "100",
                 "--destinations", "1024", "--turns", "4", "--seconds", "0.1", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^a +\d+\.\d\d Mpps", done.stdout, re.M) and re.search(r"^ +to b +\d\.\d+ ", done.stdout, re.M), done.stdout
    programs = json.loads(out.read_text())["programs"]
    assert set(programs) == {"a", "b"}
    for one, other in ("a", "b"), ("b", "a"):
        assert programs[one]["Mpps"] > 0.1
        assert 0.3 < programs[one][f"to {other}"][1] < 3
        # The last packets are counted as sent only after a while.
        assert programs[one]["sent"] > 0


def test_a_program_that_ends(tmp_path):
    done = turns("--other", f"broken={BINARY} run {tmp_path}/none.click", "--routes", "10")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "broken forwards nothing" in done.stderr and "none.click" in done.stderr, done.stderr
