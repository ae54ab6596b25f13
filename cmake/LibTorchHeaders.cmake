# trainyard_libtorch_headers(TARGET …): precompiled LibTorch headers. They save many seconds per file. The target that
# makes them has the same flags as its users, because the compiler requires that.
include_guard(GLOBAL)

file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/libtorch_headers.cpp" CONTENT "// holds the precompiled headers\n")  # written only if it changes
add_library(trainyard_libtorch_headers OBJECT "${CMAKE_BINARY_DIR}/libtorch_headers.cpp")
target_link_libraries(trainyard_libtorch_headers PRIVATE trainyard_warnings LibTorch::LibTorch)
target_compile_options(trainyard_libtorch_headers PRIVATE -fpch-preprocess)  # for ccache
target_precompile_headers(trainyard_libtorch_headers PRIVATE
  <algorithm> <chrono> <filesystem> <functional> <memory> <optional> <string> <vector>
  <ATen/ATen.h>
  <torch/csrc/autograd/variable.h>
  <torch/csrc/autograd/engine.h>
  <torch/csrc/autograd/utils/lambda_post_hook.h>
  <torch/csrc/distributed/c10d/PrefixStore.hpp>
  <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
  <torch/csrc/distributed/c10d/TCPStore.hpp>)

function(trainyard_libtorch_headers)
  foreach(target IN LISTS ARGV)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    target_precompile_headers(${target} REUSE_FROM trainyard_libtorch_headers)
  endforeach()
endfunction()
