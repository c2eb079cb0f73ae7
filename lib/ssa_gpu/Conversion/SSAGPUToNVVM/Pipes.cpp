//===- Pipes.cpp - Roles and the barriers between them --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A pipe is an array of mbarriers: one per slot that says it is full, then one per slot that says it is empty. They are used through
// inline assembly that clobbers memory: the intrinsics claim to touch no more than the barrier, so that LLVM could move what they order.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

constexpr int64_t barrierBytes = 8;

/// Inline assembly that has no result or an i32, and orders memory.
Value callAsm(ThreadEmitter &e, StringRef text, StringRef constraints, ValueRange operands, bool hasResult = false) {
  return e.orderingAsm(text, constraints, operands, hasResult ? Type(e.builder.getI32Type()) : Type());
}

/// The slot of a ticket, and how often, modulo 2, all slots have been used before it.
struct Turn {
  Turn(ThreadEmitter &e, Value ticket, int64_t slots) {
    Value isSecond = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::uge, ticket, e.i32(slots));
    parity = arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI32Type(), isSecond);
    Value second = arith::SubIOp::create(e.builder, e.loc, ticket, e.i32(slots));
    slot = arith::SelectOp::create(e.builder, e.loc, isSecond, second, ticket);
  }
  Value slot, parity;
};

int64_t pipeBarriers(PipeType type) { return type.getBytes() / (type.getSlots() * barrierBytes); }

Value getFullBarrier(ThreadEmitter &e, Value pipe, const Turn &turn) { return e.offset(pipe, e.mul(turn.slot, barrierBytes)); }
Value getEmptyBarrier(ThreadEmitter &e, Value pipe, const Turn &turn, int64_t slots) {
  return e.offset(e.offset(pipe, e.mul(turn.slot, barrierBytes)), slots * barrierBytes);
}

Value getPairBarrier(ThreadEmitter &e, Value pipe, const Turn &turn, int64_t slots) {
  return e.offset(e.offset(pipe, e.mul(turn.slot, barrierBytes)), 2 * slots * barrierBytes);
}

/// Waits until the phase of this parity has ended.
void wait(ThreadEmitter &e, Value barrier, Value parity, StringRef scope = "cta") {
  auto loop = scf::WhileOp::create(e.builder, e.loc, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(e.builder);
  e.builder.createBlock(&loop.getBefore());
  std::string text = ("{\n\t.reg .pred done;\n\tmbarrier.try_wait.parity.acquire." + scope + ".shared::cta.b64 done, [$1], $2;\n\tselp.b32 $0, 0, 1, done;\n\t}").str();
  Value again = callAsm(e, text, "=r,r,r", {barrier, parity}, /*hasResult=*/true);
  Value isAgain = arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::ne, again, e.i32(0));
  scf::ConditionOp::create(e.builder, e.loc, isAgain, ValueRange());
  e.builder.createBlock(&loop.getAfter());
  scf::YieldOp::create(e.builder, e.loc);
}

void arriveOnce(ThreadEmitter &e, Value barrier) {
  callAsm(e, "{\n\t.reg .b64 state;\n\tmbarrier.arrive.release.cta.shared::cta.b64 state, [$0];\n\t}", "r", {barrier});
}

/// The arrival of a warp, behind what all its lanes have done: of one lane, or of every lane for tools that know no better.
void arrive(ThreadEmitter &e, Value barrier, bool everyLane) {
  NVVM::SyncWarpOp::create(e.builder, e.loc, e.i32(-1)); // no inline assembly, which LLVM would copy to lane 0 and to the others
  if (everyLane)
    return arriveOnce(e, barrier);
  scf::IfOp::create(e.builder, e.loc, e.lt(e.lane(), 1), [&](OpBuilder &, Location) {
    arriveOnce(e, barrier);
    scf::YieldOp::create(e.builder, e.loc);
  });
}

/// `wgmma` reads shared memory through another proxy than copies write it through.
void fenceProxies(ThreadEmitter &e) { callAsm(e, "fence.proxy.async.shared::cta;", "", {}); }

/// In the second block of a pair: tells the first that a slot is there. In the first: waits for that.
void meetPair(ThreadEmitter &e, Value barrier, Value parity) {
  constexpr StringLiteral arrive = "{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, $0, 0;\n\t"
                                   "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t}";
  ifFirstOfPair(e, [&] { wait(e, barrier, parity, "cluster"); }, [&] {
    NVVM::SyncWarpOp::create(e.builder, e.loc, e.i32(-1));
    scf::IfOp::create(e.builder, e.loc, e.lt(e.lane(), 1), [&](OpBuilder &, Location) {
      callAsm(e, arrive, "r", {barrier});
      scf::YieldOp::create(e.builder, e.loc);
    });
  });
}

bool isFollowedByAnother(AllocPipeOp op) {
  return llvm::any_of(llvm::make_range(std::next(op->getIterator()), op->getBlock()->end()), llvm::IsaPred<AllocPipeOp>);
}

struct ConvertAllocPipe : OpConversionPattern<AllocPipeOp> {
  ConvertAllocPipe(const TypeConverter &converter, MLIRContext *context, bool everyLaneArrives)
      : OpConversionPattern(converter, context), arrivalsOfWarp(everyLaneArrives ? 32 : 1) {}

  LogicalResult matchAndRewrite(AllocPipeOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return op.emitOpError("has no offset; run 'ssa-gpu-allocate' first");
    ThreadEmitter e(rewriter, op);
    Value pipe = e.sharedAddress(*op.getOffset());
    int64_t slots = op.getPipe().getType().getSlots();
    scf::IfOp::create(rewriter, e.loc, e.lt(e.thread(), 1), [&](OpBuilder &, Location) {
      // A warp says that it has published; with copies all its lanes say that theirs are done.
      PipeType type = op.getPipe().getType();
      uint64_t counts[] = {op.getProducers() * (arrivalsOfWarp + (type.getCopies() ? 32 : 0)), op.getConsumers() * arrivalsOfWarp, /*the other block of a pair*/ 1};
      std::string text;
      for (int64_t i = 0; i < pipeBarriers(type) * slots; ++i)
        text += llvm::formatv("mbarrier.init.shared::cta.b64 [$0+{0}], {1};\n\t", i * barrierBytes, counts[i / slots]);
      callAsm(e, text, "r", pipe);
      if (!isFollowedByAnother(op)) {
        fenceProxies(e); // boxes count on the barriers through another proxy; one fence for all
        if (isOfPair(op))
          callAsm(e, "fence.mbarrier_init.release.cluster;", "", {});
      }
      scf::YieldOp::create(rewriter, e.loc);
    });
    rewriter.replaceOp(op, pipe);
    return success();
  }

  int64_t arrivalsOfWarp;
};

/// An op on the slot of a ticket.
template <typename Op>
struct ConvertPipeOp : OpConversionPattern<Op> {
  ConvertPipeOp(const TypeConverter &converter, MLIRContext *context, bool everyLaneArrives)
      : OpConversionPattern<Op>(converter, context), everyLaneArrives(everyLaneArrives) {}

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t slots = op.getPipe().getType().getSlots();
    Turn turn(e, adaptor.getTicket(), slots);
    Value pipe = adaptor.getPipe();
    if constexpr (std::is_same_v<Op, AcquireOp> || std::is_same_v<Op, AwaitEmptyOp>) // a slot is empty before its first use: the phase before the first counts as ended
      wait(e, op, getEmptyBarrier(e, pipe, turn, slots), e.bitXor(turn.parity, e.i32(1)));
    else if constexpr (std::is_same_v<Op, PublishOp>) {
      if (op.getPipe().getType().getCopies())
        callAsm(e, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r", {getFullBarrier(e, pipe, turn)});
      arrive(e, op, getFullBarrier(e, pipe, turn));
    } else if constexpr (std::is_same_v<Op, AwaitOp>) {
      wait(e, op, getFullBarrier(e, pipe, turn), turn.parity);
      if (op.getPipe().getType().getCopies()) // no producer saw them done
        fenceProxies(e);
    } else
      arrive(e, op, getEmptyBarrier(e, pipe, turn, slots));
    if constexpr (std::is_same_v<Op, AcquireOp> || std::is_same_v<Op, AwaitOp>)
      if (op.getPair()) {
        meetPair(e, getPairBarrier(e, pipe, turn, slots), turn.parity);
        if (ordersTensorMemory(op, op.getPipe()))
          fenceTensors(e, /*before=*/false);
      }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void wait(ThreadEmitter &e, Op op, Value barrier, Value parity) {
    ::wait(e, barrier, parity);
    if (ordersTensorMemory(op, op.getPipe()))
      fenceTensors(e, /*before=*/false);
  }

  void arrive(ThreadEmitter &e, Op op, Value barrier) const {
    if (op.getProducts())
      return arriveAfterProducts(e, op, barrier);
    if (ordersTensorMemory(op, op.getPipe()))
      fenceTensors(e, /*before=*/true);
    ::arrive(e, barrier, everyLaneArrives);
  }

  bool everyLaneArrives;
};

struct ConvertFinishCopies : OpConversionPattern<FinishCopiesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FinishCopiesOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    callAsm(e, ("cp.async.wait_group " + Twine(op.getPending()) + ";").str(), "", {});
    fenceProxies(e);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertCopyBox : OpConversionPattern<CopyBoxOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(CopyBoxOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    SharedType tile = op.getTile().getType();
    int64_t rows = tile.getShape()[0], boxRows = getBoxRows(op.getMap().getType(), tile), panels = tile.getSlotBytes() / (rows * 128), rank = op.getAt().size() + 1;
    Turn turn(e, adaptor.getTicket(), op.getPipe().getType().getSlots());
    Value full = getFullBarrier(e, adaptor.getPipe(), turn);
    Value map = UnrealizedConversionCastOp::create(rewriter, e.loc, LLVM::LLVMPointerType::get(op.getContext()), op.getMap()).getResult(0);
    // One piece of assembly for all, in which what is constant is no operand.
    std::string rest, constraints = "r,l,r";
    for (int64_t i = 1; i < rank; ++i) { // innermost first
      rest += ", $" + std::to_string(2 + i);
      constraints += ",r";
    }
    std::string text = llvm::formatv("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$2], {0};", boxRows * panels * 128);
    for (int64_t panel = 0; panel < panels; ++panel)
      text += llvm::formatv("\n\tcp.async.bulk.tensor.{0}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [$0+{1}], [$1, {{{2}{3}}], [$2];", rank,
                            (panel * rows + op.getFirstRow()) * 128, op.getFirstColumn() + tile.getPanelColumns() * panel, rest);
    SmallVector<Value> operands = {adaptor.getTile(), map, full};
    llvm::append_range(operands, llvm::reverse(adaptor.getAt()));
    scf::IfOp::create(rewriter, e.loc, e.lt(e.thread(), 1), [&](OpBuilder &, Location) {
      callAsm(e, text, constraints, operands);
      scf::YieldOp::create(rewriter, e.loc);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Every thread that has a part in it copies four rows of a panel at a time, and each warp says how many bytes its threads copy.
struct ConvertGatherBox : OpConversionPattern<GatherBoxOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(GatherBoxOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    constexpr int64_t rowsAtATime = 4;
    SharedType tile = op.getTile().getType();
    int64_t rows = tile.getShape()[0], fours = rows / rowsAtATime, pieces = tile.getSlotBytes() / (rows * 128) * fours;
    Turn turn(e, adaptor.getTicket(), op.getPipe().getType().getSlots());
    Value full = getFullBarrier(e, adaptor.getPipe(), turn);
    Value map = UnrealizedConversionCastOp::create(rewriter, e.loc, LLVM::LLVMPointerType::get(op.getContext()), op.getMap()).getResult(0);
    Value thread = e.thread();
    for (int64_t begin = 0; begin < pieces; begin += e.getNumThreads()) {
      int64_t left = pieces - begin;
      ifTrue(e, left < e.getNumThreads() ? e.lt(thread, left) : Value(), [&] {
        Value warps = e.i32(std::min<int64_t>(left, 32));
        if (left > 32 && left < e.getNumThreads() && left % 32 != 0) // the last warp has fewer
          warps = arith::MinUIOp::create(rewriter, e.loc, warps, e.sub(e.i32(left), e.mul(e.warp(), 32)));
        ifTrue(e, e.lt(e.lane(), 1), [&] {
          callAsm(e, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r", {full, e.mul(warps, rowsAtATime * 128)});
        });
        copyFour(e, op, adaptor, e.add(thread, begin), rows, fours, map, full);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void ifTrue(ThreadEmitter &e, Value condition, llvm::function_ref<void()> body) {
    if (!condition)
      return body();
    scf::IfOp::create(e.builder, e.loc, condition, [&](OpBuilder &, Location) {
      body();
      scf::YieldOp::create(e.builder, e.loc);
    });
  }

  static void copyFour(ThreadEmitter &e, GatherBoxOp op, OpAdaptor adaptor, Value piece, int64_t rows, int64_t fours, Value map, Value full) {
    constexpr StringLiteral text = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6, $7}], [$2];";
    SharedType tile = op.getTile().getType();
    Value row = e.mul(e.rem(piece, fours), 4), panel = e.div(piece, fours);
    SmallVector<Value> operands = {e.offset(adaptor.getTile(), e.add(e.mul(panel, rows * 128), e.mul(row, 128))), map, full,
                                   e.add(adaptor.getColumn(), e.mul(panel, tile.getPanelColumns()))};
    for (int64_t i = 0; i < 4; ++i)
      operands.push_back(e.inlineBody(op.getBody(), e.add(row, i)).front());
    callAsm(e, text, "r,l,r,r,r,r,r,r", operands);
  }
};

struct ConvertBarrier : OpConversionPattern<ssa_gpu::BarrierOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(ssa_gpu::BarrierOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    bool hasTensors = usesTensorMemory(op);
    if (needsProxyFence(op))
      fenceProxies(e);
    if (hasTensors)
      fenceTensors(e, /*before=*/true);
    e.barrier();
    if (hasTensors)
      fenceTensors(e, /*before=*/false);
    rewriter.eraseOp(op);
    return success();
  }
};

/// A branch for the warps that have these threads; the builder is inside.
void enterWarps(ThreadEmitter &e, int64_t firstThread, int64_t threads) {
  // The group is the same for all lanes of a warp, which the assembler can only know of a value that all read from one lane.
  OpBuilder &b = e.builder;
  Value warp = e.readLane(e.warp(), e.i32(0)), first = e.i32(firstThread / 32), end = e.i32((firstThread + threads) / 32);
  Value isIn = arith::AndIOp::create(b, e.loc, arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::uge, warp, first),
                                     arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::ult, warp, end));
  auto branch = scf::IfOp::create(b, e.loc, isIn, /*withElseRegion=*/false);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
}

void expand(RolesOp op) {
  OpBuilder builder(op);
  ThreadEmitter e(builder, op);
  // Barriers are there before anyone uses them.
  synchronizeBlocks(builder, e, op);
  auto blocks = op->getParentOfType<gpu::GPUFuncOp>()->getAttrOfType<IntegerAttr>("nvvm.minctasm");
  int64_t share = 65536 / e.getNumThreads() / (blocks ? blocks.getInt() : 1) / 8 * 8;
  for (unsigned role = 0, end, roles = op.getPrograms().size(); role < roles; role = end) {
    int64_t first = op.getFirstThread(role), last = first + op.getThreads()[role];
    for (end = role + 1; end < roles && op.getFirstThread(end) % RolesOp::warpgroup != 0; ++end)
      last = op.getFirstThread(end) + op.getThreads()[end];
    OpBuilder::InsertionGuard guard(builder);
    // All warps of a warpgroup set their registers together, also those that do nothing else.
    int64_t reserved = llvm::alignTo(last - first, RolesOp::warpgroup);
    enterWarps(e, first, reserved);
    int32_t registers = op.getRegisters()[role];
    auto action = registers > share ? NVVM::SetMaxRegisterAction::increase : NVVM::SetMaxRegisterAction::decrease;
    NVVM::SetMaxRegisterOp::create(builder, e.loc, registers, action);
    for (unsigned i = role; i < end; ++i) {
      OpBuilder::InsertionGuard guard(builder);
      if (op.getThreads()[i] < reserved)
        enterWarps(e, op.getFirstThread(i), op.getThreads()[i]);
      Block &source = op.getPrograms()[i].front();
      source.getTerminator()->erase();
      builder.getInsertionBlock()->getOperations().splice(builder.getInsertionPoint(), source.getOperations());
    }
  }
  op.erase();
}

} // namespace

void ssa_gpu::expandRoles(gpu::GPUFuncOp kernel) {
  kernel.walk([](RolesOp op) { expand(op); });
}

void ssa_gpu::populatePipePatterns(const TypeConverter &converter, RewritePatternSet &patterns, bool everyLaneArrives) {
  patterns.add<ConvertFinishCopies, ConvertCopyBox, ConvertGatherBox, ConvertBarrier>(converter, patterns.getContext());
  patterns.add<ConvertAllocPipe, ConvertPipeOp<AcquireOp>, ConvertPipeOp<AwaitEmptyOp>, ConvertPipeOp<PublishOp>, ConvertPipeOp<AwaitOp>, ConvertPipeOp<ReleaseOp>>(
      converter, patterns.getContext(), everyLaneArrives);
}
