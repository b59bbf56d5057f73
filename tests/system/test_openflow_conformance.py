"""A part of os-ken's switch tester, which tools/openflow-conformance runs as a whole: all actions, and matches that need
much of a switch; those of 1.0 on the reference device."""

import concurrent.futures

import netlab
import openflow_tester
import pytest

PATTERNS = {
    "openflow10": ["of10/action/*", "of10/match/06_NW_TOS_IPv6.json"],
    "openflow13": ["of13/action/*", "of13/action/25_SET_FIELD/0*", "of13/action/25_SET_FIELD/33*",
                   "of13/match/02_METADATA_Mask.json"],
}
OPTIONS = {"openflow10": ["--mode", "device", "--backend", "reference"], "openflow13": []}


def start(host, folder, version):
    return openflow_tester.start_headrace(host, folder, version, OPTIONS[version])


def test_actions_and_a_few_matches():
    netlab.need("ss")
    if openflow_tester.find_tester() is None:
        pytest.skip("not installed: os-ken's switch tester (python3-os-ken, tools/deps test)")
    cases = openflow_tester.find_cases()
    if cases is None:
        pytest.skip("the cases of os-ken's switch tester are not here (tools/osken-cases)")
    if not openflow_tester.BINARY.exists():
        pytest.skip(f"{openflow_tester.BINARY} is not built")
    with netlab.Lab() as lab, concurrent.futures.ThreadPoolExecutor() as pool:
        runs = []
        for version, patterns in PATTERNS.items():
            paths = [path for pattern in patterns for path in cases.glob(pattern) if path.suffix == ".json"]
            assert len(paths) >= len(patterns)
            runs.append(pool.submit(openflow_tester.run_cases, lab, version, start, paths, cases, version))
        results = [result for run in runs for result in run.result()]
    assert len(results) > 100
    assert [result for result in results if not result.ok] == []
