//===- RouteRoles.h - route with roles of warps -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels for chips with `wgmma` whose blocks stay for many items: some warps, the producers, copy queries and keys, steps ahead of those
// that multiply, the consumers. Keys are neighbours in memory, so boxes of a tensor map.
//
//   sums     Three warpgroups have 64 of the pairs each, and all keys of a step.
//   scores   Each warpgroup is a group with queries of its own, for which all keys pass by.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTEROLES_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTEROLES_H

#include "RouteTiles.h"

namespace mlir::ssa {

class RouteRoleKernel : public RouteTileKernel {
public:
  RouteRoleKernel(RouteContext &c, const RoutePlan &plan, StringRef name, bool keysFirst, int64_t producers = 128, int64_t others = 0)
      : RouteTileKernel(c, plan, name, keysFirst, plan.consumers(keysFirst) + producers + others), producers(producers), others(others) {}

  void buildSums(int64_t maxBlocks);
  void buildScores(int64_t maxBlocks);

protected:
  void allocate();
  void useQuerySlot(TileEmitter &t, Value slot);
  /// Consumers learn from producers, who are ahead, what an item is: to find it out takes as long as a step.
  void publishItem(TileEmitter &t, ArrayRef<Value> more);
  SmallVector<Value> awaitItem(TileEmitter &t, Value ticket, int64_t more = 0);
  /// `other` is the program of the threads behind the producers, which have as many registers.
  void addRoles(llvm::function_ref<void()> consume, llvm::function_ref<void()> produce, int64_t producerRegisters = 56,
                llvm::function_ref<void()> other = nullptr);
  /// Copies what an item has of queries, then its keys, steps `beginStep` .. `endStep`-1; tickets of queries and keys, and the next ones.
  SmallVector<Value> produceItem(Value chunk, ValueRange tickets, ArrayRef<Value> more = {});
  Value produceKeys(Value chunk, Value ticket);
  void copyQueryBoxes(TileEmitter &t, Value chunk, Value slot, Value ticket);

  std::pair<Sums, Value> consumeSums(TileEmitter &t, Value chunk, Value ticket);
  /// Scores of all steps of an item. The next ticket of keys and, joined with `maxima` if that is given, the greatest score of every row and
  /// column of the steps' tiles.
  /// Whether warps have registers for two products at a time: up to two warpgroups, if scores need none for other values of a region.
  bool hasTwoProducts() const { return plan.groups <= 2 && isProportional(); }
  TileEmitter getConsumerTiles() { return keysFirst ? TileEmitter(*this, plan.keys, plan.groups) : TileEmitter(*this, plan.pairs, plan.keyGroups); }
  /// The operand of all chunks' products that a step's keys are.
  Value loadStepKeys(TileEmitter &t, const Step &step);
  Value beginProducts(TileEmitter &t, Value keys, Value chunk);
  /// What joins the products of a step with the state before.
  using JoinStep = llvm::function_ref<SmallVector<Value>(Value number, Value products, Value stage, ValueRange state)>;
  std::pair<Value, SmallVector<Value>> consumeAhead(TileEmitter &t, Value ticket, ValueRange state, llvm::function_ref<Value(Value keys)> begin, JoinStep join);
  Value joinChunks(TileEmitter &t, const Step &step);
  Value joinStep(TileEmitter &t, Value products, Value number, Value stage, const VisibleBlocks &visible);
  SmallVector<Value> releaseKeys(TileEmitter &t, Value ticket, llvm::function_ref<SmallVector<Value>()> join);
  std::pair<Value, Value> consumeScores(TileEmitter &t, Value ticket, llvm::function_ref<void(Value scores, Value firstColumn)> store,
                                        Value maxima = Value());

  Value next(Value ticket, int64_t slots);
  Value slotOf(Value ticket, int64_t slots);
  /// Where the keys of a step of a ticket are.
  Value stageOf(Value ticket, Value step);

  int64_t producers, others; // threads
  Value queryPipe, keyPipe;
  static constexpr int64_t numItemEntries = 8, maxMore = 2;
  Value itemRing; // of these, for each item that has its queries in shared memory
  Value exchange; // memory through which warps join rows
  VisibleBlocks visibleRings;
};

/// The sizes of kernels for an op, if these take it: the first is needed for a softmax only. Scores are by pairs where that is possible.
struct RouteRolePlans {
  static std::optional<RouteRolePlans> get(const RouteContext &c, TargetAttr target, int64_t otherBytes = 0, int64_t maxGroups = 3);
  RoutePlan sums, scores;
};

/// What kernels with roles have as arguments besides those that all have.
void addRoleArguments(RouteContext &c);
/// Sets the tensor maps of the kernel of a plan: of keys boxes of a step, of queries of the pairs of a group; with the columns of a panel.
void setMaps(RouteContext &c, const RoutePlan &plan);
/// Makes the kernels that leave the references of a softmax in memory.
void buildReferences(RouteContext &c, const RouteRolePlans &plans, TargetAttr target);

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTEROLES_H
