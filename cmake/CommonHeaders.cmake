# trainyard_common_headers(KIND TARGET …): the headers that nearly every file without LibTorch includes, precompiled once
# for all targets of that kind (boxes, programs, tests); reading them anew is most of what such a file costs. The rest is
# optimising what waits for files and processes anyway, hence -O1, and -O0 for tests. What computes (models, networks,
# runner) keeps -O2.
include_guard(GLOBAL)

function(trainyard_common_header_set kind level)
  set(target trainyard_common_headers_${kind})
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/common_headers_${kind}.cpp" CONTENT "// holds the precompiled headers\n")
  add_library(${target} OBJECT "${CMAKE_BINARY_DIR}/common_headers_${kind}.cpp")
  target_link_libraries(${target} PRIVATE trainyard_warnings nlohmann_json::nlohmann_json)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess> $<$<CONFIG:Release>:${level}>)  # the first for ccache
  target_precompile_headers(${target} PRIVATE
    <algorithm> <chrono> <filesystem> <functional> <map> <optional> <string> <vector> <nlohmann/json.hpp> ${ARGN})
endfunction()

trainyard_common_header_set(boxes -O1)
trainyard_common_header_set(programs -O1 <CLI/CLI.hpp>)
if(TRAINYARD_TESTS)
  trainyard_common_header_set(tests -O0 <doctest/doctest.h>)
endif()

function(trainyard_common_headers kind)
  foreach(target IN LISTS ARGN)
    get_target_property(options trainyard_common_headers_${kind} COMPILE_OPTIONS)
    target_compile_options(${target} PRIVATE ${options})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")  # CMake would compile it with -fPIE, for which libraries' headers do not fit
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    target_precompile_headers(${target} REUSE_FROM trainyard_common_headers_${kind})
  endforeach()
endfunction()
