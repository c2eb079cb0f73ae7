//===- RouteSelect.h - Kernels that score and select ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTESELECT_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTESELECT_H

#include "RouteRoles.h"
#include "TopK.h"
#include "ssa/IR/Regroup.h"

namespace mlir::ssa {

/// What selectors of a kernel have of the op's operands.
TopKOperands getSelectOperands(KernelBuilder &k, const RouteContext &c);

/// Kernels with roles, of which some warps select from the rows that others score.
class SelectRoleKernel : public RouteRoleKernel {
public:
  /// Warpgroups that score: more would leave too few registers for the selectors.
  static constexpr int64_t maxGroups = 2;

protected:
  static constexpr int64_t numProducers = 32;

  SelectRoleKernel(RouteContext &c, const RoutePlan &plan, TopKOp topk, int64_t selectors, int64_t sets)
      : RouteRoleKernel(c, plan, "ssa_route_topk", /*keysFirst=*/plan.folds == 1, numProducers, selectors), topk(topk), sets(sets) {}

  void decode(Value item);
  using ItemBody = llvm::function_ref<SmallVector<Value>(Value item, ValueRange tickets)>;
  /// The three roles, over all items: `decode` tells producers what an item has, `consume` scores one, with three tickets; `select` selects from one,
  /// with a ticket. `beginSelecting` is for selectors before their first. Selectors and producers have so many registers.
  void addSelectRoles(Value total, int64_t registers, llvm::function_ref<void(Value item)> decode, ItemBody consume, llvm::function_ref<void()> beginSelecting,
                      ItemBody select);
  /// Row `query` (index) of the set of a ticket, in this block's memory.
  SmallVector<Value> placeOf(Value ticket, Value query);
  /// Stores scores, a row for every query, behind row 0 of a ticket's set.
  void storeTo(TileEmitter &t, RouteArgument a, Value ticket, Value scores, Value firstColumn);
  TopKOperands getOperands() { return getSelectOperands(*this, c); }
  /// The selector's number among its kind (i32).
  Value getSelector() { return sub(warp(), i32((getNumThreads() - others) / warpSize)); }

  TopKOp topk;
  int64_t sets; // of rows in a block's memory, from one of which is selected while others are written
  Value rowsPipe;
};

/// The kernel that selects from rows while they are being scored, `stretch` columns at a time.
struct RouteStream {
  int64_t stretch;
  Regroup regroup;
  /// Into how many parts a call with few rows may split each of them, for a block each. Each leaves the best that it has, and a second kernel selects
  /// from these (`buildParts`).
  int64_t maxParts;

  static constexpr int64_t selectors = 224;
  bool splits() const { return maxParts > 1; }
  /// Sets of rows. To select from the first stretches, of which all is listed, takes longer than to score them.
  int64_t getSets() const { return regroup.isNone() ? 4 : 2; }
  /// Columns before those of a stretch that a row has, the last ones of the stretch before; and columns of a row, with those that windows have behind it.
  /// Windows are read in vectors, so that all begin at a multiple of their size.
  int64_t getFront() const { return llvm::alignTo(regroup.before, 2 * vectorColumns); }
  int64_t getRowColumns() const { return getFront() + stretch + llvm::alignTo(regroup.getWindow() - 1, 2 * vectorColumns); }
  static constexpr int64_t vectorColumns = 4;
  bool readsVectors() const { return regroup.ratio % vectorColumns == 0; }
  /// Of how many loads a score of the selection is made.
  int64_t getLoadsOfScore() const { return regroup.before + regroup.ratio / (readsVectors() ? vectorColumns : 1); }
  /// Entries of a row's list, and of the lists that its parts leave.
  int64_t getListEntries(TopKOp topk) const;
  int64_t getPartEntries(TopKOp topk) const;
  /// Shared memory of the selectors, for as many queries as a tile has at most.
  static int64_t getSharedBytes();
  void build(RouteContext &c, const RoutePlan &plan, TopKOp topk, int64_t maxBlocks) const;
  void buildParts(RouteContext &c, const RoutePlan &plan, TopKOp topk) const;
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ROUTESELECT_H
