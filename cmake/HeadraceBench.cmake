# bench/micro: Google Benchmark programs over the parts, one binary.

find_package(benchmark QUIET)
file(GLOB_RECURSE micro CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/micro/*.cc)
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark not found: bench/micro is left out (libbenchmark-dev)")
elseif(micro)
  add_executable(headrace_micro ${micro})
  target_link_libraries(headrace_micro PRIVATE ${headrace_parts} headrace_internal benchmark::benchmark_main)
  set_target_properties(headrace_micro PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endif()
