"""The same rules and captures through Suricata: it must see what IDSMatcher sees."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "conf" / "data"
CONFIGURATION = """%YAML 1.1
---
vars:
  address-groups: {HOME_NET: any, EXTERNAL_NET: any}
  port-groups: {HTTP_PORTS: "80"}
outputs:
  - eve-log: {enabled: yes, filetype: regular, filename: eve.json, types: [alert]}
app-layer: {protocols: {}}
"""
# Suricata looks at streams, and so alerts for these packets more than once or for another packet of the stream; the set
# of rules that alert is the same.


def alerting(path):
    return {line["alert"]["signature_id"] for line in map(json.loads, path.read_text().splitlines()) if line["event_type"] == "alert"}


@pytest.fixture
def suricata(tmp_path):
    program = os.environ.get("SURICATA") or shutil.which("suricata")
    if not program:
        pytest.skip("suricata is not installed (SURICATA names none)")

    def run(capture, rules):
        folder = tmp_path / "suricata"
        folder.mkdir(exist_ok=True)
        (folder / "eve.json").unlink(missing_ok=True)
        (folder / "suricata.yaml").write_text(CONFIGURATION)
        done = subprocess.run([program, "-c", folder / "suricata.yaml", "-S", rules, "-r", capture, "-l", folder, "-k", "none",
                               "--runmode", "single"], text=True, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return alerting(folder / "eve.json")

    return run


def test_same_rules_alert(headrace, suricata, tmp_path):
    capture, rules = DATA / "ids-sample.pcap", DATA / "sample.rules"
    (tmp_path / "ids.click").write_text(f"FromDump({capture}, STOP true) -> IDSMatcher(RULES {rules}, ALERTS ours.json) -> Discard;\n")
    headrace("run", "-q", "ids.click")
    ours = alerting(tmp_path / "ours.json")
    assert len(ours) == 20
    assert suricata(capture, rules) == ours
