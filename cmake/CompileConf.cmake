# cmake -DHEADRACE=<executable> -DCONF=<folder> -DMARCH=<processor> -DOUTPUT=<folder> -P CompileConf.cmake
# Compiles the chains of the configurations in CONF, for machines without a compiler.

file(REMOVE_RECURSE ${OUTPUT})
file(MAKE_DIRECTORY ${OUTPUT})
file(GLOB configurations ${CONF}/*.click)
foreach(configuration IN LISTS configurations)
  execute_process(COMMAND ${HEADRACE} compile ${configuration} --march ${MARCH} -o ${OUTPUT}
                  RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0 AND NOT said MATCHES "has no chain of shaders")
    # Also with a compiler of their own, users do without.
    message(NOTICE "chains of ${configuration} are not compiled: ${said}")
  endif()
endforeach()
