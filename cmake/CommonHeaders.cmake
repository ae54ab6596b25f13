# trainyard_common_headers(KIND TARGET …): precompiled headers for files without LibTorch, made once per kind of target
# (boxes, programs, tests). Otherwise these headers take most of the compile time.
#
# These targets mostly wait for files and processes, so they are compiled with -O1, and tests with -O0. Code that computes
# (models, networks, runner) keeps -O2.
include_guard(GLOBAL)

function(trainyard_common_header_set kind level)
  set(target trainyard_common_headers_${kind})
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/common_headers_${kind}.cpp" CONTENT "// holds the precompiled headers\n")
  add_library(${target} OBJECT "${CMAKE_BINARY_DIR}/common_headers_${kind}.cpp")
  target_link_libraries(${target} PRIVATE trainyard_warnings nlohmann_json::nlohmann_json)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess> "$<$<CONFIG:Release>:${level}>")  # the first for ccache
  target_precompile_headers(${target} PRIVATE
    <algorithm> <chrono> <filesystem> <functional> <map> <optional> <string> <vector> <nlohmann/json.hpp> ${ARGN})
endfunction()

trainyard_common_header_set(boxes -O1)
trainyard_common_header_set(programs -O1 <CLI/CLI.hpp>)
if(TRAINYARD_TESTS)
  trainyard_common_header_set(tests "-O0;-U_FORTIFY_SOURCE" <doctest/doctest.h>)
endif()

function(trainyard_common_headers kind)
  foreach(target IN LISTS ARGN)
    get_target_property(options trainyard_common_headers_${kind} COMPILE_OPTIONS)
    target_compile_options(${target} PRIVATE ${options})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")  # by default CMake uses -fPIE, which does not match the headers of libraries
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    target_precompile_headers(${target} REUSE_FROM trainyard_common_headers_${kind})
  endforeach()
endfunction()
