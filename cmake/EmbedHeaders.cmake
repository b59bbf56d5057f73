# cmake -DOUTPUT=<file.cc> -DBASE=<folder> -DPREFIX=<path> -DLIST=<file> -P EmbedHeaders.cmake
# Writes a C++ source that registers the text of every header named in LIST (one path a line).

cmake_minimum_required(VERSION 3.25)

file(STRINGS ${LIST} headers)
set(source "// Generated from the headers it contains; edit those.\n#include <headrace/embedded.hh>\n\nnamespace {\n\n")
string(APPEND source "const headrace::EmbeddedHeaders::Entry kEntries[] = {\n")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${BASE} OUTPUT_VARIABLE path)
  file(READ ${header} text)
  string(APPEND source "{\"${PREFIX}${path}\", R\"_headrace_(${text})_headrace_\"},\n")
endforeach()
string(APPEND source "};\n\nconst headrace::EmbeddedHeaders kRegistered(kEntries);\n\n}  // namespace\n")
file(WRITE ${OUTPUT} "${source}")
