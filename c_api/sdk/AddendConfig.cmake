# find_package(Addend): the C interface as Addend::addend, C++17 over it as Addend::addend_cpp.
#
# Paths are found relative to this file, so that the folder may lie anywhere. Addend_LIBTORCH_VERSION is the LibTorch that
# the library is built for.

set(Addend_LIBTORCH_VERSION "@LIBTORCH_VERSION@")
get_filename_component(_addend_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(_addend_file "lib/libaddend.so.1" "include/addend/addend.h" "include/addend/addend.hpp")
  if(NOT EXISTS "${_addend_prefix}/${_addend_file}")
    set(Addend_FOUND FALSE)
    set(Addend_NOT_FOUND_MESSAGE "${_addend_prefix}/${_addend_file} is missing; unpack the whole archive again")
    return()
  endif()
endforeach()

if(NOT TARGET Addend::addend)
  add_library(Addend::addend SHARED IMPORTED)
  set_target_properties(Addend::addend PROPERTIES
    IMPORTED_LOCATION "${_addend_prefix}/lib/libaddend.so.1"
    IMPORTED_SONAME "libaddend.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_addend_prefix}/include")

  add_library(Addend::addend_cpp INTERFACE IMPORTED)
  set_target_properties(Addend::addend_cpp PROPERTIES
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES Addend::addend)
endif()

# Neither has parts that could be asked for.
foreach(_addend_component IN LISTS Addend_FIND_COMPONENTS)
  set(Addend_${_addend_component}_FOUND FALSE)
  if(Addend_FIND_REQUIRED_${_addend_component})
    set(Addend_FOUND FALSE)
    set(Addend_NOT_FOUND_MESSAGE "Addend has no component ${_addend_component}")
  endif()
endforeach()
unset(_addend_prefix)
