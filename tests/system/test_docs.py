"""The pages of docs/ are right: their code is built outside the tree against an installation, their commands are run, and
what they print is compared with what the pages show.

A page is walked from top to bottom in a folder of its own. The first word behind a fence is the language, as everywhere;
the others say what the block is:

    file=NAME            written to NAME; with `append`, added to it
    excerpt=PATH         these lines stand in that file of the source tree
    sh                   a command, run by bash; what it exports holds for the commands behind it. A block of `text` right
                         behind it is its output: `...` is anything on that line, and any lines where it stands alone
    sh fails             a command whose exit status is not 0
    sh by-hand           not run: what it does has been done
    sh without-device    run only on a machine without a GPU
"""

import ctypes
import dataclasses
import glob
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
BUILD = pathlib.Path(os.environ.get("HEADRACE_BUILD", ROOT / "build"))
BINARY = pathlib.Path(os.environ.get("HEADRACE", BUILD / "headrace"))
TIMEOUT_S = 300
FENCE = re.compile(r"^```(?P<info>.*)\n(?P<body>(?:.*\n)*?)```$", re.MULTILINE)


@dataclasses.dataclass
class Block:
    line: int
    language: str
    words: list
    body: str

    def value(self, key):
        return next((word.split("=", 1)[1] for word in self.words if word.startswith(key + "=")), None)


def blocks_of(page):
    text = (ROOT / "docs" / page).read_text()
    blocks = []
    for match in FENCE.finditer(text):
        language, *words = match["info"].split() or [""]
        blocks.append(Block(text.count("\n", 0, match.start()) + 1, language, words, match["body"]))
    return blocks


def matches(expected, output):
    """True if `output` is what the page shows."""
    parts = []
    for line in expected.splitlines():
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.rstrip().split("..."))) + r"[ ]*\n")
    if output and not output.endswith("\n"):
        output += "\n"
    return re.fullmatch("".join(parts), output) is not None


def cache_entry(name):
    match = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return match[1] if match else ""


class Walk:
    """A page being walked."""

    def __init__(self, page, folder, prefix):
        self.page = page
        self.folder = folder
        self.problems = []
        tools = folder / ".bin"
        tools.mkdir(parents=True)
        compiler = cache_entry("CMAKE_CXX_COMPILER")
        (tools / "c++").symlink_to(compiler)
        self.environment = os.environ | {
            "PREFIX": str(prefix),
            "PATH": f"{prefix / 'bin'}:{tools}:{os.environ['PATH']}",
            "CXX": compiler,
            "CMAKE_BUILD_PARALLEL_LEVEL": "2",
        }
        if shutil.which("ninja"):
            self.environment["CMAKE_GENERATOR"] = "Ninja"
        for name in ("HEADRACE_PATH", "CLICKPATH"):
            self.environment.pop(name, None)

    def run(self, command):
        """Exit status and output of a command; what it exports is kept."""
        exported = self.folder / ".environment"
        script = f"trap 'env -0 >\"{exported}\"' EXIT\nset -euo pipefail\n{command}"
        # A file and no pipe: what runs on in the background keeps a pipe open.
        output = self.folder / ".output"
        with open(output, "w") as file:
            done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
        pairs = exported.read_bytes().split(b"\0")
        self.environment = dict(os.fsdecode(pair).split("=", 1) for pair in pairs if pair)
        return done.returncode, output.read_text(errors="replace")

    def complain(self, block, what):
        self.problems.append(f"docs/{self.page}:{block.line}: {what}")

    def command(self, block, shown):
        status, output = self.run(block.body)
        if (status != 0) != ("fails" in block.words):
            self.complain(block, f"exit status {status} of\n{block.body}\n{output}")
        elif shown is not None and not matches(shown.body, output):
            self.complain(shown, f"the page shows\n{shown.body}\nthe command prints\n{output}")

    def excerpt(self, block):
        path = ROOT / block.value("excerpt")
        if not path.exists() or block.body not in path.read_text():
            self.complain(block, f"{path} does not contain\n{block.body}")

    def walk(self):
        blocks = blocks_of(self.page)
        for index, block in enumerate(blocks):
            if name := block.value("file"):
                with open(self.folder / name, "a" if "append" in block.words else "w") as file:
                    file.write(block.body)
            elif block.value("excerpt"):
                self.excerpt(block)
            elif block.language == "sh" and "by-hand" not in block.words:
                if "without-device" in block.words and pathlib.Path("/dev/nvidiactl").exists():
                    continue
                behind = blocks[index + 1] if index + 1 < len(blocks) else None
                shown = behind if behind and behind.language == "text" and not behind.words else None
                self.command(block, shown)
        return self


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation, as `make install` makes it."""
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    if cache_entry("HEADRACE_SANITIZE"):
        pytest.skip("a binary with sanitizers is not for installing")
    folder = tmp_path_factory.mktemp("prefix")
    done = subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(folder)], text=True, capture_output=True,
                          timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def elements_page(prefix, tmp_path_factory):
    return Walk("elements.md", tmp_path_factory.mktemp("elements"), prefix).walk()


def test_matches():
    assert matches("a\n...\nd ... f\n", "a\nb\nc\nd e f\n")
    assert matches("...\nlast", "first\nlast")
    assert matches("a\n...\n", "a\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a\n...\nc\n", "a\nb\n")
    assert not matches("a.c\n", "abc\n")


def test_elements_page(elements_page):
    assert not elements_page.problems, "\n".join(elements_page.problems)


def test_matching_page(prefix, tmp_path):
    walk = Walk("matching.md", tmp_path, prefix).walk()
    assert not walk.problems, "\n".join(walk.problems)


def test_offload_page(prefix, tmp_path):
    walk = Walk("offload.md", tmp_path, prefix).walk()
    assert not walk.problems, "\n".join(walk.problems)


def test_ipsec_page(prefix, tmp_path):
    walk = Walk("ipsec.md", tmp_path, prefix).walk()
    status, output = walk.run("echo 'neigh port 1 02:00:00:00:01:10' >> gateway.cfg; headrace check with-host.click")
    assert status == 0 and "no errors" in output
    assert not walk.problems, "\n".join(walk.problems)


def test_control_page(prefix, tmp_path):
    if not shutil.which("nc"):
        pytest.skip("nc is not installed (netcat-openbsd)")
    walk = Walk("control.md", tmp_path, prefix).walk()
    walk.run("kill $(cat router.pid)")
    assert not walk.problems, "\n".join(walk.problems)


def test_classifier_page(prefix, tmp_path):
    if not shutil.which("nc"):
        pytest.skip("nc is not installed (netcat-openbsd)")
    walk = Walk("classifier.md", tmp_path, prefix).walk()
    walk.run("kill $(cat router.pid)")
    assert not walk.problems, "\n".join(walk.problems)


def test_balancing_page(prefix, tmp_path):
    problems = Walk("balancing.md", tmp_path, prefix).walk().problems
    assert not problems, "\n".join(problems)


def nvrtc():
    """NVIDIA's run-time compiler from where the binary looks for it (tools/nvrtc puts it into the user's cache)."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = glob.glob(f"{cache}/headrace/nvrtc-*/nvidia/cu1[23]/lib") + ["/usr/local/cuda/lib64"]
    named = os.environ.get("HEADRACE_NVRTC", "")
    if named:
        folders.insert(0, named)
    for path in [named] + [f"{folder}/libnvrtc.so.{version}" for folder in folders for version in (13, 12)]:
        if path and os.path.isfile(path):
            # NVRTC looks for its second half by name only.
            for builtins in glob.glob(f"{os.path.dirname(path)}/libnvrtc-builtins.so.*"):
                ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(path)
    pytest.skip("no CUDA compiler: libnvrtc.so.13 or .12 not found (tools/nvrtc)")


def compile_for_device(library, source, includes):
    """The compiler's messages; empty when it has none and the program is good."""
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None) == 0
    options = [b"--gpu-architecture=sm_90", b"--std=c++20", b"--device-as-default-execution-space"]
    options += [f"--include-path={folder}".encode() for folder in includes]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return "" if status == 0 else f"status {status}\n{log.value.decode(errors='replace')}"


@pytest.mark.parametrize("package, configuration", [("mine", "mark.click"), ("more", "more.click")])
def test_elements_of_the_page_compile_for_devices(elements_page, prefix, tmp_path, package, configuration):
    library = nvrtc()
    status, source = elements_page.run(f"headrace check --program - {configuration}")
    assert status == 0, source
    assert f'#include "elements/{package}/' in source
    (tmp_path / "elements").mkdir()
    (tmp_path / "elements" / package).symlink_to(elements_page.folder)
    folders = [tmp_path, prefix / "include", prefix / "include" / "headrace", ROOT]
    source += '\n#include "headrace/device/kernels.hh"\n'
    assert compile_for_device(library, source, folders) == ""


def test_links():
    """What README, HACKING and the pages link to is there, headings included."""
    def anchors(path):
        headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    pages = [ROOT / "README.md", ROOT / "HACKING.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert len(pages) >= 4
    wrong = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name) if name else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                wrong.append(f"{page.name}: {target}")
    assert not wrong
    for page in pages[:2]:
        assert "(docs/elements.md" in page.read_text() and "(docs/offload.md" in page.read_text(), page.name
