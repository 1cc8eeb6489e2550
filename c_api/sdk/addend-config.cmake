# find_package(Addend) or find_package(addend): the C interface as Addend::addend, C++17 over it as Addend::addend_cpp.
#
# Paths are found relative to this file, so that the folder may lie anywhere. Addend_LIBTORCH_VERSION is the LibTorch that
# the library is built for. Where the project has LibTorch too, by find_package(Torch), a C++ ABI of it that none of the
# implementations was built for is an error.

set(Addend_LIBTORCH_VERSION "@LIBTORCH_VERSION@")
get_filename_component(_addend_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# The value of _GLIBCXX_USE_CXX11_ABI that a library was built with, told by the name of a function that it defines or
# calls: one with new strings in it, or with old ones. Empty where it has neither.
function(_addend_cxx11_abi out file new old)
  file(STRINGS "${file}" name LIMIT_COUNT 1 REGEX "${new}|${old}")
  if(name MATCHES "${new}")
    set(${out} 1 PARENT_SCOPE)
  elseif(name)
    set(${out} 0 PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# The same for the project's LibTorch, whose target need not say it; empty where there is none.
function(_addend_libtorch_abi out library_out)
  set(${out} "" PARENT_SCOPE)
  if(TARGET c10)
    get_target_property(library c10 LOCATION)
    if(EXISTS "${library}")
      _addend_cxx11_abi(abi "${library}" "torchCheckFail.*NSt7__cxx1112basic_string" "torchCheckFail.*RKSs")
      set(${out} "${abi}" PARENT_SCOPE)
      set(${library_out} "${library}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# Why no implementation in `folder` serves the LibTorch `library`; empty where one may. Those for its version come first:
# libaddend.so.1 opens no others.
function(_addend_abi_problem out folder library abi)
  set(${out} "" PARENT_SCOPE)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" series "${Torch_VERSION}")
  file(GLOB implementations "${folder}/libaddend_torch${series}.so")
  if(NOT implementations)
    file(GLOB implementations "${folder}/libaddend_torch*.so")
  endif()
  foreach(implementation IN LISTS implementations)
    _addend_cxx11_abi(other "${implementation}" "_ZN6caffe215GetBuildOptionsB5cxx11Ev" "_ZN6caffe215GetBuildOptionsEv")
    if(abi STREQUAL "" OR other STREQUAL "" OR other STREQUAL abi)
      return()
    endif()
  endforeach()
  if(implementations)
    list(TRANSFORM implementations REPLACE "^.*/" "")
    string(REPLACE ";" ", " implementations "${implementations}")
    set(${out} "LibTorch ${Torch_VERSION} (${library}) was built with _GLIBCXX_USE_CXX11_ABI=${abi}, and what Addend has for \
LibTorch (${implementations} in ${folder}) with _GLIBCXX_USE_CXX11_ABI=${other}: give the project a LibTorch with that ABI, \
or build Addend with LIBTORCH_HOME set to this one" PARENT_SCOPE)
  endif()
endfunction()

# For a project that finds LibTorch after Addend.
function(_addend_check_abi folder)
  _addend_libtorch_abi(_abi _library)
  _addend_abi_problem(_problem "${folder}" "${_library}" "${_abi}")
  if(_problem)
    message(FATAL_ERROR "${_problem}")
  endif()
  _addend_tell_abi("${_abi}")
endfunction()

# addend.hpp compares it with what each file is compiled with.
function(_addend_tell_abi abi)
  if(NOT abi STREQUAL "")
    set_property(TARGET Addend::addend_cpp PROPERTY INTERFACE_COMPILE_DEFINITIONS "ADDEND_LIBTORCH_CXX11_ABI=${abi}")
  endif()
endfunction()

foreach(_addend_file "lib/libaddend.so.1" "include/addend/addend.h" "include/addend/addend.hpp")
  if(NOT EXISTS "${_addend_prefix}/${_addend_file}")
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "${_addend_prefix}/${_addend_file} is missing; unpack the whole archive again")
    return()
  endif()
endforeach()

_addend_libtorch_abi(_addend_abi _addend_library)
_addend_abi_problem(_addend_problem "${_addend_prefix}/lib" "${_addend_library}" "${_addend_abi}")
if(_addend_problem)
  set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
  set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "${_addend_problem}")
  return()
endif()

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

if(TARGET c10)
  _addend_tell_abi("${_addend_abi}")
elseif(NOT CMAKE_VERSION VERSION_LESS 3.19)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL _addend_check_abi [[${_addend_prefix}/lib]])")
endif()

# Neither has parts that could be asked for.
foreach(_addend_component IN LISTS ${CMAKE_FIND_PACKAGE_NAME}_FIND_COMPONENTS)
  set(${CMAKE_FIND_PACKAGE_NAME}_${_addend_component}_FOUND FALSE)
  if(${CMAKE_FIND_PACKAGE_NAME}_FIND_REQUIRED_${_addend_component})
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE "Addend has no component ${_addend_component}")
  endif()
endforeach()
unset(_addend_abi)
unset(_addend_library)
unset(_addend_prefix)
unset(_addend_problem)
