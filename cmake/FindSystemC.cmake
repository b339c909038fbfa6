# Finds SystemC and makes the target SystemC::systemc.
#
# A SystemC 3 installation brings its own CMake package (SystemCLanguage), which is used when there. Otherwise headers
# and library are looked for under SYSTEMC_HOME (variable or environment) and in the system's places. The version comes
# from the headers.
find_package(SystemCLanguage CONFIG QUIET)
if(TARGET SystemC::systemc)
  set(SystemC_FOUND TRUE)
  set(SystemC_VERSION "${SystemCLanguage_VERSION}")
  return()
endif()

set(_systemc_hints "${SYSTEMC_HOME}" "$ENV{SYSTEMC_HOME}")
find_path(SystemC_INCLUDE_DIR NAMES systemc HINTS ${_systemc_hints} PATH_SUFFIXES include)
find_library(SystemC_LIBRARY NAMES systemc HINTS ${_systemc_hints} PATH_SUFFIXES lib lib-linux64 lib64)

if(SystemC_INCLUDE_DIR AND EXISTS "${SystemC_INCLUDE_DIR}/sysc/kernel/sc_ver.h")
  file(STRINGS "${SystemC_INCLUDE_DIR}/sysc/kernel/sc_ver.h" _lines REGEX "#define SC_VERSION_(MAJOR|MINOR|PATCH) ")
  foreach(_part MAJOR MINOR PATCH)
    string(REGEX MATCH "SC_VERSION_${_part} +([0-9]+)" _ignored "${_lines}")
    set(_systemc_${_part} "${CMAKE_MATCH_1}")
  endforeach()
  set(SystemC_VERSION "${_systemc_MAJOR}.${_systemc_MINOR}.${_systemc_PATCH}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SystemC REQUIRED_VARS SystemC_LIBRARY SystemC_INCLUDE_DIR
                                  VERSION_VAR SystemC_VERSION)
if(SystemC_FOUND AND NOT TARGET SystemC::systemc)
  find_package(Threads REQUIRED)
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(SystemC::systemc PROPERTIES
    IMPORTED_LOCATION "${SystemC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SystemC_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "SC_INCLUDE_DYNAMIC_PROCESSES"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
mark_as_advanced(SystemC_INCLUDE_DIR SystemC_LIBRARY)
