# Third-party libraries, and the functions that make a part of Headrace from a folder.
#
# Every part is an OBJECT library: elements register themselves with static objects, which a linker would leave out of
# an archive. A folder without sources is skipped, and a new file needs no edit here.

set(HEADRACE_FMT fmt::fmt)
if(HEADRACE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  # Debian and Ubuntu package fmt as a shared library only.
  set(HEADRACE_FMT fmt::fmt-header-only)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(BZip2 REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
mark_as_advanced(ZSTD_INCLUDE_DIR ZSTD_LIBRARY)
find_path(PCAP_INCLUDE_DIR pcap/pcap.h REQUIRED)
find_library(PCAP_LIBRARY pcap REQUIRED)
# Network interfaces: <netlink/...>; Debian has these headers in a folder of their own.
find_path(NL_INCLUDE_DIR netlink/netlink.h PATH_SUFFIXES libnl3 REQUIRED)
find_library(NL_LIBRARY nl-3 REQUIRED)
find_library(NL_ROUTE_LIBRARY nl-route-3 REQUIRED)
mark_as_advanced(NL_INCLUDE_DIR NL_LIBRARY NL_ROUTE_LIBRARY)
# Pattern matching: <hs/hs.h> of Vectorscan, <pcre2.h>; both lie in the compiler's own folder.
find_path(HS_INCLUDE_DIR hs/hs.h REQUIRED)
find_library(HS_LIBRARY hs REQUIRED)
find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
# Cryptography: <intel-ipsec-mb.h>.
find_path(IPSEC_MB_INCLUDE_DIR intel-ipsec-mb.h REQUIRED)
find_library(IPSEC_MB_LIBRARY IPSec_MB REQUIRED)
set(OPENSSL_USE_STATIC_LIBS ${HEADRACE_STATIC})
find_package(OpenSSL REQUIRED)
mark_as_advanced(PCAP_INCLUDE_DIR PCAP_LIBRARY HS_INCLUDE_DIR HS_LIBRARY PCRE2_INCLUDE_DIR PCRE2_LIBRARY
                 IPSEC_MB_INCLUDE_DIR IPSEC_MB_LIBRARY)
set(HEADRACE_PCAP ${PCAP_LIBRARY})
if(HEADRACE_STATIC)
  find_library(DBUS_LIBRARY dbus-1 REQUIRED)
  mark_as_advanced(DBUS_LIBRARY)
  add_library(headrace_static_pcap STATIC ${CMAKE_CURRENT_LIST_DIR}/static_pcap.cc)
  list(APPEND HEADRACE_PCAP ${DBUS_LIBRARY} headrace_static_pcap)
endif()

# What an element author sees: include/ for <headrace/...>, the root for "tables/...".
add_library(headrace_headers INTERFACE)
target_include_directories(headrace_headers INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_features(headrace_headers INTERFACE cxx_std_20)
target_link_libraries(headrace_headers INTERFACE headrace_options ${HEADRACE_FMT} Threads::Threads)

# What the parts below src/ see besides.
add_library(headrace_internal INTERFACE)
target_include_directories(headrace_internal INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(headrace_internal INTERFACE headrace_headers CLI11::CLI11 nlohmann_json::nlohmann_json
                                                  ZLIB::ZLIB LibLZMA::LibLZMA BZip2::BZip2 ${ZSTD_LIBRARY}
                                                  ${HEADRACE_PCAP} ${NL_ROUTE_LIBRARY} ${NL_LIBRARY} ${HS_LIBRARY} ${PCRE2_LIBRARY} ${IPSEC_MB_LIBRARY} OpenSSL::SSL ${CMAKE_DL_LIBS})
target_include_directories(headrace_internal SYSTEM INTERFACE ${PCAP_INCLUDE_DIR})

include(HeadraceDpdk)

# headrace_library(<name> <folder> [INTERNAL] [ONLY <file>...] [EXCLUDE <file or folder>...])
# The part headrace_<name> from the sources below <folder>, or from the files ONLY. INTERNAL parts may include other headers
# of src/.
function(headrace_library name folder)
  cmake_parse_arguments(arg "INTERNAL" "" "ONLY;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  if(arg_ONLY)
    set(sources ${arg_ONLY})
    list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
  endif()
  list(FILTER sources EXCLUDE REGEX "\\.test\\.cc$")
  foreach(file IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${file}(/|$)")
  endforeach()
  if(NOT sources)
    return()
  endif()
  if(arg_INTERNAL)
    headrace_add_part(${name} headrace_internal ${sources})
  else()
    headrace_add_part(${name} headrace_headers ${sources})
  endif()
endfunction()

# headrace_element_library(<name> <folder> [INTERNAL] [EXCLUDE <group>...])
# Like headrace_library for <folder>/<group>/Name.hh: an element without a Name.cc gets a generated one that includes
# the header. Classes in HEADRACE_ABSENT_CLASSES are left out.
function(headrace_element_library name folder)
  cmake_parse_arguments(arg "INTERNAL" "" "EXCLUDE" ${ARGN})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.hh)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "\\.test\\.cc$")
  foreach(group IN LISTS arg_EXCLUDE)
    list(FILTER headers EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${group}/")
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${group}/")
  endforeach()
  foreach(class IN LISTS HEADRACE_ABSENT_CLASSES)
    list(FILTER headers EXCLUDE REGEX "/${class}\\.hh$")
    list(FILTER sources EXCLUDE REGEX "/${class}\\.cc$")
  endforeach()
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.hh$" ".cc" source ${header})
    cmake_path(GET header STEM stem)
    # An element file begins with a capital letter; other headers are helpers shared within a group.
    if(NOT source IN_LIST sources AND stem MATCHES "^[A-Z]")
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE generated)
      set(generated ${PROJECT_BINARY_DIR}/generated/${generated})
      file(CONFIGURE OUTPUT ${generated} CONTENT "#include \"${path}\"\n" @ONLY)
      list(APPEND sources ${generated})
    endif()
  endforeach()
  if(sources AND arg_INTERNAL)
    headrace_add_part(${name} headrace_internal ${sources})
  elseif(sources)
    headrace_add_part(${name} headrace_headers ${sources})
  endif()
endfunction()

# headrace_add_part(<name> <usage> <sources>...): the object library headrace_<name>, linked into every program.
function(headrace_add_part name usage)
  add_library(headrace_${name} OBJECT ${ARGN})
  target_link_libraries(headrace_${name} PRIVATE ${usage})
  headrace_unite(headrace_${name} ${ARGN})
  list(LENGTH ARGN count)
  if(count GREATER 8)  # making the header costs what it saves in two or three files
    headrace_precompile(headrace_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY HEADRACE_PARTS headrace_${name})
endfunction()

# headrace_version_library(<name>): the values of <headrace/version.hh>. The commit is asked for in every build; the
# file changes, and is compiled again, only with the answer.
function(headrace_version_library name)
  set(output ${PROJECT_BINARY_DIR}/generated/version.cc)
  add_custom_target(headrace_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} -DVERSION=${PROJECT_VERSION}
            "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DMARCH=${HEADRACE_MARCH}
            "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" "-DSANITIZE=${HEADRACE_SANITIZE}"
            -P ${PROJECT_SOURCE_DIR}/cmake/WriteVersion.cmake
    BYPRODUCTS ${output} COMMENT "" VERBATIM)
  headrace_add_part(${name} headrace_headers ${output})
  add_dependencies(headrace_${name} headrace_commit)
endfunction()
