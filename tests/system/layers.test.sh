#!/bin/bash
# Dependencies point one way: cli -> control -> runtime -> offload -> graph -> lang; backends see offload; and elements and tables see only include/ (and
# each other's helpers). Some groups are the faces of a part of src/: elements/io, elements/userlevel and elements/analysis of
# src/io, elements/control of src/control. The text formats of elements/analysis quote as the configuration language does.
set -euo pipefail
cd "$HEADRACE_SOURCE"

bad=0
# layer <folder> <allowed first parts of a quoted include, as a regular expression>
layer() {
  local found
  [ -d "$1" ] || return 0
  found=$(grep -rnE '^#include "' "$1" --include='*.hh' --include='*.cc' | grep -v '\.test\.cc:' |
    grep -vE "#include \"($2)" || true)
  if [ -n "$found" ]; then
    echo "$1 may include only: $2"
    echo "$found"
    bad=1
  fi
}

layer include 'headrace/'
layer tables 'headrace/|tables/'
layer src/lang 'headrace/|lang/'
layer src/graph 'headrace/|lang/|graph/'
layer src/offload 'headrace/|graph/|offload/'
layer src/backend 'headrace/|offload/|backend/'
layer src/runtime 'headrace/|tables/|lang/|graph/|offload/|runtime/'
layer src/control 'headrace/|tables/|lang/|graph/|runtime/|control/|elements/control/'
layer src/io 'headrace/|tables/|src/io/|io/'
for group in elements/*/; do
  case $group in
    elements/control/) layer "$group" 'headrace/|tables/|elements/|src/control/|control/' ;;
    elements/io/ | elements/userlevel/) layer "$group" 'headrace/|tables/|elements/|src/io/' ;;
    elements/analysis/) layer "$group" 'headrace/|tables/|elements/|src/io/|src/lang/argument_text.hh' ;;
    *) layer "$group" 'headrace/|tables/|elements/' ;;
  esac
done
exit "$bad"
