#!/bin/bash
# An installation is complete: the installed binary runs without the source tree, and an element written outside of it is
# built against the installed headers, loaded, shown and run.
set -euo pipefail

if [ ! -x "$HEADRACE" ]; then echo "no binary at $HEADRACE"; exit 77; fi
if grep -q '^HEADRACE_SANITIZE:STRING=.\+' "$HEADRACE_BUILD/CMakeCache.txt"; then
  echo "a binary with sanitizers is not for installing"
  exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/usr

fail() {
  echo "install.test.sh: $*" >&2
  exit 1
}
# expect <text> <file>: the file has the text.
expect() { grep -qF -- "$1" "$2" || { cat "$2"; fail "'$1' is missing in the output above"; }; }

cmake --install "$HEADRACE_BUILD" --prefix "$prefix" >"$scratch/install.log" || { cat "$scratch/install.log"; exit 1; }
for file in bin/headrace include/headrace/shader.hh include/headrace/tables/lpm4/lpm4_view.hh \
  share/man/man1/headrace.1 share/bash-completion/completions/headrace \
  share/headrace/conf/data/bgp-full-ipv4.txt.xz share/doc/headrace/LICENSE share/doc/headrace/NOTICE; do
  [ -e "$prefix/$file" ] || fail "$file was not installed"
done
"$prefix/bin/headrace" balance --simulate elephant --seconds 0.05 >"$scratch/machine.txt" ||
  { cat "$scratch/machine.txt"; fail "an installed machine was not simulated"; }
if "$prefix/bin/headrace" balance --simulate elefant 2>"$scratch/machine.txt" ||
  ! grep -q "elefant: cannot be read; installed are .*, elephant, .*" "$scratch/machine.txt"; then
  cat "$scratch/machine.txt"
  fail "the installed machines were not named"
fi
if grep -rlF "$HEADRACE_SOURCE" "$prefix" --include='*.cmake' --include='*.hh'; then
  fail "the files above name the source tree"
fi

# What the installed pages link to is installed, too.
links() { sed '/^```/,/^```$/d' "$1" | grep -oE '\]\([^)[:space:]]+\)' | sed 's/^](//; s/)$//; s/#.*//' | grep -v '://' | sort -u; }
pages=$(find "$prefix/share/doc/headrace" -name '*.md')
walked=0
for page in $pages; do
  for target in $(links "$page" || true); do
    [ -e "$(dirname "$page")/$target" ] || fail "dead link in ${page#"$prefix/"}: $target"
    walked=$((walked + 1))
  done
done
[ "$walked" -ge 15 ] || fail "only $walked links found in the installed pages"

# An installed configuration is found by its name; one in the current folder comes first.
mkdir "$scratch/elsewhere"
cd "$scratch/elsewhere"
"$prefix/bin/headrace" run ids.click -r alerted.count >ids.txt 2>&1 || { cat ids.txt; fail "ids.click was not found"; }
expect "$prefix/share/headrace/conf/ids.click" ids.txt
expect '"event_type":"alert"' ids.txt
echo 'Idle -> Stripp(14) -> Discard;' >ids.click
if "$prefix/bin/headrace" check ids.click >ids.txt 2>&1; then fail "ids.click of the current folder was passed over"; fi
expect "ids.click:1: undeclared element 'Stripp'" ids.txt
if "$prefix/bin/headrace" run none.click >none.txt 2>&1; then fail "a configuration that is not there was run"; fi
expect "none.click: No such file or directory, neither in the current folder nor in $prefix/share/headrace/conf" none.txt
# A name with a folder means that file and no other.
if "$prefix/bin/headrace" run ./bridge.click >none.txt 2>&1; then fail "./bridge.click is not there"; fi
grep -qxF './bridge.click: No such file or directory' none.txt || { cat none.txt; fail "./bridge.click was looked for elsewhere"; }

if [ -x "$HEADRACE_SOURCE/tools/uninstall" ] && [ "$HEADRACE_BUILD" = "$HEADRACE_SOURCE/build" ]; then
  cmake --install "$HEADRACE_BUILD" --prefix "$scratch/gone" >"$scratch/install.log"
  "$HEADRACE_SOURCE/tools/uninstall" "$scratch/gone" >"$scratch/uninstall.log" || { cat "$scratch/uninstall.log"; fail "uninstall"; }
  left=$(find "$scratch/gone" -type f -o -type l)
  [ -z "$left" ] || fail "left behind by make uninstall: $left"
fi

cd "$scratch"
cmake -S "$HEADRACE_SOURCE/tests/system/module" -B module -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  >module.log 2>&1 || { cat module.log; fail "the module does not configure"; }
cmake --build module >module.log 2>&1 || { cat module.log; fail "the module does not build"; }

"$prefix/bin/headrace" elements --package example --clickpath "$scratch/module" SetIPTTL >page.txt
expect "Sets the time to live of IPv4 packets." page.txt

cat >run.click <<'CONF'
require(example);
// A UDP packet from 1.0.0.1 to 2.0.0.2 whose time to live is 17, with a good checksum.
InfiniteSource(DATA \<4500 001c 0000 0000 1111 a6cf 0100 0001 0200 0002  0400 0400 0008 0000>, LIMIT 1, STOP true)
  -> CheckIPHeader
  -> SetIPTTL(200)
  -> CheckIPHeader
  -> Print(MAXLENGTH 28, CONTENTS HEX)
  -> Discard;
CONF
HEADRACE_PATH=$scratch/module "$prefix/bin/headrace" click run.click >run.txt 2>&1 || { cat run.txt; fail "run failed"; }
# The TTL beside the protocol, then the repaired checksum, which CheckIPHeader found good.
expect "4500001c 00000000 c811efce 01000001 02000002" run.txt

# Its header came with the module, so it becomes part of the compiled chain.
sed 's/LIMIT 1/LIMIT 2, BURST 2/' run.click >pair.click
export XDG_CACHE_HOME=$scratch/cache
HEADRACE_PATH=$scratch/module "$prefix/bin/headrace" run -w 1 --compile wait pair.click >pair.txt 2>&1 || { cat pair.txt; fail "run failed"; }
expect "chains: compiled: " pair.txt
[ "$(grep -cF "4500001c 00000000 c811efce 01000001 02000002" pair.txt)" = 2 ] || { cat pair.txt; fail "two packets were expected"; }
HEADRACE_PATH=$scratch/module "$prefix/bin/headrace" check -q pair.click --program pair.cc
expect "SetIPTTL.hh" pair.cc

# Without its header it does the same, outside of the program, and a line says so.
mkdir headless
mapfile -t objects < <(find module -name '*.o' ! -name '*embed*')
c++ -shared -o headless/example.so "${objects[@]}"
HEADRACE_PATH=$scratch/headless "$prefix/bin/headrace" run -w 1 --compile wait pair.click >headless.txt 2>&1 ||
  { cat headless.txt; fail "run failed"; }
grep -qE '^chains: compiled: .*, but for SetIPTTL: no header came with it$' headless.txt || { cat headless.txt; fail "no line about SetIPTTL"; }
[ "$(grep -cF "4500001c 00000000 c811efce 01000001 02000002" headless.txt)" = 2 ] || { cat headless.txt; fail "two packets were expected"; }

# Chains that came with an installation, as in the package, serve where there is no compiler.
mkdir shipped
cp pair.click shipped/
HEADRACE_PATH=$scratch/module cmake -DHEADRACE="$prefix/bin/headrace" -DCONF="$scratch/shipped" -DMARCH=x86-64-v2 \
  -DOUTPUT="$prefix/lib/headrace/chains" -P "$HEADRACE_SOURCE/cmake/CompileConf.cmake" >shipped.log 2>&1 ||
  { cat shipped.log; fail "the chains of a folder are not compiled"; }
export XDG_CACHE_HOME=$scratch/none HEADRACE_CXX=/nonexistent
HEADRACE_PATH=$scratch/module "$prefix/bin/headrace" run -w 1 --compile wait pair.click >shipped.txt 2>&1 ||
  { cat shipped.txt; fail "run failed"; }
expect "chains: compiled: $prefix/lib/headrace/chains/" shipped.txt
unset XDG_CACHE_HOME HEADRACE_CXX

echo 'require(example); InfiniteSource(LIMIT 1) -> SetIPTTL(0) -> Discard;' >wrong.click
if HEADRACE_PATH=$scratch/module "$prefix/bin/headrace" check wrong.click >wrong.txt 2>&1; then
  fail "SetIPTTL(0) was taken"
fi
expect "SetIPTTL" wrong.txt

# A misspelt hook does not build.
cp -r "$HEADRACE_SOURCE/tests/system/module" misspelt-source
sed -i '/^struct SetIPTTL/a void add_handler(Handlers\& handlers);' misspelt-source/SetIPTTL.hh
cmake -S misspelt-source -B misspelt -DCMAKE_PREFIX_PATH="$prefix" >misspelt.log 2>&1 ||
  { cat misspelt.log; fail "the misspelt module does not configure"; }
if cmake --build misspelt >misspelt.log 2>&1; then fail "a misspelt hook was built"; fi
expect "SetIPTTL.hh:13: error: 'add_handler' is not a hook of a shader" misspelt.log
