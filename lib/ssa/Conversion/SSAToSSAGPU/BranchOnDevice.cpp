//===- BranchOnDevice.cpp - Kernels of which some do the work -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a host function cannot know, as no copy waits for the device, is a branch on memory: launches of both sides are in the plan, and the kernels of
// one leave at their first instruction (ssa-guard-kernels).
//
//===----------------------------------------------------------------------===//

#include "BranchOnDevice.h"
#include "Attend.h"
#include "Block.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::ssa;

//===----------------------------------------------------------------------===//
// Agreement
//===----------------------------------------------------------------------===//

namespace {
/// One block looks at some numbers of lists, spread evenly over all pairs of neighbours and over the places of a list.
class AgreementKernel : public BlockKernel {
public:
  enum Argument { listsArg, flagArg, pairsArg, sampleArg };
  AgreementKernel(HostFunction &host, SparseAttendOp op, int64_t width, ValueRange arguments)
      : BlockKernel(host.builder, op, "ssa_measure_agreement", threads, arguments), width(width) {}

  void build(Value one, int64_t percent);

  /// Places of a list that are looked at, and pairs of lists.
  static int64_t getPlaces(int64_t width) { return std::min<int64_t>(width, 16); }
  static int64_t getMostPairs(int64_t width) { return 8192 / getPlaces(width); }

private:
  /// Whether there is a number at place `i` of the sample, and whether the list before has it, too.
  std::pair<Value, Value> look(Value i, Value count);

  static constexpr int64_t threads = 1024;
  int64_t width;
};
} // namespace

std::pair<Value, Value> AgreementKernel::look(Value i, Value count) {
  Value lists = getArgument(listsArg), places = index(getPlaces(width)), exists = lt(i, count);
  i = min(i, sub(count, index(1)));
  Value pair = div(i, places), place = div(add(mul(rem(i, places), index(width)), rem(pair, index(width))), places);
  Value number = div(mul(pair, getArgument(pairsArg)), getArgument(sampleArg)), perHead = sub(dim(lists, 2), index(1));
  Value head = div(number, perHead), row = rem(number, perHead), b = div(head, dim(lists, 1)), h = rem(head, dim(lists, 1));
  Value value = load(lists, {b, h, add(row, index(1)), place}), isNumber = both(exists, ge(value, i32(0)));
  Value found = load(lists, {b, h, row, findInList(*this, lists, width, {b, h, row}, value)});
  return {isNumber, both(isNumber, eq(found, value))};
}

void AgreementKernel::build(Value one, int64_t percent) {
  constexpr int64_t unroll = 4; // loads under way at a time
  Value numberSums = addShared(builder.getI32Type(), getNumWarps()), commonSums = addShared(builder.getI32Type(), getNumWarps());
  forEachItem(one, [&](Value) {
    Value count = mul(getArgument(sampleArg), index(getPlaces(width)));
    SmallVector<Value> own = loop(threadId(), count, index(unroll * threads), {i32(0), i32(0)}, [&](Value first, ValueRange sums) {
      SmallVector<Value> next(sums);
      for (int64_t u = 0; u < unroll; ++u) {
        auto [isNumber, isCommon] = look(add(first, index(u * threads)), count);
        next[0] = add(next[0], select(isNumber, i32(1), i32(0)));
        next[1] = add(next[1], select(isCommon, i32(1), i32(0)));
      }
      return next;
    });
    Value numbers = scan(own[0], numberSums).total, common = scan(own[1], commonSums).total;
    Value agree = both(lt(i32(0), numbers), ge(mul(common, i32(100)), mul(numbers, i32(percent))));
    ifThen(eq(thread(), i32(0)), [&] { store(agree, getArgument(flagArg), index(0)); });
  });
  finish();
}

Value ssa::measureAgreement(HostFunction &host, SparseAttendOp op, int64_t percent) {
  Emitter e(host.builder, op.getLoc());
  Value lists = host.getBuffer(op.getSelections().front());
  int64_t width = cast<SelectionType>(op.getSelections().front().getType()).getWidth();
  Value flag = host.allocateWorkspace(op.getLoc(), {host.builder.getIndexAttr(1)}, host.builder.getI1Type());
  Value pairs = e.mul(e.mul(e.dim(lists, 0), e.dim(lists, 1)), e.max(e.sub(e.dim(lists, 2), e.index(1)), e.index(0)));
  Value sample = e.min(pairs, e.index(AgreementKernel::getMostPairs(width)));
  AgreementKernel(host, op, width, {lists, flag, pairs, sample}).build(e.index(1), percent);
  return flag;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

/// Hands the flag to the kernel of a launch. Blocks that have nothing to do cost as well: there are no more of them than run at a time.
static void guardLaunch(gpu::LaunchFuncOp launch, Value flag, bool is, TargetAttr target) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernel());
  unsigned number = kernel.getNumArguments();
  (void)kernel.insertArgument(number, flag.getType(), {}, launch.getLoc());
  kernel->setAttr(WhenAttr::attrName(), WhenAttr::get(launch.getContext(), number, is));
  launch.getKernelOperandsMutable().append(flag);
  OpBuilder builder(launch);
  Emitter e(builder, launch.getLoc());
  int64_t threads = kernel.getKnownBlockSize()->front(), most = target.numSMs() * std::max<int64_t>(target.threadsPerSM() / threads, 1);
  launch.getGridSizeXMutable().assign(e.min(launch.getGridSizeX(), e.index(most)));
}

LogicalResult ssa::branchOnDevice(HostFunction &host, Operation *op, Value flag, llvm::function_ref<LogicalResult()> then,
                                  llvm::function_ref<LogicalResult()> otherwise) {
  Location loc = op->getLoc();
  Emitter e(host.builder, loc);
  auto branch = scf::IfOp::create(host.builder, loc, e.load(flag, e.index(0)), /*withElseRegion=*/true);
  for (bool is : {true, false}) {
    Block *block = is ? branch.thenBlock() : branch.elseBlock();
    OpBuilder::InsertionGuard guard(host.builder);
    host.builder.setInsertionPointToStart(block);
    if (failed(is ? then() : otherwise()))
      return failure();
    SmallVector<gpu::LaunchFuncOp> launches;
    block->walk([&](gpu::LaunchFuncOp launch) { launches.push_back(launch); });
    for (gpu::LaunchFuncOp launch : launches)
      guardLaunch(launch, flag, is, TargetAttr::of(op));
  }
  return success();
}
