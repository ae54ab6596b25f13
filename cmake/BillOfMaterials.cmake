# The software bill of materials: build/…/trainyard.cdx.json, in the format CycloneDX 1.5. It lists the libraries that
# were found, with their versions, and is installed with the documentation.
function(_trainyard_component name version)
  string(APPEND components ",\n    {\"type\": \"library\", \"name\": \"${name}\"")
  if(NOT version STREQUAL "")
    string(APPEND components ", \"version\": \"${version}\"")
  endif()
  string(APPEND components "}")
  set(components "${components}" PARENT_SCOPE)
endfunction()

# A version that the package's own CMake file does not give: from its .pc file.
function(_trainyard_version_of variable package)
  find_package(PkgConfig QUIET)
  set(version "")
  if(PKG_CONFIG_EXECUTABLE)
    execute_process(COMMAND "${PKG_CONFIG_EXECUTABLE}" --modversion ${package} OUTPUT_VARIABLE version
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

set(components "")
_trainyard_component(zlib "${ZLIB_VERSION_STRING}")
_trainyard_component(openssl "${OPENSSL_VERSION}")
_trainyard_component(libpng "${PNG_VERSION_STRING}")
_trainyard_component(libarchive "${LibArchive_VERSION}")
_trainyard_component(nlohmann-json "${nlohmann_json_VERSION}")
_trainyard_component(tomlplusplus "${tomlplusplus_VERSION}")
_trainyard_component(sqlite "${SQLite3_VERSION}")
_trainyard_component(sqlitecpp "${SQLiteCpp_VERSION}")
_trainyard_component(boost "${Boost_VERSION_STRING}")
_trainyard_component(fmt "${fmt_VERSION}")
_trainyard_component(spdlog "${spdlog_VERSION}")
_trainyard_component(cli11 "${CLI11_VERSION}")
foreach(package turbojpeg utf8proc)
  _trainyard_version_of(version lib${package})
  _trainyard_component(${package} "${version}")
endforeach()
if(TRAINYARD_DOWNLOADS)
  _trainyard_component(curl "${CURL_VERSION_STRING}")
endif()
if(TRAINYARD_PICTURES)
  _trainyard_component(librsvg "${RSVG_VERSION}")
  _trainyard_component(cairo "${CAIRO_VERSION}")
endif()
if(TRAINYARD_LIBTORCH)
  _trainyard_component(libtorch "${LibTorch_VERSION}")
endif()
string(SUBSTRING "${components}" 2 -1 components)
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/trainyard.cdx.json" CONTENT [[
{
  "bomFormat": "CycloneDX",
  "specVersion": "1.5",
  "version": 1,
  "metadata": {"component": {"type": "application", "name": "trainyard", "version": "@PROJECT_VERSION@"}},
  "components": [
@components@
  ]
}
]] @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/trainyard.cdx.json" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
