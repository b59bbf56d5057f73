# DPDK: the part headrace_dpdk, and the elements FromDPDKDevice and ToDPDKDevice. Without DPDK both are left out, and a
# configuration that names one of the elements is told why.

# Classes that this build does not have, and the package that it would have taken.
set(HEADRACE_ABSENT_CLASSES "")
set(HEADRACE_ABSENT_REASON "")
set(HEADRACE_HAVE_DPDK OFF)

if(HEADRACE_DPDK)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(DPDK QUIET libdpdk>=22.11)
  endif()
  if(DPDK_FOUND)
    set(HEADRACE_HAVE_DPDK ON)
  else()
    message(STATUS "DPDK 22.11 or newer not found: FromDPDKDevice and ToDPDKDevice are left out (libdpdk-dev)")
    set(HEADRACE_ABSENT_REASON "this headrace was built without DPDK, install libdpdk-dev and build it again")
  endif()
else()
  set(HEADRACE_ABSENT_REASON "this headrace was built with HEADRACE_DPDK=OFF")
endif()
if(NOT HEADRACE_HAVE_DPDK)
  set(HEADRACE_ABSENT_CLASSES FromDPDKDevice ToDPDKDevice)
endif()

# The libraries to link. The shared ones load every driver that is installed. A static program has the drivers of
# virtual devices.
function(headrace_find_dpdk_libraries output)
  if(NOT HEADRACE_STATIC)
    # Of the many libraries of DPDK those that are called, whatever pkg-config lists.
    set(libraries "")
    foreach(name eal mempool mbuf ethdev)
      find_library(DPDK_${name}_LIBRARY rte_${name} HINTS ${DPDK_LIBRARY_DIRS} REQUIRED)
      mark_as_advanced(DPDK_${name}_LIBRARY)
      list(APPEND libraries ${DPDK_${name}_LIBRARY})
    endforeach()
    set(${output} ${libraries} PARENT_SCOPE)
    return()
  endif()

  set(archives "")
  # A driver registers itself with a constructor, which only a whole archive brings along.
  set(drivers bus_pci bus_vdev mempool_ring mempool_stack net_af_packet net_memif net_null net_pcap net_ring net_tap
              net_vhost)
  find_library(XDP_LIBRARY xdp)
  find_library(BPF_LIBRARY bpf)
  find_library(ELF_LIBRARY elf)
  mark_as_advanced(XDP_LIBRARY BPF_LIBRARY ELF_LIBRARY)
  set(system "")
  if(XDP_LIBRARY AND BPF_LIBRARY AND ELF_LIBRARY)
    list(APPEND drivers net_af_xdp)
    list(APPEND system ${XDP_LIBRARY} ${BPF_LIBRARY} ${ELF_LIBRARY})
  endif()
  foreach(name ${drivers} eal ethdev mbuf mempool ring stack kvargs telemetry pci net meter hash rcu vhost cryptodev
                          dmadev security gso ip_frag timer)
    find_library(DPDK_${name}_LIBRARY rte_${name} HINTS ${DPDK_STATIC_LIBRARY_DIRS})
    mark_as_advanced(DPDK_${name}_LIBRARY)
    if(DPDK_${name}_LIBRARY)
      list(APPEND archives ${DPDK_${name}_LIBRARY})
    elseif(name IN_LIST drivers)
      message(STATUS "DPDK: no static library of rte_${name}")
    else()
      message(FATAL_ERROR "DPDK: no static library of rte_${name} (libdpdk-dev)")
    endif()
  endforeach()
  foreach(name numa bsd md)
    find_library(DPDK_${name}_LIBRARY ${name} REQUIRED)
    mark_as_advanced(DPDK_${name}_LIBRARY)
    list(APPEND system ${DPDK_${name}_LIBRARY})
  endforeach()
  find_library(DPDK_z_LIBRARY z REQUIRED)
  mark_as_advanced(DPDK_z_LIBRARY)
  list(JOIN archives "," archives)
  list(JOIN system "," system)
  # Drivers call libpcap, libxdp calls libbpf, that libelf, that zlib: the linker looks again until all is found.
  set(${output} $<LINK_LIBRARY:WHOLE_ARCHIVE,${archives}>
                $<LINK_GROUP:RESCAN,${system},${PCAP_LIBRARY},${DBUS_LIBRARY},${DPDK_z_LIBRARY}> m PARENT_SCOPE)
endfunction()

# headrace_dpdk_library(<name> <folder>): the only sources that include DPDK's headers.
function(headrace_dpdk_library name folder)
  if(NOT HEADRACE_HAVE_DPDK)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  headrace_find_dpdk_libraries(libraries)
  headrace_add_part(${name} headrace_internal ${sources})
  # What pkg-config asks for, without its -march: that is for HEADRACE_MARCH to say. rte_dev_dma_map() is experimental.
  target_compile_options(headrace_${name} PRIVATE "SHELL:-include rte_config.h")
  target_compile_definitions(headrace_${name} PRIVATE ALLOW_EXPERIMENTAL_API)
  target_include_directories(headrace_${name} SYSTEM PRIVATE ${DPDK_INCLUDE_DIRS})
  # In front of the libraries that drivers call.
  get_target_property(others headrace_internal INTERFACE_LINK_LIBRARIES)
  set_property(TARGET headrace_internal PROPERTY INTERFACE_LINK_LIBRARIES ${libraries} ${others})
endfunction()

# headrace_absent_library(<name>): what absent_reason() of src/runtime/packages.hh looks up.
function(headrace_absent_library name)
  set(rows "")
  foreach(class IN LISTS HEADRACE_ABSENT_CLASSES)
    string(APPEND rows "  if (name == \"${class}\") return \"${HEADRACE_ABSENT_REASON}\";\n")
  endforeach()
  if(rows STREQUAL "")
    set(rows "  (void)name;\n")
  endif()
  set(output ${PROJECT_BINARY_DIR}/generated/absent.cc)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "#include \"runtime/packages.hh\"

namespace headrace {

std::string_view absent_reason(std::string_view name) {
@rows@  return {};
}

}  // namespace headrace
")
  headrace_add_part(${name} headrace_internal ${output})
endfunction()
