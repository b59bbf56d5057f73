# What `make install` puts where.

function(headrace_install)
  install(TARGETS headrace RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
