"""Click's own tests against headrace: one test for each row of README.md that passes."""

import os
import pathlib
import subprocess

import pytest
import run_clicktests

CHECKOUT = pathlib.Path(os.environ["CLICK_SOURCE"]) if os.environ.get("CLICK_SOURCE") else None
TABLE = run_clicktests.read_table()


@pytest.fixture(scope="module")
def runner():
    if CHECKOUT is None:
        pytest.skip("no Click checkout: set CLICK_SOURCE")
    if not run_clicktests.is_checkout(CHECKOUT):
        pytest.skip(f"CLICK_SOURCE={CHECKOUT} is not a Click checkout")
    with run_clicktests.Runner(CHECKOUT, run_clicktests.default_binary()) as made:
        yield made


def test_table_is_there():
    assert len(TABLE) >= 49 + 17
    assert sum(row.result == "pass" for row in TABLE.values()) >= 55
    assert len(run_clicktests.read_configurations()[1]) >= 30


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.result == "pass"])
def test_click(runner, name):
    path = run_clicktests.find_test(CHECKOUT, name)
    assert path, f"{CHECKOUT} has no test {name}"
    outcome = runner.run(path, run_clicktests.tries_of(TABLE[name]))
    assert outcome.result == "pass", outcome.output


def loads(conf):
    """Whether `headrace check`, started in the file's folder, accepts it."""
    binary = pathlib.Path(run_clicktests.default_binary()).resolve()
    done = subprocess.run([binary, "check", conf.name], cwd=conf.parent, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=run_clicktests.TIMEOUT_S)
    return done.returncode == 0


def test_configurations_load(runner):
    """None of those that README.md lists is lost. Others may load, too: some ask for a device that only some hosts have."""
    total, listed = run_clicktests.read_configurations()
    confs = sorted((CHECKOUT / "conf").rglob("*.click"))
    good = {conf.stem for conf in confs if loads(conf)}
    print(f"{len(good)} of {len(confs)} load; not in README.md: {sorted(good - set(listed))}")
    assert len(confs) == total
    assert not set(listed) - good


def test_fake_iprouter_forwards_everything(runner):
    done = subprocess.run([runner.links / "click", CHECKOUT / "conf" / "fake-iprouter.click", "-h", "Discard.count"],
                          capture_output=True, text=True, timeout=run_clicktests.TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    counts = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert sum(counts) == 600000


def test_make_ip_conf_is_configured(runner, tmp_path):
    """Its devices are not here, so that initializing ends there; but every element must have understood its arguments."""
    text = subprocess.run(["perl", CHECKOUT / "conf" / "make-ip-conf.pl"], capture_output=True, text=True, check=True).stdout
    assert "ARPQuerier" in text
    (tmp_path / "ip.click").write_text(text.replace("eth0", "nodev0").replace("eth1", "nodev1"))
    done = subprocess.run([runner.links / "click", "-q", tmp_path / "ip.click"], capture_output=True, text=True,
                          timeout=run_clicktests.TIMEOUT_S)
    assert done.returncode == 1
    assert "While configuring" not in done.stderr and "unknown element" not in done.stderr
    assert "While initializing" in done.stderr and "nodev" in done.stderr
