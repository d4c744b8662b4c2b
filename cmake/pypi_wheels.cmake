# SPDX-License-Identifier: Apache-2.0
# Lets the build find ROS 2, Pinocchio and Crocoddyl where pip has put them. Changes nothing on a machine with ROS.
include_guard(GLOBAL)

# Searched last, after what the caller or a sourced ROS names: the Python environment (ROS 2 wheels) and its
# site-packages/cmeel.prefix (Pinocchio, Crocoddyl).
function(prime_ros_find_wheels)
  find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)
  get_filename_component(environment "${Python3_SITELIB}/../../.." ABSOLUTE)
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" cmake_prefixes)
  file(TO_CMAKE_PATH "$ENV{AMENT_PREFIX_PATH}" ament_prefixes)
  if(NOT ament_prefixes AND EXISTS "${environment}/share/ament_index")
    set(ENV{AMENT_PREFIX_PATH} "${environment}")
  endif()
  set(CMAKE_PREFIX_PATH ${CMAKE_PREFIX_PATH} ${cmake_prefixes} ${ament_prefixes}
    "${environment}" "${Python3_SITELIB}/cmeel.prefix" PARENT_SCOPE)
endfunction()

# Two faults of include folders that CMake refuses:
# - the wheels' targets name folders of the machine that built them;
# - the messages' targets, which are exported, name NumPy's, which lies in the source tree if .venv does.
function(prime_ros_mend_include_folders)
  get_directory_property(imported IMPORTED_TARGETS)
  get_directory_property(own BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS imported own)
    foreach(property IN ITEMS INTERFACE_INCLUDE_DIRECTORIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES)
      get_target_property(folders ${target} ${property})
      if(folders)
        prime_ros_mend_folders(folders)
        set_target_properties(${target} PROPERTIES ${property} "${folders}")
      endif()
    endforeach()
  endforeach()
endfunction()

function(prime_ros_mend_folders variable)
  set(mended)
  foreach(folder IN LISTS ${variable})
    string(FIND "${folder}" "${CMAKE_SOURCE_DIR}/" position)
    if(position EQUAL 0)
      list(APPEND mended "$<BUILD_INTERFACE:${folder}>")
    elseif(NOT IS_ABSOLUTE "${folder}" OR EXISTS "${folder}")
      list(APPEND mended "${folder}")
    endif()
  endforeach()
  set(${variable} "${mended}" PARENT_SCOPE)
endfunction()

prime_ros_find_wheels()
cmake_language(DEFER CALL prime_ros_mend_include_folders)
