//===- Driver.h - The simulator as a CUDA driver ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The entry points of the CUDA driver that launchers need, on top of the simulator: a launcher that was made for GPUs
// runs on it as it is. There is one device, streams do nothing, and a launch returns when the kernel is done. A launch
// with faults fails, and the text of its error is the list of faults.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_SIMULATOR_DRIVER_H
#define SSA_SIMULATOR_DRIVER_H

#include "ssa/Simulator/Simulator.h"

namespace mlir::ssa::sim {

/// What the device is like: "sm_90a", "sm_100", .. False if there is no such chip. Before anything else.
bool setChip(std::string_view chip);

/// How launches run; changes hold for those that follow.
Settings &driverSettings();

/// What all launches so far did.
const Statistics &driverStatistics();

/// Names device memory for messages.
void nameMemory(uint64_t address, std::string name);

/// The entry point of a name, "cuLaunchKernel"; null if there is none.
void *findEntryPoint(std::string_view name);

} // namespace mlir::ssa::sim

#endif // SSA_SIMULATOR_DRIVER_H
