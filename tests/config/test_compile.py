"""Chains compiled for the CPU: what a user sees when all is well, and when it is not."""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONF = ROOT / "conf"

# Two shaders, 1,000 packets, nothing but numbers at the end.
SMALL = """
TrafficSource(uniform, LIMIT 1000, STOP true) -> Strip(14) -> check :: CheckIPHeader -> c :: Counter -> DecIPTTL
  -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> ToDump(out.pcap, SNAPLEN 0);
"""


def read_capture(path):
    data, at, frames = path.read_bytes(), 24, []
    while at < len(data):
        length = int.from_bytes(data[at + 8:at + 12], "little")
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


def compiler():
    for name in [os.environ.get("HEADRACE_CXX"), "g++", "clang++"]:
        if name and shutil.which(name):
            return shutil.which(name)
    return None


needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C++ compiler here")


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def run(headrace, tmp_path):
    """Runs SMALL, or another text, waiting for the chains; returns its output. The cache is this test's own."""
    home = tmp_path / "home"
    home.mkdir()

    def run(*options, text=SMALL, read="c.count", env=None, mode="wait"):
        conf = headrace.folder / "small.click"
        conf.write_text(text)
        environment = {"HOME": str(home), "XDG_CACHE_HOME": ""} | (env or {})
        done = headrace("run", "-w", "1", "--compile", mode, *(["-r", read] if read else []), *options, conf, env=environment)
        assert read is None or f"{read}: 1000\n" in done.stdout, done.stdout
        return done.stdout + done.stderr

    run.home = home
    run.cache = home / ".cache" / "headrace"
    run.folder = headrace.folder
    return run


@needs_compiler
def test_compiled_once_and_kept(run):
    assert re.search(r"^chains: compiled: .*, \d+\.\d s$", run(), re.M)
    assert stat.S_IMODE(run.cache.stat().st_mode) == 0o700
    assert len(list(run.cache.glob("cpu-*.so"))) == 1
    assert f", kept in {run.cache}\n" in run()
    # Another configuration, another program.
    run(text=SMALL.replace("Strip(14)", "Strip(13) -> Strip(1)"))
    assert len(list(run.cache.glob("cpu-*.so"))) == 2


@needs_compiler
def test_the_same_bytes(run):
    run(mode="off")
    one_by_one = read_capture(run.folder / "out.pcap")
    run()
    assert len(one_by_one) == 1000 and read_capture(run.folder / "out.pcap") == one_by_one


def test_no_compiler(run):
    text = run(env={"HEADRACE_CXX": "/nonexistent/g++"})
    assert ("chains: not compiled (no C++ compiler: /nonexistent/g++: No such file or directory): "
            "packets go from element to element\n") in text


def test_a_compiler_that_fails(run, tmp_path):
    cxx = script(tmp_path / "cxx", '[ "$1" = --version ] && { echo "cxx 1"; exit 0; }\necho "out of luck" >&2\nexit 1\n')
    text = run(env={"HEADRACE_CXX": cxx})
    assert f"chains: not compiled ({cxx} does not compile the chains:\nout of luck): packets go" in text


def test_a_compiler_that_does_not_answer(run, tmp_path):
    cxx = script(tmp_path / "cxx", "exit 7\n")
    assert f"chains: not compiled (no C++ compiler: {cxx} --version failed)" in run(env={"HEADRACE_CXX": cxx})


@pytest.mark.parametrize("writes, said", [
    ("echo rubbish >", "file too short"),
    ("head -c 20000 /dev/urandom >", "invalid ELF header"),
    (": ", "wrote no program"),
])
def test_a_compiler_that_writes_rubbish(run, tmp_path, writes, said):
    cxx = script(tmp_path / "cxx", '[ "$1" = --version ] && { echo "cxx 1"; exit 0; }\n'
                 f'while [ $# -gt 0 ]; do [ "$1" = -o ] && {writes} "$2"; shift; done\nexit 0\n')
    text = run(env={"HEADRACE_CXX": cxx})
    assert "chains: not compiled (" in text and said in text, text
    assert not list(run.cache.glob("cpu-*.so"))


def compiler_that(then):
    """A compiler that does its work, and then something to what it wrote, whose name is in $out."""
    return (f'{compiler()} "$@" || exit\n[ "$1" = --version ] && exit\n'
            f'while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n{then}\n')


def cut(path, percent):
    whole = path.read_bytes()
    path.write_bytes(whole[:len(whole) * percent // 100])


def change(path):
    """Another byte in the middle, as on a disk that loses something."""
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:])


CUT = [1, 5, 30, 60, 90, 99]  # percent that are left


@needs_compiler
@pytest.mark.parametrize("percent", CUT)
def test_a_compiler_whose_program_is_cut_short(run, tmp_path, percent):
    """To load one maps pages that the file does not have."""
    cxx = script(tmp_path / "cxx", compiler_that(f'truncate -s $(($(stat -c %s "$out") * {percent} / 100)) "$out"'))
    text = run(env={"HEADRACE_CXX": cxx})
    assert f"chains: not compiled (what {cxx} made cannot be used: " in text, text
    assert not list(run.cache.glob("cpu-*.so"))


def test_a_compiler_that_hangs_before_it_answers(run, tmp_path):
    cxx = script(tmp_path / "cxx", "sleep 1000\n")
    assert f"chains: not compiled (no C++ compiler: {cxx} took more than 5 s)" in run(env={"HEADRACE_CXX": cxx})


@needs_compiler
def test_the_next_compiler(run, tmp_path):
    """One that answers may yet be no help, as g++ without its libraries."""
    folder = tmp_path / "bin"
    folder.mkdir()
    answers = '[ "$1" = --version ] && { echo "g++ 1"; exit 0; }\n'
    script(folder / "g++", answers + 'echo "no cc1plus" >&2\nexit 1\n')
    script(folder / "clang++", f'exec {compiler()} "$@"\n')
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "HEADRACE_CXX": ""}
    assert re.search(r"^chains: compiled: .*, \d+\.\d s$", run(env=env), re.M)
    for name in ("clang++", "c++"):
        script(folder / name, answers + f'echo "nor {name}" >&2\nexit 1\n')
    text = run(text=SMALL.replace("1:1:1:1:1:1", "4:4:4:4:4:4"), env=env)
    assert ("chains: not compiled (g++ does not compile the chains:\nno cc1plus; clang++ does not compile the chains:\nnor clang++; "
            "c++ does not compile the chains:\nnor c++): packets go") in text, text


@needs_compiler
@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_each_compiler_gives_the_same_bytes(run, name):
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    run(mode="off")
    one_by_one = read_capture(run.folder / "out.pcap")
    assert re.search(rf"^chains: compiled: .*{name.rstrip('+')}.*, \d+\.\d s$", run(env={"HEADRACE_CXX": name}), re.M)
    assert len(one_by_one) == 1000 and read_capture(run.folder / "out.pcap") == one_by_one


def test_a_compiler_that_hangs(headrace, tmp_path):
    """Packets flow meanwhile, and it does not outlive the router."""
    (tmp_path / "home").mkdir()
    cxx = script(tmp_path / "cxx", '[ "$1" = --version ] && { echo "cxx 1"; exit 0; }\n'
                 f"echo $$ > {tmp_path}/pid\nsleep 1000\n")
    (headrace.folder / "small.click").write_text(SMALL.replace("STOP true", "STOP false"))
    begin = time.monotonic()
    done = headrace("run", "-w", "1", "-d", "2", "-r", "c.count", "-r", "chains", "small.click",
                    env={"HEADRACE_CXX": cxx, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""})
    assert time.monotonic() - begin < 30
    assert "c.count: 1000\n" in done.stdout and "chains: being compiled\n" in done.stdout
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@needs_compiler
def test_started_by_a_program_that_ignores_its_children(headrace, tmp_path):
    (headrace.folder / "small.click").write_text(SMALL)
    process = headrace.start("run", "-w", "1", "--compile", "wait", "small.click",
                             env=os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""},
                             preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    out, _ = process.communicate(timeout=60)
    assert "chains: compiled: " in out, out


@needs_compiler
def test_a_cache_that_others_may_write_to(run):
    run.cache.mkdir(parents=True)
    run.cache.chmod(0o777)
    assert f"not kept: others may write to {run.cache}\n" in run()
    assert not list(run.cache.iterdir())


@needs_compiler
def test_a_cache_of_another_user(run):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    run.cache.mkdir(parents=True)
    os.chown(run.cache, 12345, 12345)
    assert f"not kept: {run.cache} belongs to another user\n" in run()


@needs_compiler
def test_a_cache_that_is_a_file(run):
    run.cache.parent.mkdir(parents=True)
    run.cache.write_text("")
    assert f"not kept: {run.cache} is no folder\n" in run()


@needs_compiler
def test_a_cache_that_is_a_link(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    run.cache.parent.mkdir(parents=True)
    run.cache.symlink_to(tmp_path / "elsewhere")
    assert f"not kept: {run.cache} is no folder\n" in run()


@needs_compiler
def test_no_home(run):
    assert "not kept: /proc/nobody/.cache/headrace: " in run(env={"HOME": "/proc/nobody"})
    assert "not kept: neither HOME nor XDG_CACHE_HOME is set\n" in run(env={"HOME": ""})


@needs_compiler
def test_rubbish_in_the_cache(run):
    run()
    kept, = run.cache.glob("cpu-*.so")
    for rubbish in [lambda: kept.write_bytes(b"rubbish"), lambda: change(kept), *(functools.partial(cut, kept, n) for n in CUT)]:
        rubbish()
        assert re.search(r"^chains: compiled: .*, \d+\.\d s$", run(), re.M)
        assert kept.stat().st_size > 1000
    # One that somebody else could have put there is not run.
    kept.chmod(0o666)
    assert "kept in" not in run()


def mounted(folder, options):
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "headrace-test", str(folder)], capture_output=True)
    if done.returncode != 0:
        pytest.skip("cannot mount a file system here")
    return folder


@needs_compiler
@pytest.mark.parametrize("options, said", [("size=16M,noexec", ""), ("size=4k", "not kept: cannot write to "), ("ro", "not kept: ")])
def test_file_systems_that_refuse(run, tmp_path, options, said):
    home = mounted(tmp_path / "mounted", options)
    try:
        text = run(env={"HOME": str(home)})
        assert "chains: compiled: " in text and said in text, text
        if not said:
            assert "kept in" in run(env={"HOME": str(home), "TMPDIR": str(home)})
    finally:
        subprocess.run(["umount", str(home)], check=True)


@needs_compiler
def test_no_room_for_the_compiler(run, tmp_path):
    folder = mounted(tmp_path / "mounted", "size=64k")
    try:
        text = run(env={"TMPDIR": str(folder)})
        assert "chains: not compiled (cannot write to " in text, text
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@needs_compiler
def test_nothing_of_a_configuration_is_executed(run):
    """Names and arguments are comments of the program; none of them ends a comment or comes to a shell."""
    evil = ['"$(touch pwned)"', '"`touch pwned`"', '"\\\\"', '"*/ int x; /*"', '"??/"', '"\n#error"']
    text = SMALL.replace("-> c ::", "".join(f"-> AhoCorasick({e}) " for e in evil) + "-> c ::")
    assert "chains: compiled: " in run(text=text)
    assert not list(run.folder.rglob("pwned"))


@needs_compiler
def test_compile_beforehand(headrace, run, tmp_path):
    env = {"HOME": str(run.home), "XDG_CACHE_HOME": ""}
    (headrace.folder / "small.click").write_text(SMALL)
    headrace("compile", "small.click", "-o", "small.so", env=env)
    without = {"HEADRACE_CXX": "/nonexistent"}
    assert "chains: compiled: small.so\n" in run("--compiled", "small.so", env=without)
    other = run("--compiled", "small.so", text=SMALL.replace("DecIPTTL", "DecIPTTL -> Paint(3)"), env=without)
    assert "small.so: it was made from another configuration, or for another version of Headrace" in other
    assert "missing.so: No such file or directory" in run("--compiled", "missing.so", env=without)
    whole = (headrace.folder / "small.so").read_bytes()
    for bad in [b"\x7fELF", *(whole[:len(whole) * n // 100] for n in CUT), whole.replace(b"headrace_compiled", b"headrace_compilex")]:
        (headrace.folder / "bad.so").write_bytes(bad)
        assert "(bad.so: it is no compiled configuration, or not all of one)" in run("--compiled", "bad.so", env=without)
    done = headrace("compile", "small.click", "-o", "small.so", status=1, env=env | without)
    assert "no C++ compiler: /nonexistent: No such file or directory" in done.stderr
    (headrace.folder / "none.click").write_text("Idle -> Discard;")
    assert "none.click has no chain of shaders" in headrace("compile", "none.click", "-o", "x.so", status=1).stderr


@needs_compiler
def test_compiled_for_another_processor(headrace, run):
    env = {"HOME": str(run.home), "XDG_CACHE_HOME": ""}
    (headrace.folder / "small.click").write_text(SMALL)
    # Knights Landing had instructions that no processor before or after it knows.
    knl = ["compile", "--march", "knl", "small.click", "-o", "small.so"]
    if subprocess.run([compiler(), "-march=knl", "-xc++", "-E", "/dev/null"], capture_output=True).returncode != 0:
        pytest.skip("this compiler does not know Knights Landing")
    headrace(*knl, env=env)
    text = run("--compiled", "small.so", env={"HEADRACE_CXX": "/nonexistent"})
    assert re.search(r"small.so: it was made for another processor: this one lacks.* avx512er", text), text


@needs_compiler
def test_programs_beside_the_executable(headrace, run, tmp_path):
    """As the portable archive has them. The executable must lie there, so it is copied."""
    folder = tmp_path / "archive"
    (folder / "chains").mkdir(parents=True)
    binary = folder / "headrace"
    shutil.copy(os.path.realpath(os.environ.get("HEADRACE", ROOT / "build" / "headrace")), binary)
    conf = headrace.folder / "small.click"
    conf.write_text(SMALL)
    subprocess.run([binary, "compile", conf, "-o", folder / "chains"], check=True)
    env = os.environ | {"HOME": str(run.home), "XDG_CACHE_HOME": "", "HEADRACE_CXX": "/nonexistent"}
    done = subprocess.run([binary, "run", "-w", "1", "--compile", "wait", conf], env=env, cwd=headrace.folder, capture_output=True,
                          text=True, check=True)
    assert f"chains: compiled: {folder}/chains/" in done.stdout
    # The other program there is for any values that handlers may set.
    frames = read_capture(headrace.folder / "out.pcap")
    conf.write_text(SMALL.replace("1:1:1:1:1:1", "3:3:3:3:3:3"))
    done = subprocess.run([binary, "run", "-w", "1", "--compile", "wait", conf], env=env, cwd=headrace.folder, capture_output=True,
                          text=True, check=True)
    assert f"chains: compiled: {folder}/chains/" in done.stdout
    assert read_capture(headrace.folder / "out.pcap") == [f[:6] + b"\3" * 6 + f[12:] for f in frames]
    # It is better than a compiler that fails, too.
    env["HEADRACE_CXX"] = script(tmp_path / "cxx", '[ "$1" = --version ] && { echo "cxx 1"; exit 0; }\necho "no luck" >&2\nexit 1\n')
    done = subprocess.run([binary, "run", "-w", "1", "--compile", "wait", conf], env=env, cwd=headrace.folder, capture_output=True,
                          text=True, check=True)
    assert re.search(rf"^chains: compiled: {folder}/chains/\S+ \(.* does not compile the chains:\nno luck\)$", done.stdout, re.M), done.stdout


def test_the_program_is_readable(headrace):
    headrace("check", "-q", CONF / "ipv4-router.click", "--program", "cpu.cc")
    text = (headrace.folder / "cpu.cc").read_text()
    assert "// port0/ttl, port1/ttl, port2/ttl, port3/ttl :: DecIPTTL()" in text and "goto port0_ttl_" in text
    assert "extern \"C\"" in text and "__device__" not in text
    # What a shader holds as long as the router runs is told to the compiler.
    assert re.search(r"HEADRACE_KNOWN\(CheckIPHeader_\w+\.offset == 0\);", text)


@needs_compiler
def test_a_new_configuration_is_compiled_too(headrace, run, tmp_path):
    """And a write handler shows at once."""
    text = """
        s :: TrafficSource(uniform, LENGTH 64, LIMIT {limit}, STOP true) -> Strip(14) -> p :: PaintTee({color}) -> q :: Counter -> Discard;
        p[1] -> copies :: Counter -> Discard;
        Script(TYPE DRIVER, wait 0.2, print chains, print p.color, {more});
    """
    first = text.format(limit=-1, color=3, more="write hotconfig $(cat second.click), wait 100")
    second = text.format(limit=-1, color=0, more="wait 0.1, write p.color 5, write copies.reset, wait 0.1, print copies.count, stop")
    (headrace.folder / "second.click").write_text(second)
    (headrace.folder / "first.click").write_text(first)
    done = headrace("run", "-w", "1", "--compile", "wait", "-R", "first.click",
                    env={"HOME": str(run.home), "XDG_CACHE_HOME": ""})
    values = re.findall(r"^(compiled|\d+$)", done.stdout, re.M)
    assert values == ["compiled", "3", "compiled", "0", "0"], done.stdout


# Eight classes of which no two are alike.
CHAIN = """
TrafficSource(uniform, LENGTH 64) -> Strip(14) -> CheckIPHeader -> Counter -> DecIPTTL
  -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;
"""


@pytest.mark.parametrize("mode, said", [
    ("off", "cycles between the borders of elements"),
    pytest.param("wait", "cycles of compiled chains, divided among their elements by samples of a program with marks",
                 marks=needs_compiler)])
def test_a_profile_names_elements_and_says_how(headrace, tmp_path, mode, said):
    (headrace.folder / "chain.click").write_text(CHAIN)
    bench = ["bench", "chain.click", "--workers", "1", "--seconds", "0.5", "--profile", "--batch", "16", "--compile", mode]
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    done = json.loads(headrace(*bench, "--json", env=env).stdout)
    assert done["profile_by"] == said
    assert done["cpu_chains"].startswith("compiled: " if mode == "wait" else "not compiled")
    rows = {row["class"]: row for row in done["profile"]}
    assert set(rows) >= {"Strip", "CheckIPHeader", "Counter", "DecIPTTL", "EtherEncap"}
    for row in rows.values():
        # All of them are seen at work, with the batches that were asked for. On a busy machine no sample may meet an addition
        # for each batch, which is all that is left of a Counter.
        least = -1 if mode == "wait" and row["class"] == "Counter" else 0
        assert row["cycles_per_packet"] > least and row["packets"] > 1000, row
        # But for a batch on its way when counting began.
        assert abs(row["packets_per_batch"] - 16) < 0.01, row
    assert said + "\n" in headrace(*bench, env=env).stdout


def test_batches_fit_the_cache(headrace):
    """As many packets as docs/performance.md says; BURST of an element comes first."""
    def batch(text, *options):
        (headrace.folder / "chain.click").write_text(text)
        done = headrace("bench", "chain.click", "--workers", "1", "--seconds", "0.2", "--profile", "--json", "--compile", "off", *options)
        return {row["class"]: row["packets_per_batch"] for row in json.loads(done.stdout)["profile"]}["Strip"]

    cache = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index0/size")
    if cache.exists():
        kib = int(cache.read_text().rstrip("K\n"))
        # Six lines of 64 bytes each.
        assert batch(CHAIN) == min(max(kib * 1024 // (6 * 64) // 32 * 32, 32), 256)
    assert batch(CHAIN, "--batch", "7") == 7
    assert batch(CHAIN.replace("LENGTH 64", "LENGTH 64, BURST 32"), "--batch", "7") == 32
    for wrong in "0", "many", "100000":
        assert f"--batch: Value {wrong} not in range 1 to 256" in headrace("bench", "chain.click", "--batch", wrong, status=2).stderr


def test_figures_name_the_processor(headrace):
    """Machines of one name differ by factors."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    field = lambda name: re.search(rf"^{name}\s*: (.*)$", info, re.M).group(1)
    (headrace.folder / "chain.click").write_text(CHAIN)
    bench = ["bench", "chain.click", "--workers", "1", "--seconds", "0.1", "--compile", "off"]
    found = json.loads(headrace(*bench, "--json").stdout)
    assert found["cpu"]["cpu family"] == int(field("cpu family")) and found["cpu"]["model"] == int(field("model"))
    for word in found["cpu"]["vectors"].split():
        assert word in field("flags").split()
    assert ("avx2" in found["cpu"]["vectors"].split()) == ("avx2" in field("flags").split())
    named = f"{field('model name')} (family {field('cpu family')}, model {field('model')}, "
    for text in found["machine"], headrace(*bench).stdout, headrace("run", "-w", "1", "-d", "1", "chain.click").stdout:
        assert named in text, text
        assert ("AVX" in text) == ("avx" in field("flags").split())


def test_lookups_are_prefetched(headrace):
    """The generator asks a table for the lines of a lookup before it looks up a batch."""
    headrace("check", "-q", CONF / "ipv4-router.click", "--program", "cpu.cc")
    text = (headrace.folder / "cpu.cc").read_text()
    # A packet's line is asked for when the packet is put on the list of those that are looked up next.
    assert re.search(r"compiled::prefetch\((rt_\d+), p\); lists\.push_back\(run, \d+, p\.store\(\)\)", text)
