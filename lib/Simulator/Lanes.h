//===- Lanes.h - Instructions that work lane by lane ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A row of the instruction tables is a lambda: its types say which registers it takes, its body what a lane does.
//
//   tables.rows["add.s32"] = lanewise([](uint32_t a, uint32_t b) { return a + b; });
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_SIMULATOR_LANES_H
#define SSA_LIB_SIMULATOR_LANES_H

#include "Decoder.h"
#include "Machine.h"
#include <utility>

namespace mlir::ssa::sim {

template <class T>
constexpr Class classFor() {
  if constexpr (std::is_same_v<T, bool>)
    return Class::Predicate;
  else
    return sizeof(T) == 2 ? Class::Half : sizeof(T) == 4 ? Class::Word : Class::Double;
}

/// The one object of a type without contents: a lambda that captures nothing.
template <class F>
const F &stateless() {
  static_assert(std::is_empty_v<F>);
  alignas(F) static const char storage[sizeof(F)] = {};
  return reinterpret_cast<const F &>(storage);
}

/// A source operand, lane by lane.
template <class T>
struct Source {
  const T *lanes;
  Source(const Warp &warp, int32_t offset) : lanes(warp.source<T>(offset)) {}
  T operator[](unsigned lane) const { return lanes[lane]; }
};
template <>
struct Source<bool> {
  uint32_t mask;
  Source(const Warp &warp, int32_t offset) : mask(warp.predicate(offset)) {}
  bool operator[](unsigned lane) const { return mask >> lane & 1; }
};

template <class F, class R, class... A>
struct Lanewise {
  template <size_t... I>
  static void run(Warp &warp, const Instruction &instruction, std::index_sequence<I...>) {
    const F &function = stateless<F>();
    std::tuple<Source<A>...> sources(Source<A>(warp, instruction.operands[I + 1])...);
    if constexpr (std::is_same_v<R, bool>) {
      uint32_t mask = 0;
      for (unsigned lane = 0; lane < numLanes; ++lane)
        mask |= uint32_t(bool(function(std::get<I>(sources)[lane]...))) << lane;
      warp.setPredicate(instruction.operands[0], mask);
    } else if (warp.active == ~0u) {
      R results[numLanes]; // sources may be the destination
      for (unsigned lane = 0; lane < numLanes; ++lane)
        results[lane] = function(std::get<I>(sources)[lane]...);
      std::memcpy(warp.destination<R>(instruction.operands[0]), results, sizeof(results));
    } else {
      R *results = warp.destination<R>(instruction.operands[0]);
      for (uint32_t left = warp.active; left; left &= left - 1) {
        unsigned lane = __builtin_ctz(left);
        results[lane] = function(std::get<I>(sources)[lane]...);
      }
    }
  }
  static void handle(Warp &warp, const Instruction &instruction) {
    run(warp, instruction, std::index_sequence_for<A...>());
  }
};

template <class F, class R, class... A>
Row lanewiseRow(R (F::*)(A...) const) {
  return {Lanewise<F, R, A...>::handle, classFor<R>(), {classFor<A>()...}};
}
template <class F>
Row lanewise(F) {
  return lanewiseRow<F>(&F::operator());
}

/// Calls the function for the number of each active lane.
template <class F>
void forEachLane(uint32_t lanes, F function) {
  for (; lanes; lanes &= lanes - 1)
    function(unsigned(__builtin_ctz(lanes)));
}

} // namespace mlir::ssa::sim

#endif // SSA_LIB_SIMULATOR_LANES_H
