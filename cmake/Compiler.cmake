# Language, warnings, sanitizers, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
add_compile_options(-pthread)  # for all: some libraries require it, and users of a precompiled header need the same flags
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # without NDEBUG: the cost of assertions is not measurable here

# Hardening of release builds, which tools/check-programs verifies. Tests are not optimised and cannot have _FORTIFY_SOURCE.
add_compile_options($<$<CONFIG:Release>:-fstack-protector-strong>
  "SHELL:$<$<CONFIG:Release>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_compile_options($<$<CONFIG:Release>:-fcf-protection=full>)
endif()
add_link_options("$<$<CONFIG:Release>:LINKER:-z,relro,-z,now>")

find_program(TRAINYARD_CCACHE ccache)
if(TRAINYARD_CCACHE)
  # ccache needs pch_defines and time_macros to accept precompiled headers
  set(ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros)
  # A base folder, if the user has set none. Then other clones, and build folders of the same depth, share the cache.
  execute_process(COMMAND "${TRAINYARD_CCACHE}" --get-config base_dir OUTPUT_VARIABLE ccache_base_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(ccache_base_dir STREQUAL "")
    list(APPEND ccache_settings "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}")
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${ccache_settings} "${TRAINYARD_CCACHE}")
endif()

# Warnings are errors in our own targets. TRAINYARD_STRICT=OFF is for compilers that were not tested.
add_library(trainyard_warnings INTERFACE)
target_compile_options(trainyard_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${TRAINYARD_STRICT}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # false positives of GCC 12 in its own <string> and <variant> at -O2
  target_compile_options(trainyard_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()

if(TRAINYARD_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(TRAINYARD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_compile_definitions(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)  # newer clangs define it themselves
endif()
