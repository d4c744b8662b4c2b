# SPDX-License-Identifier: Apache-2.0
# prime_ros._core: Boost.Python and eigenpy, because Crocoddyl's Python classes accept no other binding's objects.

if(Python3_EXECUTABLE AND NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE "${Python3_EXECUTABLE}")  # one interpreter for the messages and the core
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module NumPy)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(eigenpy REQUIRED)
find_package(pinocchio REQUIRED)
find_package(crocoddyl REQUIRED)

set(core_sources
  cpp/src/actions.cpp
  cpp/src/contact_inverse.cpp
  cpp/src/contact_potential.cpp
  cpp/src/contact_step.cpp
  cpp/src/contact_step_derivatives.cpp
  cpp/src/full_information.cpp
  cpp/src/measurement.cpp
  cpp/src/moving_horizon.cpp
  cpp/src/posterior.cpp
  cpp/src/rigid_contact.cpp
  cpp/src/state.cpp
  cpp/src/window_step.cpp
  cpp/python/actions.cpp
  cpp/python/benchmark.cpp
  cpp/python/contact_step.cpp
  cpp/python/full_information.cpp
  cpp/python/module.cpp
  cpp/python/moving_horizon.cpp
  cpp/python/rigid_contact.cpp
  cpp/python/sweep.cpp)
set(sweep_sources
  cpp/sweeps/chain.cpp
  cpp/sweeps/dense.cpp
  cpp/sweeps/dispatch.cpp
  cpp/sweeps/inputs.cpp
  cpp/sweeps/kernels_avx2.cpp
  cpp/sweeps/kernels_portable.cpp
  cpp/sweeps/segmented.cpp
  cpp/sweeps/storage.cpp
  cpp/sweeps/sweep.cpp)
set(avx2_source cpp/sweeps/kernels_avx2.cpp)

# Kernels of plain loops: they need the compiler's vectoriser, and neither errno nor floating-point traps.
set_property(SOURCE ${sweep_sources} APPEND PROPERTY COMPILE_OPTIONS -O3 -fno-math-errno -fno-trapping-math)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  # This file alone, chosen at run time on processors that have it. It must not include Eigen: the linker could
  # then pick its AVX2 copy of an inline function for everybody.
  set_property(SOURCE "${avx2_source}" APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma)
  set_property(SOURCE ${sweep_sources} APPEND PROPERTY COMPILE_DEFINITIONS PRIME_ROS_HAVE_AVX2_KERNELS)
else()
  list(REMOVE_ITEM sweep_sources "${avx2_source}")
endif()

Python_add_library(_core MODULE WITH_SOABI ${core_sources} ${sweep_sources})
target_compile_features(_core PRIVATE cxx_std_17)
target_include_directories(_core PRIVATE cpp cpp/include)
target_compile_options(_core PRIVATE -Wall -Wextra)
target_link_libraries(_core PRIVATE
  crocoddyl::crocoddyl pinocchio::pinocchio_default eigenpy::eigenpy OpenMP::OpenMP_CXX)

# pip puts the libraries of Pinocchio and Crocoddyl into site-packages/cmeel.prefix/lib, beside this package; elsewhere
# (ROS, colcon) they stay where they were linked. The old tag (RPATH, not RUNPATH) also serves what libcrocoddyl, which
# has none, loads itself.
option(PRIME_ROS_RELOCATABLE "Leave the folders of this machine out of the installed core's search path" OFF)
set(install_rpath "$ORIGIN/../cmeel.prefix/lib")
if(NOT PRIME_ROS_RELOCATABLE)
  list(APPEND install_rpath "$<TARGET_FILE_DIR:crocoddyl::crocoddyl>" "$<TARGET_FILE_DIR:eigenpy::eigenpy>")
endif()
target_link_options(_core PRIVATE -Wl,--disable-new-dtags)
set_target_properties(_core PROPERTIES
  CXX_EXTENSIONS OFF
  INSTALL_RPATH "${install_rpath}")
