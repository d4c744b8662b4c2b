# SPDX-License-Identifier: Apache-2.0
# prime_ros.msg and the C and C++ types of msg/.
find_package(ament_cmake REQUIRED)
find_package(ament_cmake_python REQUIRED)
find_package(rosidl_default_generators REQUIRED)
find_package(std_msgs REQUIRED)
find_package(geometry_msgs REQUIRED)

# The libraries of the messages find each other, and their Python extensions find them, wherever the tree is put.
if(NOT DEFINED CMAKE_INSTALL_RPATH)
  set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../../..")
endif()

# Also creates the Python package prime_ros; a second ament_python_install_package(prime_ros) would clash with it.
rosidl_generate_interfaces(prime_ros
  msg/BodyInertia.msg
  msg/ContactForce.msg
  msg/ContactForceArray.msg
  msg/EstimatorStatus.msg
  msg/InertiaEstimate.msg
  DEPENDENCIES geometry_msgs std_msgs)
