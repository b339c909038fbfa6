# COIN-OR's linear programming library ships pkg-config files only.
find_package(PkgConfig REQUIRED)
pkg_check_modules(CLP REQUIRED IMPORTED_TARGET clp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Clp REQUIRED_VARS CLP_LINK_LIBRARIES VERSION_VAR CLP_VERSION)
if(Clp_FOUND AND NOT TARGET Clp::Clp)
  add_library(Clp::Clp ALIAS PkgConfig::CLP)
endif()
