# What `make install` puts where. Below PREFIX:
#   bin/headrace
#   include/headrace/*.hh, include/headrace/tables/<kind>/*.hh   what an element includes
#   lib/cmake/Headrace                                            find_package(Headrace), headrace_add_elements()
#   share/headrace/conf                                           configurations and their data
#   share/doc/headrace, share/man/man1

include(CMakePackageConfigHelpers)

function(headrace_install)
  set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Headrace)
  set(data_dir ${CMAKE_INSTALL_DATADIR}/headrace)
  set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/headrace)

  # What an element outside the tree is compiled with: the headers, and what keeps its code binary compatible with the
  # executable that loads it.
  add_library(headrace_sdk INTERFACE)
  set_target_properties(headrace_sdk PROPERTIES EXPORT_NAME sdk)
  target_include_directories(headrace_sdk INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/headrace>)
  target_compile_features(headrace_sdk INTERFACE cxx_std_20)
  target_compile_options(headrace_sdk INTERFACE ${HEADRACE_ABI_OPTIONS})
  target_link_libraries(headrace_sdk INTERFACE ${HEADRACE_FMT} Threads::Threads)

  install(TARGETS headrace headrace_sdk EXPORT HeadraceTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(EXPORT HeadraceTargets NAMESPACE Headrace:: DESTINATION ${config_dir})
  configure_package_config_file(cmake/HeadraceConfig.cmake.in ${PROJECT_BINARY_DIR}/HeadraceConfig.cmake
                                INSTALL_DESTINATION ${config_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/HeadraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/HeadraceConfig.cmake ${PROJECT_BINARY_DIR}/HeadraceConfigVersion.cmake
                cmake/HeadraceEmbed.cmake cmake/HeadraceElements.cmake cmake/EmbedHeaders.cmake
          DESTINATION ${config_dir})

  install(DIRECTORY include/headrace TYPE INCLUDE FILES_MATCHING PATTERN "*.hh")
  install(DIRECTORY tables DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headrace FILES_MATCHING PATTERN "*.hh")
  install(DIRECTORY conf DESTINATION ${data_dir})
  install(FILES README.md HACKING.md LICENSE NOTICE DESTINATION ${doc_dir})
  if(EXISTS ${PROJECT_SOURCE_DIR}/docs)
    install(DIRECTORY docs/ DESTINATION ${doc_dir} FILES_MATCHING PATTERN "*.md")
  endif()
  file(GLOB man_pages CONFIGURE_DEPENDS docs/*.1)
  if(man_pages)
    install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endfunction()
