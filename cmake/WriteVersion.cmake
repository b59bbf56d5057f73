# cmake -DSOURCE_DIR= -DOUTPUT= -DVERSION= -DCOMPILER= -DMARCH= -DBUILD_TYPE= -DSANITIZE= -P WriteVersion.cmake
# Writes the definitions of <headrace/version.hh>; leaves the file alone when nothing changed.

cmake_minimum_required(VERSION 3.25)

set(commit "unknown")
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -c safe.directory=* -C ${SOURCE_DIR} describe --always --dirty --exclude=* --abbrev=12
                  OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(commit "${answer}")
  endif()
endif()

set(build "${BUILD_TYPE}, ${COMPILER}")
if(MARCH)
  string(APPEND build ", -march=${MARCH}")
endif()
if(SANITIZE)
  string(APPEND build ", -fsanitize=${SANITIZE}")
endif()

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#include <headrace/version.hh>

namespace headrace {
const char* const kVersion = \"${VERSION}\";
const char* const kCommit = \"${commit}\";
const char* const kBuild = \"${build}\";
}  // namespace headrace
")
