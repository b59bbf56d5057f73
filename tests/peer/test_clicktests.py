"""Click's own tests against headrace: one test for each row of README.md that passes."""

import os
import pathlib

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
    assert len(TABLE) >= 33


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.result == "pass"])
def test_click(runner, name):
    path = run_clicktests.find_test(CHECKOUT, name)
    assert path, f"{CHECKOUT} has no test {name}"
    outcome = runner.run(path, run_clicktests.tries_of(TABLE[name]))
    assert outcome.result == "pass", outcome.output
