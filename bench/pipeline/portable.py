#!/usr/bin/env python3
"""Measures the binary of `make portable` as machines without a compiler, with only clang, and with g++ see it, in turn.

    bench/pipeline/portable.py [--headrace build-portable/headrace] [--repeat 5] [--seconds 0.5] [--out FILE] [CONF...]

Each has a PATH with nothing but its compiler and what that runs, and a cache of its own. Chains beside the binary are used only where
there is no compiler, and there is a last run without these, too. What the start-up line says is checked. Runs on CPU 1; under
`chrt -f 50` others of the machine do not disturb it. CLANGXX in the environment names a clang other than that of tools/llvm.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What the line about chains must say.
SAYS = {"g++": r"compiled: g\+\+", "clang": r"compiled: .*clang", "no compiler": r"compiled: .*/chains/",
        "neither compiler nor chains": r"not compiled"}


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    field = lambda name: re.search(rf"^{name}\s*: (.*)$", text, re.M)[1]  # noqa: E731
    return f"{field('model name')}, family {field('cpu family')}, model {field('model')}"


def folder_of(folder, *programs):
    """A PATH with these programs only."""
    folder.mkdir()
    for name, program in programs:
        if program:
            (folder / name).symlink_to(program)
    return str(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headrace", default=str(ROOT / "build-portable" / "headrace"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", default="0.5")
    parser.add_argument("--out")
    parser.add_argument("conf", nargs="*", default=["ipv4-router.click", "ipv6-forward.click"])
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        tools = [(tool, shutil.which(tool)) for tool in ("as", "ld")]
        alone = scratch / "alone"
        alone.mkdir()
        shutil.copy(options.headrace, alone / "headrace")
        llvm = subprocess.run([ROOT / "tools" / "llvm", "clang++"], capture_output=True, text=True, check=False)
        clang = shutil.which(os.environ.get("CLANGXX") or llvm.stdout.strip() or "clang++")
        ways = {
            "g++": (str(alone / "headrace"), folder_of(scratch / "gxx", ("g++", shutil.which("g++")), *tools)),
            "clang": (str(alone / "headrace"), folder_of(scratch / "clang", ("clang++", clang), *tools)),
            "no compiler": (options.headrace, folder_of(scratch / "none")),
            "neither compiler nor chains": (str(alone / "headrace"), str(scratch / "none")),
        }
        if not clang:
            print("no clang++ here: left out")
            del ways["clang"]
        for conf in options.conf:
            rates = {way: [] for way in ways}
            for _ in range(options.repeat):
                for way, (binary, path) in ways.items():
                    env = {"PATH": path, "HOME": str(scratch / way), "LANG": "C"}
                    pathlib.Path(env["HOME"]).mkdir(exist_ok=True)
                    done = subprocess.run([shutil.which("taskset"), "-c", "1", binary, "bench", "-s", options.seconds,
                                           str(ROOT / "conf" / conf)], env=env, capture_output=True, text=True, check=False)
                    rate = re.search(r" ([\d.]+) Mpps in", done.stdout)
                    line = re.search(r"^chains:? (.*)$", done.stdout + done.stderr, re.M)
                    if not rate or not line or not re.match(SAYS[way], line[1]):
                        sys.exit(f"{conf}, {way}: expected '{SAYS[way]}'\n{done.stdout}{done.stderr}")
                    rates[way].append(float(rate[1]))
            results[conf] = rates
            first = statistics.median(rates["g++"])
            for way, those in rates.items():
                print(f"{conf:<22}{way:<30}{statistics.median(those):>7.2f} Mpps  {statistics.median(those) / first:.2f} of g++'s",
                      flush=True)
    if options.out:
        version = subprocess.run([options.headrace, "--version"], capture_output=True, text=True, check=False).stdout.strip()
        pathlib.Path(options.out).write_text(json.dumps({"version": version, "machine": machine(), "mpps": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
