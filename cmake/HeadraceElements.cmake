# For projects outside the tree:
#
#   find_package(Headrace REQUIRED)
#   headrace_add_elements(TARGET mine FILES Reverse.hh Meter.hh Meter.cc)
#
# makes the loadable module mine.so with the elements Reverse and Meter. A header without a source of the same name gets a
# generated one, and the text of every header is embedded, as for elements of the tree.

function(headrace_add_elements)
  cmake_parse_arguments(arg "" "TARGET" "FILES" ${ARGN})
  if(NOT arg_TARGET OR NOT arg_FILES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "usage: headrace_add_elements(TARGET <name> FILES <a.hh> [b.cc ...])")
  endif()

  set(headers "")
  set(sources "")
  foreach(file IN LISTS arg_FILES)
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "headrace_add_elements(${arg_TARGET}): there is no file ${file}")
    endif()
    cmake_path(GET file EXTENSION LAST_ONLY extension)
    if(extension STREQUAL ".hh")
      list(APPEND headers ${file})
    else()
      list(APPEND sources ${file})
    endif()
  endforeach()

  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}.generated)
  set(made "")
  foreach(header IN LISTS headers)
    cmake_path(REPLACE_EXTENSION header LAST_ONLY .cc OUTPUT_VARIABLE source)
    cmake_path(GET header STEM LAST_ONLY stem)
    if(NOT source IN_LIST sources AND stem MATCHES "^[A-Z]")
      file(CONFIGURE OUTPUT ${generated}/${stem}.cc CONTENT "#include \"${header}\"\n" @ONLY)
      list(APPEND made ${generated}/${stem}.cc)
    endif()
  endforeach()
  if(headers)
    headrace_embed_headers(${generated}/embedded.cc BASE ${CMAKE_CURRENT_SOURCE_DIR} PREFIX elements/${arg_TARGET}/
                           FILES ${headers})
    list(APPEND made ${generated}/embedded.cc)
  endif()

  add_library(${arg_TARGET} MODULE ${sources} ${made})
  target_link_libraries(${arg_TARGET} PRIVATE Headrace::sdk)
  set_target_properties(${arg_TARGET} PROPERTIES PREFIX "" CXX_STANDARD_REQUIRED ON)
endfunction()
