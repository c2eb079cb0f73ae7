# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How the targets of this project are declared, linked, documented and installed.

include(CMakePackageConfigHelpers)

# Installed programs find LLVM where it was at build time, unless the system's own search finds it.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Links a target to MLIR and LLVM: the two shared libraries where there are, and then nothing static beside them
# (command-line options would be registered twice).
function(ssa_link_mlir target scope)
  if(TARGET MLIR)
    target_link_libraries(${target} ${scope} MLIR LLVM)
  else()
    get_property(dialects GLOBAL PROPERTY MLIR_DIALECT_LIBS)
    get_property(extensions GLOBAL PROPERTY MLIR_EXTENSION_LIBS)
    target_link_libraries(${target} ${scope} ${dialects} ${extensions} MLIROptLib MLIRReduceLib MLIRLspServerLib
      MLIRRegisterAllDialects MLIRRegisterAllPasses MLIRRegisterAllExtensions)
  endif()
endfunction()

# What libraries and tools have in common. All share the precompiled header of the first one: reading MLIR's headers
# is most of the time of a build.
function(ssa_configure_target target)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  get_target_property(type ${target} TYPE)
  set(scope PRIVATE) # who uses a program or a shared library needs nothing of what is in it
  if(type STREQUAL "STATIC_LIBRARY")
    set(scope PUBLIC)
    target_compile_features(${target} PUBLIC cxx_std_17)
  endif()
  target_link_libraries(${target} ${scope} ${ARG_LINK_LIBS})
  ssa_link_mlir(${target} ${scope})
  if(NOT type STREQUAL "EXECUTABLE")
    target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "") # a macro of its own would rule out the shared header
  endif()
  add_dependencies(${target} ssa-headers ${ARG_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY SSA_TARGETS ${target})
  get_property(owner GLOBAL PROPERTY SSA_PCH_OWNER)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/lib/PrecompiledHeader.h>)
    set_property(GLOBAL PROPERTY SSA_PCH_OWNER ${target})
  endif()
endfunction()

# add_ssa_library(NAME sources.. [DEPENDS targets..] [LINK_LIBS libraries..]): a static library, installed.
function(add_ssa_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  ssa_configure_target(${name} DEPENDS ${ARG_DEPENDS} LINK_LIBS ${ARG_LINK_LIBS})
  install(TARGETS ${name} EXPORT SSATargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY SSA_STATIC_LIBRARIES ${name})
endfunction()

# add_ssa_plain_library(NAME sources..): a static library that needs neither MLIR nor LLVM, installed.
function(add_ssa_plain_library name)
  add_library(${name} STATIC ${ARGN})
  target_compile_features(${name} PUBLIC cxx_std_17)
  target_include_directories(${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_property(GLOBAL APPEND PROPERTY SSA_TARGETS ${name})
  install(TARGETS ${name} EXPORT SSATargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY SSA_STATIC_LIBRARIES ${name})
endfunction()

# add_ssa_shared_library(NAME SHARED|MODULE sources.. EXPORTS patterns.. [VERSION x.y] [DEPENDS ..] [LINK_LIBS ..]):
# a library that holds what it links and shows only the symbols that match a pattern, installed.
function(add_ssa_shared_library name kind)
  cmake_parse_arguments(ARG "" "VERSION" "EXPORTS;DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} ${kind} ${ARG_UNPARSED_ARGUMENTS})
  ssa_configure_target(${name} DEPENDS ${ARG_DEPENDS} LINK_LIBS ${ARG_LINK_LIBS})
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
  if(ARG_VERSION)
    string(REGEX REPLACE "[.].*" "" major ${ARG_VERSION})
    set_target_properties(${name} PROPERTIES VERSION ${ARG_VERSION} SOVERSION ${major})
  endif()
  if(APPLE)
    list(TRANSFORM ARG_EXPORTS PREPEND "LINKER:-exported_symbol,_")
    target_link_options(${name} PRIVATE ${ARG_EXPORTS})
  elseif(UNIX)
    # Hidden visibility does not reach the static libraries that go in.
    list(JOIN ARG_EXPORTS "; " patterns)
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}.exports)
    file(CONFIGURE OUTPUT ${script} CONTENT "{ global: @patterns@; local: *; };\n" @ONLY)
    target_link_options(${name} PRIVATE LINKER:--version-script=${script})
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${script})
  endif()
  install(TARGETS ${name} EXPORT SSATargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# add_ssa_tool(NAME sources.. [LINK_LIBS libraries..]): an executable, installed.
function(add_ssa_tool name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  ssa_configure_target(${name} DEPENDS ${ARG_DEPENDS} LINK_LIBS ${ARG_LINK_LIBS})
  install(TARGETS ${name} EXPORT SSATargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# add_ssa_doc(FILE.td OUTPUT.md generator..): reference documentation, part of the target ssa-doc.
function(add_ssa_doc td output)
  set(path ${PROJECT_BINARY_DIR}/docs/${output})
  add_custom_command(OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I ${PROJECT_SOURCE_DIR}/dialects -I ${MLIR_INCLUDE_DIRS}
            ${CMAKE_CURRENT_SOURCE_DIR}/${td} -o ${path}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td} VERBATIM)
  string(REPLACE "." "-" name ssa-doc-${output})
  add_custom_target(${name} DEPENDS ${path})
  add_dependencies(ssa-doc ${name})
endfunction()

# Headers, TableGen files and the CMake package, for find_package(SSA).
function(ssa_install_package)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ssa)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "CMakeFiles" EXCLUDE)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/dialects/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.td")
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/ssa)
  install(EXPORT SSATargets NAMESPACE SSA:: DESTINATION ${package})
  get_property(SSA_STATIC_LIBRARIES GLOBAL PROPERTY SSA_STATIC_LIBRARIES)
  string(REGEX MATCH "^[0-9]+[.][0-9]+" SSA_LLVM_VERSION ${LLVM_PACKAGE_VERSION})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/lib/cmake/ssa/SSAConfig.cmake.in
    ${PROJECT_BINARY_DIR}/SSAConfig.cmake INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_FULL_INCLUDEDIR)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/SSAConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/SSAConfig.cmake ${PROJECT_BINARY_DIR}/SSAConfigVersion.cmake
    DESTINATION ${package})
endfunction()
