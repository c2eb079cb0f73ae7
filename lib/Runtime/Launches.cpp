//===- Launches.cpp - Launches with all numbers known ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// python/ssa/_call.py does the same, with the same messages.
//
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Call.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <limits>

using namespace mlir::ssa::runtime;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

uint64_t Call::getAddress(unsigned number, uint64_t workspace) const {
  const Buffer &buffer = plan->buffers[number];
  switch (buffer.kind) {
  case Buffer::Argument:
    return arguments[buffer.number].array.pointer;
  case Buffer::Result:
    return resultArrays[buffer.number].pointer;
  case Buffer::Workspace:
    return workspace ? workspace + *values[buffer.number] : 0;
  case Buffer::View:
    break;
  }
  // What is viewed is no view itself; a part of nothing is nothing.
  uint64_t base = getAddress(buffer.number, workspace);
  return base ? base + *values[buffer.offset] : 0;
}

ArrayView Call::getArray(unsigned number, uint64_t workspace) const {
  const Buffer &buffer = plan->buffers[number];
  ArrayView array;
  array.pointer = getAddress(number, workspace);
  array.dtype = buffer.dtype;
  for (auto [size, stride] : llvm::zip(buffer.shape, buffer.strides)) {
    array.shape.push_back(*values[size]);
    array.strides.push_back(*values[stride]);
  }
  return array;
}

/// Appends `size` bytes at the next multiple of `alignment`; returns where.
static size_t append(std::vector<uint8_t> &block, const void *data, size_t size, size_t alignment) {
  size_t offset = llvm::alignTo(block.size(), alignment);
  block.resize(offset + size);
  if (data)
    std::memcpy(block.data() + offset, data, size);
  return offset;
}

static bool fits(DType dtype, int64_t value) {
  return dtype == DType::I1 ? value == 0 || value == 1 : llvm::isIntN(8 * getByteSize(dtype), value);
}

static size_t appendInteger(std::vector<uint8_t> &block, uint64_t value, size_t size) {
  uint8_t bytes[8];
  llvm::support::endian::write64le(bytes, value);
  return append(block, bytes, size, size);
}

static size_t appendFloat(std::vector<uint8_t> &block, double value, DType dtype) {
  uint64_t bits = llvm::bit_cast<uint64_t>(value);
  if (dtype == DType::F32)
    bits = llvm::bit_cast<uint32_t>(float(value));
  return appendInteger(block, bits, getByteSize(dtype));
}

Error Call::addParameters(const Launch &launch, uint64_t workspace, ReadyLaunch &ready) const {
  constexpr size_t mapSize = 128, mapAlignment = 64;
  std::vector<uint8_t> &block = ready.parameters;
  for (auto [i, argument] : llvm::enumerate(launch.arguments)) {
    switch (argument.kind) {
    case KernelArgument::Pointer:
      ready.offsets.push_back(appendInteger(block, getAddress(argument.number, workspace), 8));
      break;
    case KernelArgument::Integer: {
      int64_t value = *values[argument.number];
      if (!fits(argument.dtype, value))
        return fail("argument " + Twine(i) + " of kernel '" + launch.kernel + "' is " + Twine(value) +
                    ", which does not fit " + getName(argument.dtype));
      ready.offsets.push_back(appendInteger(block, value, getByteSize(argument.dtype)));
      break;
    }
    case KernelArgument::Float:
      ready.offsets.push_back(appendFloat(block, argument.constant, argument.dtype));
      break;
    case KernelArgument::ScalarFloat:
      ready.offsets.push_back(appendFloat(block, arguments[argument.number].floating, argument.dtype));
      break;
    case KernelArgument::TensorMap: {
      size_t offset = append(block, nullptr, mapSize, mapAlignment);
      unsigned buffer = plan->tensorMaps[argument.number].buffer;
      ready.offsets.push_back(offset);
      ready.maps.push_back({offset, argument.number, getArray(buffer, workspace)});
      break;
    }
    }
  }
  return Error::success();
}

Error Call::addLaunch(const Launch &launch, uint64_t workspace, const ReadyLaunch::Lane &lane,
                      std::vector<ReadyLaunch> &launches) const {
  std::array<int64_t, 3> grid;
  for (unsigned d = 0; d < 3; ++d)
    grid[d] = *values[launch.grid[d]];
  if (llvm::is_contained(grid, 0) || (launch.condition && !*values[*launch.condition]))
    return Error::success();
  constexpr int64_t maxGrid[3] = {std::numeric_limits<int32_t>::max(), 65535, 65535};
  ReadyLaunch ready;
  for (unsigned d = 0; d < 3; ++d) {
    if (grid[d] < 0 || grid[d] > maxGrid[d])
      return fail("kernel '" + launch.kernel + "' has a grid of " + Twine(grid[0]) + "x" + Twine(grid[1]) + "x" +
                  Twine(grid[2]) + " blocks, but only 2147483647x65535x65535 are possible");
    ready.grid[d] = grid[d];
    ready.block[d] = launch.block[d];
    ready.cluster[d] = launch.cluster[d];
  }
  int64_t shared = *values[launch.shared];
  if (shared < 0 || shared > std::numeric_limits<int32_t>::max())
    return fail("kernel '" + launch.kernel + "' has " + Twine(shared) + " bytes of shared memory");
  ready.lane = lane;
  ready.kernel = launch.kernel;
  ready.hasCluster = launch.hasCluster;
  ready.isDependent = launch.isDependent;
  ready.sharedBytes = shared;
  if (Error error = addParameters(launch, workspace, ready))
    return error;
  launches.push_back(std::move(ready));
  return Error::success();
}

Expected<std::vector<ReadyLaunch>> Call::getLaunches(uint64_t workspace) {
  std::vector<ReadyLaunch> launches;
  if (workspaceBytes && workspace % plan->workspaceAlignment)
    return fail("the workspace must be aligned to " + Twine(plan->workspaceAlignment) + " bytes");
  for (unsigned i = 0; i < plan->launches.size();) {
    auto begins = [&](const Repeat &repeat) { return repeat.launches[0] == i && repeat.launches[1] > i; };
    auto repeat = llvm::find_if(plan->repeats, begins);
    if (repeat == plan->repeats.end()) {
      if (Error error = addLaunch(plan->launches[i++], workspace, {}, launches))
        return error;
      continue;
    }
    int64_t &index = indices[repeat - plan->repeats.begin()], count = *values[repeat->count];
    int64_t lanes = std::min<int64_t>(repeat->lanes, count);
    for (index = 0; index < count; ++index) {
      for (unsigned number = repeat->values[0]; number < repeat->values[1]; ++number)
        evaluate(number);
      if (!problem.empty())
        return fail(problem);
      ReadyLaunch::Lane lane;
      if (lanes > 1)
        lane = {int(repeat - plan->repeats.begin()), unsigned(index % lanes), unsigned(lanes)};
      for (unsigned k = repeat->launches[0]; k < repeat->launches[1]; ++k)
        if (Error error = addLaunch(plan->launches[k], workspace, lane, launches))
          return error;
    }
    i = repeat->launches[1];
  }
  return launches;
}
