"""Fixtures for tests that run the binary as a user does."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 120


class Program:
    """Runs the binary under one of its names, in a scratch folder."""

    def __init__(self, path, folder):
        self._path = path
        self.folder = folder

    def __call__(self, *arguments, stdin="", status=0, env=None):
        """The finished process; its exit status must be `status` (None: any)."""
        environment = {k: v for k, v in os.environ.items() if k != "CLICKPATH"} | (env or {})
        done = subprocess.run([self._path, *map(str, arguments)], cwd=self.folder, env=environment, input=stdin, text=True,
                              capture_output=True, timeout=TIMEOUT_S)
        assert status is None or done.returncode == status, f"status {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def start(self, *arguments, **options):
        """The process, running; `options` are Popen's."""
        return subprocess.Popen([self._path, *map(str, arguments)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)


def _binary():
    path = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def _program(name, folder):
    link = folder / name
    link.symlink_to(_binary())
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return Program(str(link), work)


@pytest.fixture
def headrace(tmp_path):
    return _program("headrace", tmp_path)


@pytest.fixture
def click(tmp_path):
    return _program("click", tmp_path)


@pytest.fixture
def click_flatten(tmp_path):
    return _program("click-flatten", tmp_path)


@pytest.fixture
def click_buildtool(tmp_path):
    return _program("click-buildtool", tmp_path)
