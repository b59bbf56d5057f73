# Puts the text of headers into the binary (see <headrace/device/embedded.hh>). Used by this build and, once
# installed, by headrace_add_elements() of projects outside the tree.

set(HEADRACE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/EmbedHeaders.cmake)
set(HEADRACE_CHECK_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/CheckShaders.cmake)
# HeadraceConfig.cmake knows where the header is installed.
if(NOT HEADRACE_HOOKS)
  set(HEADRACE_HOOKS ${CMAKE_CURRENT_LIST_DIR}/../include/headrace/shader_hooks.hh)
endif()

# headrace_embed_headers(<output.cc> BASE <folder> [PREFIX <path>] FILES <header>...)
# Makes a rule that writes <output.cc>. A header is registered under PREFIX + its path relative to BASE.
function(headrace_embed_headers output)
  cmake_parse_arguments(arg "" "BASE;PREFIX" "FILES" ${ARGN})
  # The list goes through a file: a command line has a length limit, and a list on it needs quoting.
  set(list_file ${output}.list)
  list(JOIN arg_FILES "\n" lines)
  file(CONFIGURE OUTPUT ${list_file} CONTENT "${lines}\n" @ONLY)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DBASE=${arg_BASE} -DPREFIX=${arg_PREFIX} -DLIST=${list_file}
            -DHOOKS=${HEADRACE_HOOKS} -P ${HEADRACE_EMBED_SCRIPT}
    DEPENDS ${arg_FILES} ${list_file} ${HEADRACE_EMBED_SCRIPT} ${HEADRACE_CHECK_SCRIPT} ${HEADRACE_HOOKS}
    COMMENT "Embedding header texts" VERBATIM)
endfunction()

# headrace_embedded_library(<name>): the part with all headers of the tree that a page or a device program needs.
function(headrace_embedded_library name)
  file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/headrace/*.hh)
  file(GLOB_RECURSE tree_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/elements/*.hh
                                                   ${PROJECT_SOURCE_DIR}/tables/*_view.hh)
  set(generated ${PROJECT_BINARY_DIR}/generated)
  headrace_embed_headers(${generated}/embedded_include.cc BASE ${PROJECT_SOURCE_DIR}/include FILES ${public_headers})
  set(sources ${generated}/embedded_include.cc)
  if(tree_headers)
    headrace_embed_headers(${generated}/embedded_tree.cc BASE ${PROJECT_SOURCE_DIR} FILES ${tree_headers})
    list(APPEND sources ${generated}/embedded_tree.cc)
  endif()
  headrace_add_part(${name} headrace_headers ${sources})
  # Lets clang-tidy have the generated sources without compiling anything.
  add_custom_target(headrace_generated DEPENDS ${sources})
endfunction()
