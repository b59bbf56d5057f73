# cmake -DOUTPUT=<file.cc> -DBASE=<folder> -DPREFIX=<path> -DLIST=<file> -DHOOKS=<shader_hooks.hh> -P EmbedHeaders.cmake
# Writes a C++ source that registers the text of every header named in LIST (one path a line). Fails where a shader has
# a member that looks like a hook or a flag and is none.

cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/CheckShaders.cmake)

file(READ ${HOOKS} hooks_header)
string(REGEX MATCHALL "HOOK\\([a-z_]+, \"" hooks "${hooks_header}")
list(TRANSFORM hooks REPLACE "HOOK\\(([a-z_]+), \"" "\\1")
if(NOT hooks)
  message(FATAL_ERROR "${HOOKS} has no list of hooks")
endif()

file(STRINGS ${LIST} headers)
set(source "// Generated from the headers it contains; edit those.\n#include <headrace/device/embedded.hh>\n\nnamespace {\n\n")
string(APPEND source "const headrace::EmbeddedHeaders::Entry kEntries[] = {\n")
set(wrong "")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${BASE} OUTPUT_VARIABLE path)
  file(READ ${header} text)
  headrace_check_shaders(${header} "${text}" "${hooks}" messages)
  string(APPEND wrong "${messages}")
  string(APPEND source "{\"${PREFIX}${path}\", R\"_headrace_(${text})_headrace_\"},\n")
endforeach()
if(wrong)
  message(NOTICE "${wrong}")
  message(FATAL_ERROR "a shader has a member that nothing would call")
endif()
string(APPEND source "};\n\nconst headrace::EmbeddedHeaders kRegistered(kEntries);\n\n}  // namespace\n")
file(WRITE ${OUTPUT} "${source}")
