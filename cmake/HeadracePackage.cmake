# `make deb`: two Debian packages. headrace has what a router needs, with units for systemd; headrace-dev has what elements
# outside the tree are built with.

function(headrace_package)
  # Packages only: units name /usr/bin/headrace, and `make install` keeps its hands off the machine's services.
  install(FILES packaging/headrace.service packaging/headrace@.service DESTINATION lib/systemd/system
          COMPONENT service EXCLUDE_FROM_ALL)
  install(PROGRAMS packaging/headrace-generator DESTINATION lib/systemd/system-generators
          COMPONENT service EXCLUDE_FROM_ALL)
  install(DIRECTORY DESTINATION /etc/headrace COMPONENT service EXCLUDE_FROM_ALL)

  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME headrace)
  set(CPACK_PACKAGE_CONTACT "Headrace maintainers <maintainers@headrace.invalid>")
  set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
  set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/GzipManPages.cmake)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  set(CPACK_COMPONENTS_ALL router service dev)
  set(CPACK_COMPONENT_ROUTER_GROUP headrace)
  set(CPACK_COMPONENT_SERVICE_GROUP headrace)
  set(CPACK_COMPONENT_DEV_GROUP dev)
  set(CPACK_DEBIAN_HEADRACE_DESCRIPTION "Software router for Click-language configurations
 A router runs a configuration of elements on every core and, where there is
 one, on a GPU. systemd runs each configuration of /etc/headrace.")
  set(CPACK_DEBIAN_DEV_DESCRIPTION "Headers for elements of the software router Headrace
 Elements are built outside of its source tree and loaded at run time.")

  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION net)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_HEADRACE_PACKAGE_NAME headrace)
  # Drivers of network cards are plug-ins that nothing links.
  set(CPACK_DEBIAN_HEADRACE_PACKAGE_RECOMMENDS librte-meta-net)
  set(CPACK_DEBIAN_HEADRACE_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/preinst
                                                  ${PROJECT_SOURCE_DIR}/packaging/postinst
                                                  ${PROJECT_SOURCE_DIR}/packaging/prerm
                                                  ${PROJECT_SOURCE_DIR}/packaging/postrm)
  set(CPACK_DEBIAN_DEV_PACKAGE_NAME headrace-dev)
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "headrace (= ${PROJECT_VERSION}), libfmt-dev")
  set(CPACK_DEBIAN_DEV_PACKAGE_SECTION devel)
  include(CPack)
endfunction()
