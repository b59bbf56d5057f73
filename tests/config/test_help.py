"""The man page and the completion for bash, which the executable makes from its help texts."""

import re
import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tmp_path_factory.mktemp("help")


def commands(headrace):
    return [line.split("\t")[0] for line in headrace("--describe").stdout.splitlines()]


def shown(page):
    return subprocess.run(["groff", "-man", "-Tascii", "-P-cbou"], input=page, capture_output=True, text=True, check=True).stdout


needs_groff = pytest.mark.skipif(not shutil.which("groff"), reason="not installed: groff")


@needs_groff
def test_the_man_page_has_no_mistake(headrace):
    done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-z"], input=headrace("--man").stdout, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


@needs_groff
def test_the_man_page_has_every_command_and_option(headrace):
    text = shown(headrace("--man").stdout)
    assert [s for s in re.findall(r"^[A-Z][A-Z ]+$", text, re.M) if s != "HEADRACE"] == [
        "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
    sections = dict(zip(*[iter(re.split(r"^   headrace (\S+)$", text, flags=re.M)[1:])] * 2))
    assert list(sections) == commands(headrace) and len(sections) >= 7
    for command, section in sections.items():
        options = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", headrace(command, "--help").stdout))
        assert len(options) >= 4
        assert not {o for o in options if o not in section}, command


def complete(headrace, made, *words):
    script = made / "headrace.bash"
    script.write_text(headrace("--bash-completion").stdout)
    program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _headrace; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-uc", program, "bash", str(script), headrace._path, *words], cwd=made, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("words, found", [
    (["ru"], ["run"]),
    (["run", "--mo"], ["--mode"]),
    (["run", "--mode", "d"], ["device"]),
    (["run", "--mode", "=", "d"], ["device"]),
    (["run", "--backend", ""], ["auto", "cuda", "reference"]),
    (["elements", "CheckIPH"], ["CheckIPHeader", "CheckIPHeader2"]),
    (["click", "--simu"], ["--simulation-time"]),
    (["run", "--duration", ""], []),
    (["nothing", ""], []),
])
def test_bash_completes(headrace, made, words, found):
    assert sorted(complete(headrace, made, *words)) == found


def test_bash_completes_files(headrace, made):
    for name in ("one.click", "two.click", "notes.txt"):
        (made / name).write_text("")
    (made / "more").mkdir()
    assert sorted(complete(headrace, made, "run", "")) == ["more", "one.click", "two.click"]
    assert complete(headrace, made, "graph", "-o", "no") == ["notes.txt"]


def test_every_command_has_its_options_completed(headrace, made):
    for command in commands(headrace):
        assert "--help" in complete(headrace, made, command, "--he"), command
