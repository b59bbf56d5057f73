# Options of the build, and what they mean for the compiler.

set(HEADRACE_MARCH "native" CACHE STRING "The value of -march; empty leaves the compiler's default")
set(HEADRACE_SANITIZE "" CACHE STRING "The value of -fsanitize for everything: address,undefined or thread")
option(HEADRACE_WERROR "Treat compiler warnings as errors" ON)
option(HEADRACE_TESTS "Build headrace_tests" ON)
set(HEADRACE_TESTS_CONTAINING "" CACHE STRING "Only the tests in whose source this regular expression is found; empty: all")
option(HEADRACE_TESTS_IN_BINARY "Link the unit tests into the headrace executable (`headrace selftest`)" OFF)
option(HEADRACE_COMPILE_CONF "Compile the chains of conf/, for machines without a compiler" OFF)
option(HEADRACE_FUZZ "Build the libFuzzer targets of tests/fuzz (clang only)" OFF)
option(HEADRACE_BENCH "Build bench/micro when Google Benchmark is installed" OFF)
set(HEADRACE_PCH "" CACHE STRING "Targets that use precompiled headers: tests, all, or empty")
option(HEADRACE_UNITY "Compile the sources of a folder together, ten at a time" OFF)
option(HEADRACE_STATIC "Link every library but glibc statically" OFF)
option(HEADRACE_DPDK "Build FromDPDKDevice and ToDPDKDevice when DPDK is installed" ON)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  if(HEADRACE_PCH)
    # ccache compares a precompiled header's bytes, and wants to be told that this is enough.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  endif()
endif()

# What shapes the binary interface between headrace and an element built outside the tree: both sides use it.
set(HEADRACE_ABI_OPTIONS "")
if(HEADRACE_MARCH)
  list(APPEND HEADRACE_ABI_OPTIONS -march=${HEADRACE_MARCH})
endif()

add_library(headrace_options INTERFACE)
target_compile_options(headrace_options INTERFACE -Wall -Wextra ${HEADRACE_ABI_OPTIONS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What GCC guesses about arrays filled in a loop depends on its version, its optimization level and its sanitizers. The
  # sanitizer builds and clang look for the real thing.
  target_compile_options(headrace_options INTERFACE -Wno-maybe-uninitialized)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns about overlapping copies inside std::string's operator+ that cannot happen (GCC bug 105651).
    target_compile_options(headrace_options INTERFACE -Wno-restrict)
  endif()
endif()
if(HEADRACE_WERROR)
  target_compile_options(headrace_options INTERFACE -Werror)
endif()
# Else a change anywhere moves the loops of all elements within their cache lines, which made routers 4 % faster or slower.
target_compile_options(headrace_options INTERFACE "$<$<CONFIG:Release>:-falign-functions=64;-falign-loops=32>")
# For no processor in particular, GCC copies by 16 bytes. All that have AVX2 copy by 32 as fast.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12 AND HEADRACE_MARCH MATCHES "^x86-64-v[34]$")
  target_compile_options(headrace_options INTERFACE -mmove-max=256 -mstore-max=256)
endif()
target_link_options(headrace_options INTERFACE -Wl,--as-needed)

if(HEADRACE_SANITIZE)
  set(sanitize -fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer)
  if(HEADRACE_SANITIZE MATCHES "undefined")
    list(APPEND sanitize -fno-sanitize-recover=all)
    if(HEADRACE_SANITIZE MATCHES "address")
      # AddressSanitizer sees the accesses that these warn of, and they take a third of the time to compile.
      list(APPEND sanitize -fno-sanitize=null,object-size,pointer-overflow,vptr)
    endif()
  endif()
  target_compile_options(headrace_options INTERFACE ${sanitize})
  target_link_options(headrace_options INTERFACE ${sanitize})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    if(HEADRACE_SANITIZE MATCHES "address")
      # AddressSanitizer makes its checks by calls in functions of more accesses than this, by default 7000. A chain of
      # shaders is one such function, which takes half a minute to compile.
      target_compile_options(headrace_options INTERFACE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=2000")
    endif()
    # The newer pass looks for the places of variables even where there are none to describe, as with -g1.
    include(CheckCXXCompilerFlag)
    check_cxx_compiler_flag("-mllvm -experimental-debug-variable-locations=0" HEADRACE_HAVE_VARIABLE_LOCATIONS)
    if(HEADRACE_HAVE_VARIABLE_LOCATIONS)
      target_compile_options(headrace_options INTERFACE "SHELL:-mllvm -experimental-debug-variable-locations=0")
    endif()
  endif()
  find_program(MOLD_PROGRAM mold)
  mark_as_advanced(MOLD_PROGRAM)
  if(MOLD_PROGRAM)
    # A dozen large binaries that are built only to be run once: the faster linker.
    target_link_options(headrace_options INTERFACE -fuse-ld=mold)
  endif()
endif()

if(HEADRACE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HEADRACE_FUZZ needs clang, the compiler here is ${CMAKE_CXX_COMPILER_ID}: use `cmake --preset asan`")
  endif()
  # A fuzz target's way through the code is looked at: not through the tests, and others that no target calls.
  define_property(TARGET PROPERTY HEADRACE_FUZZED BRIEF_DOCS "Whether fuzz targets call it; unset: yes")
  target_compile_options(headrace_options INTERFACE
                         $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:HEADRACE_FUZZED>,OFF>>:-fsanitize=fuzzer-no-link>)
  target_link_options(headrace_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# headrace_precompile(<target> [HEADER...]): has the system's headers that most files include, and HEADER, read once.
# Headers of the tree are not among them, except in HEADER: a change in one rebuilds who includes it, no more.
function(headrace_precompile target)
  if(HEADRACE_PCH STREQUAL "all" OR (HEADRACE_PCH STREQUAL "tests" AND target MATCHES "_test"))
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cstdint> <cstring>
      <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <random> <span> <sstream> <string>
      <string_view> <thread> <tuple> <type_traits> <unordered_map> <utility> <variant> <vector> <fmt/format.h> ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      # The time of day in it would make every one a new one for ccache.
      target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
endfunction()

# headrace_unite(<target> <source>...): has some ten sources of a folder compiled as one, which takes half of the time.
# The hash of its name puts a source into a group, so that a new one does not move the others (ccache). Names in an
# anonymous namespace must therefore differ within a folder. The presets debug and tidy compile each source by itself and
# so show an include that is missing.
function(headrace_unite target)
  list(LENGTH ARGN count)
  if(NOT HEADRACE_UNITY OR count LESS 4)
    return()
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    # A power of two, which changes only when the folder has doubled.
    list(LENGTH sources_${folder} count)
    set(groups 1)
    while(count GREATER 12)
      math(EXPR groups "${groups} * 2")
      math(EXPR count "${count} / 2")
    endwhile()
    foreach(source IN LISTS sources_${folder})
      cmake_path(GET source FILENAME name)
      string(MD5 hash ${name})
      string(SUBSTRING ${hash} 0 6 hash)
      math(EXPR group "0x${hash} % ${groups}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes what is not in the file that it was given for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
