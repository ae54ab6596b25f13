# Installation: cmake --install build/release --prefix DIR
#
# The programs are in one folder, as in the build tree, because `trainyard` looks for the others beside itself. Programs
# that link LibTorch use the LibTorch of the build (RUNPATH), so do not remove that Python environment.
include(GNUInstallDirs)
foreach(program trainyard trainyard-rank trainyard-runner trainyard-store)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
endforeach()
install(DIRECTORY "${CMAKE_SOURCE_DIR}/experiments/" DESTINATION "${CMAKE_INSTALL_DATADIR}/trainyard/experiments"
  FILES_MATCHING PATTERN "*.toml")
install(FILES "${CMAKE_SOURCE_DIR}/README.md" "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${CMAKE_SOURCE_DIR}/db/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}/db")
