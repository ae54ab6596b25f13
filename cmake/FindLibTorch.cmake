# LibTorch from a Python environment: the PyPI wheel (CPU or CUDA) has all headers and libraries. Its CMake package does
# not work with every supported CMake and wheel, so this file defines its own imported targets. It never imports torch and
# needs no GPU.
#
# In
#   LibTorch_ROOT      .../site-packages/torch or an unpacked libtorch; default: found with Python
#   LibTorch_PYTHON    the interpreter to use; default: the first one with torch of build/venv/bin/python3 in the source
#                      tree, $VIRTUAL_ENV, python3
#   LibTorch_CUDA      AUTO, ON or OFF: build the CUDA and NCCL path (see LibTorchCuda.cmake)
#   LibTorch_GLOO_INCLUDE_DIR, LibTorch_CUDA_STUB_INCLUDE_DIR, LibTorch_NCCL_ROOT   folders, see below
# Out
#   LibTorch_FOUND, LibTorch_VERSION, LibTorch_LIBRARY_DIR
#   LibTorch_RUNTIME_DIRS   the folders of all libraries that a program links: a program's RUNPATH needs them
#   LibTorch_PYTHON_USED  the interpreter that found it; empty if LibTorch_ROOT was given
#   LibTorch_WHEEL_CUDA   the CUDA version of the wheel; empty for a CPU wheel
#   LibTorch_CUDA_FOUND, LibTorch_CUDA_WHY (why not), LibTorch_NCCL_VERSION
#   LibTorch_RUNNABLE     programs can start here: all shared libraries that the wheel needs exist
#   LibTorch::LibTorch    the target; it defines LIBTORCH_HAS_CUDA=0|1, USE_DISTRIBUTED, USE_C10D_GLOO, USE_C10D_NCCL
include_guard(GLOBAL)
include(FindPackageHandleStandardArgs)
include(${CMAKE_CURRENT_LIST_DIR}/LibTorchCuda.cmake)

set(LibTorch_OLDEST 2.11)
set(LibTorch_BEYOND 2.16)  # the first version that was not tested
set(LibTorch_CUDA AUTO CACHE STRING "CUDA and NCCL path: AUTO, ON or OFF")
set_property(CACHE LibTorch_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LibTorch_GLOO_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/stubs/gloo_stubs" CACHE PATH
  "folder with gloo/*.h, which wheels lack: our stand-ins or the real headers")
set(LibTorch_CUDA_STUB_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/stubs/cuda_lib_stubs" CACHE PATH
  "stand-ins for the headers of cuBLAS, cuSPARSE and cuSOLVER, used if no wheel or toolkit has them")
set(LibTorch_NCCL_ROOT "" CACHE PATH "folder with include/nccl.h and lib/libnccl.so.2, instead of the wheel's NCCL")
mark_as_advanced(LibTorch_GLOO_INCLUDE_DIR LibTorch_CUDA_STUB_INCLUDE_DIR LibTorch_NCCL_ROOT)

# The torch folder that `python` imports, or "".
function(_libtorch_ask python out)
  execute_process(
    COMMAND "${python}" -c
      "import importlib.util as u; s = u.find_spec('torch'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${out} "${answer}" PARENT_SCOPE)
endfunction()

# Sets LibTorch_ROOT and _libtorch_asked (the interpreters that were tried).
macro(_libtorch_locate)
  set(_libtorch_asked "")
  set(LibTorch_PYTHON_USED "")
  if(NOT LibTorch_ROOT AND DEFINED ENV{LibTorch_ROOT})
    set(LibTorch_ROOT "$ENV{LibTorch_ROOT}")
  endif()
  if(LibTorch_PYTHON)
    set(_libtorch_pythons "${LibTorch_PYTHON}")
  else()
    find_program(_libtorch_system_python NAMES python3 python NO_CACHE)
    set(_libtorch_pythons "${CMAKE_SOURCE_DIR}/build/venv/bin/python3" "$ENV{VIRTUAL_ENV}/bin/python3"
      "${_libtorch_system_python}")
  endif()
  foreach(_libtorch_python IN LISTS _libtorch_pythons)
    if(NOT LibTorch_ROOT AND EXISTS "${_libtorch_python}")
      _libtorch_ask("${_libtorch_python}" LibTorch_ROOT)
      list(APPEND _libtorch_asked "${_libtorch_python}")
      if(LibTorch_ROOT)
        set(LibTorch_PYTHON_USED "${_libtorch_python}")
      endif()
    endif()
  endforeach()
endmacro()

# LibTorch_VERSION and LibTorch_WHEEL_CUDA from a wheel's version.py or an archive's build-version.
function(_libtorch_read_version)
  set(version "")
  set(cuda "")
  if(EXISTS "${LibTorch_ROOT}/version.py")
    file(STRINGS "${LibTorch_ROOT}/version.py" lines REGEX "^(__version__|cuda).*= '")
    foreach(line IN LISTS lines)
      if(line MATCHES "^__version__ = '([0-9]+\\.[0-9]+\\.[0-9]+)")
        set(version "${CMAKE_MATCH_1}")
      elseif(line MATCHES "^cuda.*= '([0-9.]+)'")
        set(cuda "${CMAKE_MATCH_1}")
      endif()
    endforeach()
  elseif(EXISTS "${LibTorch_ROOT}/build-version")
    file(STRINGS "${LibTorch_ROOT}/build-version" line LIMIT_COUNT 1)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+\\.[0-9]+" version "${line}")
    string(REGEX MATCH "cu([0-9]+)([0-9])$" _ "${line}")
    if(CMAKE_MATCH_1)
      set(cuda "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
    endif()
  endif()
  set(LibTorch_VERSION "${version}" PARENT_SCOPE)
  set(LibTorch_WHEEL_CUDA "${cuda}" PARENT_SCOPE)
endfunction()

# Only tested versions are allowed. Headers and libraries must have the same version.
function(_libtorch_check_version)
  if(LibTorch_VERSION AND (LibTorch_VERSION VERSION_LESS LibTorch_OLDEST
      OR LibTorch_VERSION VERSION_GREATER_EQUAL LibTorch_BEYOND))
    message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT} is not supported: trainyard builds with 2.11 "
      "to 2.15. Install torch==2.13.0 (tools/setup installs it into build/venv), or set LibTorch_PYTHON to a "
      "Python that has one of them.")
  endif()
endfunction()

function(_libtorch_make_targets)
  foreach(name c10 torch_cpu c10_cuda torch_cuda)
    if(EXISTS "${LibTorch_LIBRARY_DIR}/lib${name}.so")
      add_library(LibTorch::${name} SHARED IMPORTED)
      set_target_properties(LibTorch::${name} PROPERTIES IMPORTED_LOCATION "${LibTorch_LIBRARY_DIR}/lib${name}.so")
    endif()
  endforeach()
  find_package(Threads REQUIRED)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_compile_features(LibTorch::LibTorch INTERFACE cxx_std_20)
  target_compile_definitions(LibTorch::LibTorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE "${LibTorch_ROOT}/include"
    "${LibTorch_ROOT}/include/torch/csrc/api/include" "${LibTorch_GLOO_INCLUDE_DIR}")
  # no-as-needed: kernels register themselves in static initialisers, so their library must stay linked although no symbol
  # of it is named
  set(kernels LibTorch::torch_cpu)
  if(LibTorch_CUDA_FOUND)
    target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE ${LibTorch_CUDA_INCLUDE_DIRS})
    target_compile_definitions(LibTorch::LibTorch INTERFACE LIBTORCH_HAS_CUDA=1 USE_CUDA USE_C10D_NCCL)
    list(PREPEND kernels LibTorch::torch_cuda LibTorch::c10_cuda)
  else()
    target_compile_definitions(LibTorch::LibTorch INTERFACE LIBTORCH_HAS_CUDA=0)
  endif()
  target_link_libraries(LibTorch::LibTorch INTERFACE -Wl,--push-state,--no-as-needed ${kernels} -Wl,--pop-state
    LibTorch::c10 ${LibTorch_CUDA_LIBRARIES} Threads::Threads)
  if(LibTorch_WHEEL_CUDA)
    # the linker need not find the NVIDIA libraries: at run time the wheel finds them by its RPATH
    target_link_options(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined)
  endif()
endfunction()

_libtorch_locate()
set(LibTorch_LIBRARY_DIR "${LibTorch_ROOT}/lib")
set(LibTorch_LIBRARY "")
if(EXISTS "${LibTorch_LIBRARY_DIR}/libtorch_cpu.so")
  set(LibTorch_LIBRARY "${LibTorch_LIBRARY_DIR}/libtorch_cpu.so")
endif()
_libtorch_read_version()
_libtorch_check_version()
list(JOIN _libtorch_asked ", " _libtorch_asked)
string(CONCAT _libtorch_advice "No torch in '${LibTorch_ROOT}' or in these Pythons: ${_libtorch_asked}. tools/setup installs "
  "it into build/venv, -DLibTorch_PYTHON=… names another Python, -DTRAINYARD_LIBTORCH=OFF builds only what does not need it.")
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_LIBRARY VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${_libtorch_advice}")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  _libtorch_find_cuda()
  _libtorch_check_runnable()
  _libtorch_make_targets()
  set(LibTorch_RUNTIME_DIRS "${LibTorch_LIBRARY_DIR}")
  foreach(_library IN LISTS LibTorch_CUDA_LIBRARIES)
    get_filename_component(_folder "${_library}" DIRECTORY)
    list(APPEND LibTorch_RUNTIME_DIRS "${_folder}")
  endforeach()
  list(REMOVE_DUPLICATES LibTorch_RUNTIME_DIRS)
  set(_libtorch_text "LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT}")
  if(LibTorch_CUDA_FOUND)
    string(APPEND _libtorch_text ", CUDA ${LibTorch_WHEEL_CUDA}, NCCL ${LibTorch_NCCL_VERSION}")
  else()
    string(APPEND _libtorch_text ", no CUDA: ${LibTorch_CUDA_WHY}")
  endif()
  if(NOT LibTorch_RUNNABLE)
    string(APPEND _libtorch_text "; programs cannot start here, missing: ${LibTorch_MISSING_LIBRARIES}")
  endif()
  message(STATUS "${_libtorch_text}")
endif()
