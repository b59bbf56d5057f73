"""headrace check, elements, flatten, and the stand-ins for Click's tools."""

import re


def test_no_command(headrace):
    assert "no command given" in headrace(status=1).stderr
    assert "unknown command 'frob'" in headrace("frob", status=1).stderr
    for word in ("run", "bench", "check", "elements", "flatten", "click"):
        assert re.search(rf"^  {word}\b", headrace("--help").stdout, re.M)
    assert re.match(r"headrace \d+\.\d+\.\d+\ncommit \w+", headrace("--version").stdout)


def test_check(headrace):
    (headrace.folder / "good.click").write_text("Idle -> Null -> Idle;\n")
    (headrace.folder / "bad.click").write_text("a :: Switch(x);\nb :: Script(frob);\nIdle -> a -> Idle;\n")
    assert headrace("check", "good.click").stdout == "good.click: 3 elements, 2 connections, no errors\n"
    assert headrace("check", "-q", "good.click").stdout == ""
    errors = headrace("check", "bad.click", status=1).stderr
    assert "bad.click:1: While configuring 'a :: Switch':" in errors
    assert "bad.click:2: While configuring 'b :: Script':" in errors
    # A script would print; checking must not run it.
    assert headrace("check", "-e", "Script(print \"ran\", stop)").stdout == "config: 1 elements, 0 connections, no errors\n"
    # A check leaves the machine alone.
    touching = "FromDevice(no-such) -> ToDump(out.pcap); ControlSocket(UNIX, sock); Idle -> ToIPSummaryDump(out.txt);"
    assert headrace("check", "-q", "-e", touching).stderr == ""
    assert not [p.name for p in headrace.folder.iterdir() if p.name in ("out.pcap", "sock", "out.txt")]
    assert "no-such: no such interface" in headrace("click", "-e", touching, status=1).stderr
    assert "must lie between 1 and" in headrace("check", "-j", "0", status=1).stderr


def test_check_knows_threads(headrace):
    text = "StaticThreadSched(s 3); s :: Script(pause);"
    assert "out of range" in headrace("check", "-e", text).stderr
    assert headrace("check", "-j", "4", "-e", text).stderr == ""


def test_table_of_elements(headrace):
    table = headrace("elements").stdout
    assert re.match(r"element +ports +mode +runs on +summary\n", table)
    assert re.search(r"^DecIPTTL +1/1-2 +a/ah +shader +Decrements the IP time-to-live", table, re.M)
    assert re.search(r"^Script +-/- +ah/ah +host +Runs a small program", table, re.M)


def test_every_element_has_a_page(headrace):
    names = [line.split()[0] for line in headrace("elements").stdout.splitlines()[1:]]
    assert names == sorted(names) and len(names) > 5
    pages = headrace("elements", *names).stdout
    assert "There is no page" not in pages


def test_page_of_an_element(headrace):
    page = headrace("elements", "Switch").stdout
    assert page.startswith("Switch\nports 1/-, processing h/h, flow x/x, runs on the host\n\n")
    assert "\n    Switch([OUTPUT])\n" in page
    assert "///" not in page


def test_unknown_element(headrace):
    assert "no element 'Swich' (did you mean 'Switch'?)" in headrace("elements", "Swich", status=1).stderr


def test_flatten(headrace, click_flatten):
    text = "elementclass C { $x | Unknown($x) -> output } C(5) -> o :: Other"
    flat = headrace("flatten", "-e", text).stdout
    assert flat == "o :: Other;\nC@1/Unknown@1 :: Unknown(5);\n\nC@1/Unknown@1 -> o;\n"
    assert click_flatten("-e", text).stdout == flat
    assert click_flatten("-c", "-e", text).stdout == "Other\nUnknown\n"
    assert click_flatten("-n", "-e", text).stdout == "C@1/Unknown@1\no\n"
    assert click_flatten("-d", "-e", text).stdout == "C@1/Unknown@1 :: Unknown\no :: Other\n"
    click_flatten("-o", "out.click", "-e", text)
    assert (click_flatten.folder / "out.click").read_text() == flat
    assert "config:1: " in click_flatten("-e", "a -> -> b", status=1).stderr


def test_buildtool(click_buildtool):
    click_buildtool("provides", "Script", "umultithread", "userlevel")
    click_buildtool("provides", "linuxmodule", status=1)
    click_buildtool("provides", "Script", "NoSuchElement", status=1)
    click_buildtool("provides", "-r", "NoSuchElement", "NoSuchElement")
    assert click_buildtool("provides", "-l", "Script").stdout == "1\n"
    assert "\nSwitch\n" in click_buildtool("provides", "-q").stdout
    assert "only 'provides'" in click_buildtool("frob", status=1).stderr
