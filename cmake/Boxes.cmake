# trainyard_box(NAME FOLDER folder SOURCES … [HEADERS …] [PUBLIC …] [PRIVATE …])
#
# One static library a box, `trainyard_NAME`. Its headers (all of its folder, or HEADERS) are linked into
# build/…/boxes/NAME/FOLDER, and only who links the box gets that folder on its include path: an include against the
# arrows does not compile.
function(trainyard_box name)
  cmake_parse_arguments(PARSE_ARGV 1 box "" "FOLDER" "SOURCES;HEADERS;PUBLIC;PRIVATE")
  set(source "${CMAKE_SOURCE_DIR}/${box_FOLDER}")
  if(NOT box_HEADERS)
    file(GLOB box_HEADERS RELATIVE "${source}" CONFIGURE_DEPENDS "${source}/*.h")
  endif()
  set(root "${CMAKE_BINARY_DIR}/boxes/${name}")
  file(REMOVE_RECURSE "${root}")
  foreach(header IN LISTS box_HEADERS)
    get_filename_component(folder "${root}/${box_FOLDER}/${header}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    file(CREATE_LINK "${source}/${header}" "${root}/${box_FOLDER}/${header}" SYMBOLIC)
  endforeach()
  list(TRANSFORM box_SOURCES PREPEND "${source}/")
  add_library(trainyard_${name} STATIC ${box_SOURCES})
  target_include_directories(trainyard_${name} PUBLIC "${root}")
  target_link_libraries(trainyard_${name} PUBLIC ${box_PUBLIC} PRIVATE trainyard_warnings ${box_PRIVATE})
endfunction()

# trainyard_test(NAME SOURCES … LINKS … [TIMEOUT seconds] [COST seconds]): a doctest binary `tests_NAME`, run by ctest as
# NAME from the source folder. Of several at once, those of the highest cost begin first. Cases are named as they end, so
# that where a program is killed it can be seen in which.
# Tests that run side by side never wait for each other's sweeps, and their times count all the same.
function(trainyard_test_surroundings name variable)
  set(${variable} "TRAINYARD_HOST_LOCK=${CMAKE_CURRENT_BINARY_DIR}/${name}.host-lock;TRAINYARD_OTHERS_LIMIT=1000" PARENT_SCOPE)
endfunction()

function(trainyard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT;COST" "SOURCES;LINKS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
  if(NOT test_COST)
    set(test_COST 10)
  endif()
  add_executable(tests_${name} ${test_SOURCES})
  target_link_libraries(tests_${name} PRIVATE trainyard_warnings trainyard_doctest_main doctest::doctest ${test_LINKS})
  target_include_directories(tests_${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests/support")
  trainyard_test_surroundings(${name} test_surroundings)
  add_test(NAME ${name} COMMAND tests_${name} --duration=true WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} COST ${test_COST}
    ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/leaks.txt:print_suppressions=0;${test_surroundings}")
endfunction()
