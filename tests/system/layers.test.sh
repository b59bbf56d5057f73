#!/bin/bash
# Dependencies point one way. Each line is a folder and what its quoted includes may begin with, or name; the lines of
# single groups of elements are the exceptions to `elements/*`. HACKING.md quotes these lines. Tests (*.test.cc) are
# free.
set -euo pipefail
cd "$HEADRACE_SOURCE"

rules='
include            headrace/
tables             headrace/ tables/
src/base           headrace/ base/
src/lang           headrace/ base/ lang/
src/graph          headrace/ graph/
src/offload        headrace/ graph/ offload/
src/backend        headrace/ offload/ backend/
src/runtime        headrace/ base/ lang/ graph/ offload/ runtime/
src/io             headrace/ tables/ io/ src/io/
src/control        headrace/ tables/ base/ runtime/ control/
src/cli            headrace/ base/ lang/ offload/ runtime/ cli/ io/dpdk_arguments.hh elements/devices/Traffic
bench/device       headrace/ tables/ runtime/ backend/ io/ cli/ bench/device/
elements/*         headrace/ tables/ elements/
elements/analysis  headrace/ tables/ elements/ src/base/argument_text.hh src/io/input_file.hh
elements/control   headrace/ elements/ runtime/ control/
elements/devices   headrace/ tables/ elements/ src/io/
elements/ipsec     headrace/ tables/ elements/ src/io/linux/xfrm_
elements/openflow  headrace/ tables/ elements/ runtime/ control/
'

bad=0
complain() {
  echo "$@"
  bad=1
}

# rule_of <folder>: what it may include; empty when no line is about it.
rule_of() {
  awk -v folder="$1" '
    $1 == folder || (!found && $1 == "elements/*" && folder ~ /^elements\//) {
      found = $0; sub(/^[^ ]+ +/, "", found)
      if ($1 == folder) exit
    }
    END { print found }' <<<"$rules"
}

for folder in include tables src/*/ bench/device elements/*/; do
  folder=${folder%/}
  allowed=$(rule_of "$folder")
  [ -n "$allowed" ] || { complain "no line of this script is about $folder"; continue; }
  found=$(grep -rnE '^#include "' "$folder" --include='*.hh' --include='*.cc' | grep -v '\.test\.cc:' |
    grep -vE "#include \"(${allowed// /|})" || true)
  [ -z "$found" ] || complain "$folder may include only $allowed
$found"
done

while read -r line; do
  grep -qxF -- "$line" HACKING.md || complain "HACKING.md does not quote the rule: $line"
done < <(grep . <<<"$rules")
exit "$bad"
