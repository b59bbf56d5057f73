"""Fixtures for the system tests: the binary as a user runs it."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 120


@pytest.fixture
def headrace(tmp_path):
    """Runs the binary in a scratch folder; its exit status must be 0."""
    path = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")

    def run(*arguments):
        done = subprocess.run([str(path.resolve()), *map(str, arguments)], cwd=tmp_path, stdin=subprocess.DEVNULL,
                              text=True, capture_output=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run
