# Run by CPack before it makes packages: Debian wants man pages compressed, without a time stamp.
file(GLOB_RECURSE pages "${CPACK_TEMPORARY_DIRECTORY}/*/man/man1/*.1")
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9nf "${page}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
