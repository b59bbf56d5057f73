"""`headrace run` under SCHED_FIFO, where a worker that polls gives its CPU up to no thread of its own priority."""

import os
import pathlib
import resource
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUSY = "TrafficSource(LENGTH 60) -> Discard;\n"
# The kernel ends a process that ran so long without sleeping: were the router wrong, the machine would stay usable.
LIMIT_US = 10_000_000


def run_fifo(tmp_path, text, cpus, priority, *arguments):
    path = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    (tmp_path / "conf.click").write_text(text)

    def schedule():
        resource.setrlimit(resource.RLIMIT_RTTIME, (LIMIT_US, LIMIT_US))
        os.sched_setaffinity(0, cpus)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))

    try:
        return subprocess.run([str(path.resolve()), "run", "conf.click", *arguments], cwd=tmp_path, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, preexec_fn=schedule)
    except subprocess.SubprocessError as problem:
        if isinstance(problem, subprocess.TimeoutExpired):
            raise
        pytest.skip("SCHED_FIFO is not permitted here")


@pytest.fixture
def cpus():
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("one CPU is not enough to give one away")
    return usable


def test_control_thread_is_not_starved(tmp_path, cpus):
    """The worker and the control thread share one CPU; the duration must end the run."""
    done = run_fifo(tmp_path, BUSY, {cpus[-1]}, 1, "--workers", "1", "--duration", "0.5")
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    assert "ran 0.5 s" in done.stdout


def test_refuses_to_take_every_cpu(tmp_path, cpus):
    if len(cpus) < os.cpu_count():
        pytest.skip("some CPUs are not ours: the system keeps them")
    done = run_fifo(tmp_path, "Idle -> Discard;\n", set(cpus), 1, "--duration", "0.1")
    assert done.returncode == 1
    assert f"--workers {len(cpus) - 1} or less" in done.stderr
