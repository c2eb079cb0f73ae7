# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How the targets of this project are declared, linked, documented and installed.

include(CMakePackageConfigHelpers)

# Links a target to MLIR and LLVM: the two shared libraries where there are, and then nothing static beside them
# (command-line options would be registered twice).
function(ssa_link_mlir target)
  if(TARGET MLIR)
    target_link_libraries(${target} PUBLIC MLIR LLVM)
  else()
    get_property(dialects GLOBAL PROPERTY MLIR_DIALECT_LIBS)
    get_property(extensions GLOBAL PROPERTY MLIR_EXTENSION_LIBS)
    target_link_libraries(${target} PUBLIC ${dialects} ${extensions} MLIROptLib MLIRReduceLib MLIRLspServerLib
      MLIRRegisterAllDialects MLIRRegisterAllPasses MLIRRegisterAllExtensions)
  endif()
endfunction()

# What libraries and tools have in common. All share the precompiled header of the first one: reading MLIR's headers
# is most of the time of a build.
function(ssa_configure_target target)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  target_link_libraries(${target} PUBLIC ${ARG_LINK_LIBS})
  ssa_link_mlir(${target})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_dependencies(${target} ssa-headers ${ARG_DEPENDS})
  get_property(owner GLOBAL PROPERTY SSA_PCH_OWNER)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/lib/PrecompiledHeader.h>)
    set_property(GLOBAL PROPERTY SSA_PCH_OWNER ${target})
  endif()
endfunction()

# add_ssa_library(NAME sources.. [DEPENDS targets..] [LINK_LIBS libraries..]): a static library, installed.
function(add_ssa_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  ssa_configure_target(${name} DEPENDS ${ARG_DEPENDS} LINK_LIBS ${ARG_LINK_LIBS})
  install(TARGETS ${name} EXPORT SSATargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
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
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "CMakeFiles" EXCLUDE)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/dialects/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.td")
  install(EXPORT SSATargets NAMESPACE SSA:: DESTINATION ${package})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/lib/cmake/ssa/SSAConfig.cmake.in
    ${PROJECT_BINARY_DIR}/SSAConfig.cmake INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/SSAConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/SSAConfig.cmake ${PROJECT_BINARY_DIR}/SSAConfigVersion.cmake DESTINATION ${package})
endfunction()
