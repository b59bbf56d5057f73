#!/usr/bin/python3
"""Runs Click's own tests against headrace.

    tests/peer/run_clicktests.py [--headrace BINARY] [--jobs N] [--verbose] [CHECKOUT] [TEST...]

CHECKOUT is a source tree of Click (also: the environment variable CLICK_SOURCE); its own runner test/clicktest executes
the tests, with `click`, `click-flatten` and `click-buildtool` being links to headrace. Without TEST, the tests of the table
in README.md are run, and a test that passed when the table was written and now does not is a regression: exit status 1.
TEST is a name (Script-01) or a folder of Click's tests (standard); results are then printed, not compared.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 120
# How often a test is tried whose row in README.md says that it measures real time: other work on the machine disturbs it.
TRIES = 3
NAMES = ("click", "click-flatten", "click-buildtool")


@dataclasses.dataclass
class Expected:
    """A row of the table in README.md."""

    result: str
    reason: str


@dataclasses.dataclass
class Outcome:
    result: str  # "pass", "fail" or "skip"
    output: str


def read_table():
    """The tests of README.md, in order: rows `| name | result | reason |`."""
    table = {}
    row = re.compile(r"^\| `([\w-]+)` \| (pass|fail|skip) \|(.*)\|$")
    for line in (HERE / "README.md").read_text().splitlines():
        if match := row.match(line):
            table[match.group(1)] = Expected(match.group(2), match.group(3).strip())
    return table


def read_configurations():
    """The number of Click's configurations, and the names of those that load, as README.md lists them."""
    text = (HERE / "README.md").read_text()
    match = re.search(r"^Click has (\d+) configurations .* accepts (\d+) of them:\n\n((?:.+\n)+)", text, re.MULTILINE)
    names = re.findall(r"`([\w-]+)`", match[3])
    assert len(set(names)) == int(match[2]), "README.md: the number is not that of the list"
    return int(match[1]), names


def find_test(checkout, name):
    found = sorted((checkout / "test").glob(f"*/{name}.clicktest"))
    return found[0] if found else None


def is_checkout(path):
    return (path / "test" / "clicktest").exists()


class Runner:
    """Owns a folder with the links, and runs tests with it first in PATH."""

    def __init__(self, checkout, binary):
        self.checkout = checkout.resolve()
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-clicktest-")
        self.links = pathlib.Path(self._folder.name) / "bin"
        self.links.mkdir()
        for name in NAMES:
            (self.links / name).symlink_to(pathlib.Path(binary).resolve())
        # Click installs its runner beside the programs, and some tests test that.
        (self.links / "clicktest").symlink_to(self.checkout / "test" / "clicktest")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def run(self, test, tries=1):
        """Runs one test file, again if it fails and `tries` allow."""
        while True:
            outcome = self._run_once(test)
            tries -= 1
            if outcome.result != "fail" or tries == 0:
                return outcome

    def _run_once(self, test):
        # clicktest works in its current folder, so each run gets its own.
        with tempfile.TemporaryDirectory(dir=self._folder.name) as scratch:
            command = ["perl", str(self.checkout / "test" / "clicktest"), "-p", str(self.links), "-t", str(TIMEOUT_S), "-V",
                       str(test)]
            env = {k: v for k, v in os.environ.items() if k != "CLICKPATH"}
            done = subprocess.run(command, cwd=scratch, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace")
        summary = re.search(r"(\d+) success(?:es)?, (\d+) failures?, (\d+) skipped", done.stdout)
        if summary and int(summary.group(2)) == 0 and int(summary.group(1)) > 0:
            return Outcome("pass", done.stdout)
        if summary and int(summary.group(2)) == 0 and int(summary.group(3)) > 0:
            return Outcome("skip", done.stdout)
        return Outcome("fail", done.stdout)


def tries_of(row):
    """How often a test may be tried, by its row in the table."""
    return TRIES if row and "measures real time" in row.reason else 1


def run_all(runner, tests, table, jobs):
    """Outcomes by name."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {name: pool.submit(runner.run, path, tries_of(table.get(name))) for name, path in tests.items()}
        return {name: future.result() for name, future in futures.items()}


def default_binary():
    return os.environ.get("HEADRACE", str(HERE.parent.parent / "build" / "headrace"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headrace", default=default_binary(), help="binary to test (default: build/headrace)")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time; some measure time, so 1 is safest")
    parser.add_argument("--verbose", action="store_true", help="show the output of tests that do not pass")
    parser.add_argument("arguments", nargs="*", metavar="CHECKOUT|TEST")
    options = parser.parse_args()

    arguments = list(options.arguments)
    if arguments and is_checkout(pathlib.Path(arguments[0])):
        checkout = pathlib.Path(arguments.pop(0))
    else:
        checkout = pathlib.Path(os.environ.get("CLICK_SOURCE", ""))
    if not is_checkout(checkout) or not checkout.parts:
        print("SKIP: no Click checkout (give its path, or set CLICK_SOURCE)")
        return 0
    if not os.access(options.headrace, os.X_OK):
        print(f"there is no binary {options.headrace}", file=sys.stderr)
        return 1

    table = read_table()
    tests = {}
    for name in arguments or table:
        folder = checkout / "test" / name
        if folder.is_dir():
            tests.update({path.stem: path for path in sorted(folder.glob("*.clicktest"))})
        elif path := find_test(checkout, name):
            tests[name] = path
        else:
            print(f"{checkout} has no test {name}", file=sys.stderr)
            return 1

    regressions, surprises = [], []
    with Runner(checkout, options.headrace) as runner:
        outcomes = run_all(runner, tests, table, options.jobs)
    for name, outcome in outcomes.items():
        expected = table.get(name)
        note = ""
        if expected and expected.result == "pass" and outcome.result != "pass":
            regressions.append(name)
            note = "  REGRESSION"
        elif expected and expected.result != outcome.result:
            surprises.append(name)
            note = f"  (the table says {expected.result})"
        elif expected and expected.reason:
            note = f"  {expected.reason}"
        print(f"{outcome.result:5} {name}{note}")
        if outcome.result != "pass" and (options.verbose or name in regressions):
            print("      " + outcome.output.strip().replace("\n", "\n      "))
    count = {r: sum(o.result == r for o in outcomes.values()) for r in ("pass", "fail", "skip")}
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    if surprises:
        print("update tests/peer/README.md: " + ", ".join(surprises))
    return 1 if regressions else 0


if __name__ == "__main__":
    sys.exit(main())
