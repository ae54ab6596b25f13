# trainyard_room(FOLDER [WITHOUT FILE …] [SOURCES FILE …] [PUBLIC …] [PRIVATE …])
#
# One static library per room: `trainyard_FOLDER`, with _ for /. It has all sources of the folder except tests and those
# after WITHOUT, and it has SOURCES. PUBLIC and PRIVATE list libraries, and rooms by their folders. A room can list only
# rooms that were made before it: those below. Its headers are linked into build/…/rooms/TARGET/FOLDER. Only targets that
# link the room get that folder on their include path, so an include that breaks the order does not compile.
function(trainyard_room folder)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "WITHOUT;SOURCES;PUBLIC;PRIVATE")
  list(TRANSFORM room_WITHOUT PREPEND "${CMAKE_SOURCE_DIR}/${folder}/")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(REMOVE_ITEM sources ${room_WITHOUT})
  trainyard_room_target(target ${folder})
  set(root "${CMAKE_BINARY_DIR}/rooms/${target}")
  file(REMOVE_RECURSE "${root}")
  file(MAKE_DIRECTORY "${root}/${folder}")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.h")
  foreach(header IN LISTS headers)
    get_filename_component(name "${header}" NAME)
    file(CREATE_LINK "${header}" "${root}/${folder}/${name}" SYMBOLIC)
  endforeach()
  add_library(${target} STATIC ${sources} ${room_SOURCES})
  target_include_directories(${target} PUBLIC "${root}")
  target_link_libraries(${target} PRIVATE trainyard_warnings)
  trainyard_link(${target} PUBLIC ${room_PUBLIC})
  trainyard_link(${target} PRIVATE ${room_PRIVATE})
endfunction()

function(trainyard_room_target variable folder)
  string(REPLACE "/" "_" name "trainyard_${folder}")
  set(${variable} ${name} PARENT_SCOPE)
endfunction()

# trainyard_link(TARGET PUBLIC|PRIVATE NAME …): links rooms, by their folders, and libraries
function(trainyard_link target visibility)
  foreach(name IN LISTS ARGN)
    if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/${name}")
      trainyard_room_target(room ${name})
      if(NOT TARGET ${room})
        message(FATAL_ERROR "${target} must not link ${name}: it is above the target or is not a room. See ARCHITECTURE.md.")
      endif()
      set(name ${room})
    endif()
    target_link_libraries(${target} ${visibility} ${name})
  endforeach()
endfunction()

# Tests and benchmarks include their own headers by the path from the top: "tests/support/…". This folder has only these.
set(trainyard_tests_root "${CMAKE_BINARY_DIR}/tests_root")
file(MAKE_DIRECTORY "${trainyard_tests_root}")
foreach(folder tests bench)
  file(CREATE_LINK "${CMAKE_SOURCE_DIR}/${folder}" "${trainyard_tests_root}/${folder}" SYMBOLIC)
endforeach()

# trainyard_test_sources(VARIABLE FOLDER …): the sources in and below these folders of tests/
function(trainyard_test_sources variable)
  set(found)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp")
    list(APPEND found ${sources})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# Environment for parallel tests: they do not wait for each other's sweeps, and their times count nevertheless.
function(trainyard_test_surroundings name variable)
  set(${variable} "TRAINYARD_HOST_LOCK=${CMAKE_CURRENT_BINARY_DIR}/${name}.host-lock;TRAINYARD_OTHERS_LIMIT=1000" PARENT_SCOPE)
endfunction()

# trainyard_test(NAME SOURCES … LINKS … [TIMEOUT seconds] [COST seconds]): a doctest binary `tests_NAME`. ctest runs it as
# NAME in the source folder, the highest cost first. LINKS lists libraries, and rooms by their folders. The program prints
# each case when it ends, so the log of a killed program shows its last case. Without TRAINYARD_REPEATED_TESTS, tests of rooms
# that behave alike under sanitizers are neither built nor run.
function(trainyard_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT;COST" "SOURCES;LINKS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
  if(NOT test_COST)
    set(test_COST 10)
  endif()
  set(left_out)
  if(NOT TRAINYARD_REPEATED_TESTS AND name MATCHES "^(experiments|db|orchestrator|faults|tools)$")
    set(left_out EXCLUDE_FROM_ALL)
  endif()
  add_executable(tests_${name} ${left_out} ${test_SOURCES})
  target_link_libraries(tests_${name} PRIVATE trainyard_warnings trainyard_doctest_main doctest::doctest)
  trainyard_link(tests_${name} PRIVATE ${test_LINKS})
  target_include_directories(tests_${name} PRIVATE "${trainyard_tests_root}")
  if(left_out)
    return()
  endif()
  trainyard_test_surroundings(${name} test_surroundings)
  add_test(NAME ${name} COMMAND tests_${name} --duration=true WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} COST ${test_COST}
    ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/leaks.txt:print_suppressions=0;${test_surroundings}")
endfunction()
