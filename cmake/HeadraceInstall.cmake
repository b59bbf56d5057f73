# What `make install` puts where. Below PREFIX:
#   bin/headrace
#   include/headrace/, include/headrace/tables/<kind>/            what an element includes
#   lib/cmake/Headrace                                            find_package(Headrace), headrace_add_elements()
#   lib/headrace/chains                                           their chains, compiled (HEADRACE_COMPILE_CONF)
#   share/headrace/conf                                           configurations and their data
#   share/headrace/machines                                       machines for `headrace balance --simulate`
#   share/doc/headrace, share/man/man1/headrace.1, share/bash-completion/completions/headrace

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

  install(TARGETS headrace headrace_sdk EXPORT HeadraceTargets
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT router)
  install(EXPORT HeadraceTargets NAMESPACE Headrace:: DESTINATION ${config_dir} COMPONENT dev)
  configure_package_config_file(cmake/HeadraceConfig.cmake.in ${PROJECT_BINARY_DIR}/HeadraceConfig.cmake
                                INSTALL_DESTINATION ${config_dir} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/HeadraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/HeadraceConfig.cmake ${PROJECT_BINARY_DIR}/HeadraceConfigVersion.cmake
                cmake/HeadraceEmbed.cmake cmake/HeadraceElements.cmake cmake/EmbedHeaders.cmake
                cmake/CheckShaders.cmake
          DESTINATION ${config_dir} COMPONENT dev)

  install(DIRECTORY include/headrace TYPE INCLUDE COMPONENT dev FILES_MATCHING PATTERN "*.hh")
  install(DIRECTORY tables DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headrace COMPONENT dev FILES_MATCHING PATTERN "*.hh")
  install(DIRECTORY conf DESTINATION ${data_dir} COMPONENT router)
  install(DIRECTORY bench/machines DESTINATION ${data_dir} COMPONENT router)
  install(FILES README.md HACKING.md LICENSE NOTICE DESTINATION ${doc_dir} COMPONENT router)
  # The pages keep their places relative to each other, so that their links hold.
  install(DIRECTORY docs DESTINATION ${doc_dir} COMPONENT router FILES_MATCHING PATTERN "*.md")
  install(FILES bench/README.md DESTINATION ${doc_dir}/bench COMPONENT router)
  install(FILES bench/peers/README.md DESTINATION ${doc_dir}/bench/peers COMPONENT router)
  install(DIRECTORY bench/results DESTINATION ${doc_dir}/bench COMPONENT router)
  install(FILES tests/peer/README.md DESTINATION ${doc_dir}/tests/peer COMPONENT router)

  # The man page and the completion for bash are made from the help texts, so the executable prints them.
  if(NOT CMAKE_CROSSCOMPILING)
    set(made_dir ${PROJECT_BINARY_DIR}/help)
    file(MAKE_DIRECTORY ${made_dir})
    add_custom_command(TARGET headrace POST_BUILD
      COMMAND headrace --man > ${made_dir}/headrace.1
      COMMAND headrace --bash-completion > ${made_dir}/headrace.bash
      BYPRODUCTS ${made_dir}/headrace.1 ${made_dir}/headrace.bash
      VERBATIM)
    install(FILES ${made_dir}/headrace.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT router)
    install(FILES ${made_dir}/headrace.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
            RENAME headrace COMPONENT router)
    if(HEADRACE_COMPILE_CONF)
      add_custom_command(TARGET headrace POST_BUILD
        COMMAND ${CMAKE_COMMAND} -DHEADRACE=$<TARGET_FILE:headrace> -DCONF=${PROJECT_SOURCE_DIR}/conf
                -DMARCH=${HEADRACE_MARCH} -DOUTPUT=${PROJECT_BINARY_DIR}/chains
                -P ${PROJECT_SOURCE_DIR}/cmake/CompileConf.cmake
        COMMENT "Compiling the chains of conf/" VERBATIM)
      # Where the executable looks for them.
      install(DIRECTORY ${PROJECT_BINARY_DIR}/chains DESTINATION lib/headrace COMPONENT router)
    endif()
  endif()
endfunction()
