"""`top -H` and `perf` tell the threads of a router apart."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONGEST = 30  # seconds


def names_of(pid):
    names = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            names.add((task / "comm").read_text().strip())
        except OSError:  # it has just ended
            pass
    return names


def test_threads_have_names(tmp_path):
    path = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    (tmp_path / "conf.click").write_text("TrafficSource(LENGTH 60, RATE 1000) -> Paint(1) -> Discard;\n")
    router = subprocess.Popen([path.resolve(), "run", "conf.click", "--workers", "2", "--backend", "reference", "--mode", "auto"],
                              cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    expected = {path.resolve().name[:15], "worker 0", "worker 1", "balancer", "reference 0"}
    try:
        end = time.monotonic() + LONGEST
        while not expected <= names_of(router.pid) and time.monotonic() < end:
            assert router.poll() is None
            time.sleep(0.05)
        assert expected <= names_of(router.pid)
        router.send_signal(signal.SIGINT)
        assert router.wait(LONGEST) == 0
    finally:
        router.kill()
        router.wait()
