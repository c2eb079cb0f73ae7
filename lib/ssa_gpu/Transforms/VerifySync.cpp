//===- VerifySync.cpp - ssa-gpu-verify-sync -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks a kernel, or each of its roles, as its threads do, with the numbers of rounds of its loops in place of unknown sizes, and keeps for every slot
// of shared memory which accesses no barrier has covered yet. Paths that meet are joined: what holds on one may happen.
//
//===----------------------------------------------------------------------===//

#include "VerifySync.h"
#include "ssa_gpu/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

namespace mlir::ssa_gpu {
#define GEN_PASS_DEF_SSAGPUVERIFYSYNCPASS
#include "ssa_gpu/Transforms/Passes.h.inc"
} // namespace mlir::ssa_gpu

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

/// How far a write has come. Smaller is less: where paths meet the smaller counts.
enum Progress : int {
  uncommitted = -1, // a copy in no group
  // 0 .. : a copy in a group, and how many groups were closed after it
  oldest = 64,     // a copy in a group so old that its age no longer matters
  written = 100,   // by its thread, for its thread
  atBarrier = 101, // for all threads, but not for `wgmma`
};

/// Accesses of one slot that may still matter.
struct Slot {
  llvm::SmallMapVector<Operation *, int, 2> writes;
  llvm::SmallSetVector<Operation *, 4> reads;
};

class State {
public:
  explicit State(size_t size = 0) : slots(size) {}
  Slot &operator[](unsigned i) { return slots[i]; }

  void commit() {
    for (Slot &slot : slots)
      for (auto &[op, progress] : slot.writes)
        if (progress < oldest)
          ++progress;
  }

  /// Copies of this thread are done up to so many groups.
  void finish(int64_t pending) {
    for (Slot &slot : slots)
      for (auto &[op, progress] : slot.writes)
        if (progress <= oldest && progress >= pending)
          progress = written;
  }

  /// A barrier, if `pending` is given after copies are done up to that many groups and seen by `wgmma`. It does not wait for products.
  void synchronize(std::optional<int64_t> pending) {
    for (Slot &slot : slots) {
      slot.reads.remove_if([&](Operation *op) { return !products.contains(op); });
      if (pending)
        slot.writes.remove_if([&](auto &write) { return write.second >= *pending; });
      for (auto &[op, progress] : slot.writes)
        if (progress == written)
          progress = atBarrier;
    }
  }

  /// Adds what may have happened on another path. Returns whether that is news.
  bool join(const State &other) {
    bool isNew = products.join(other.products);
    for (auto [slot, from] : llvm::zip_equal(slots, other.slots)) {
      for (Operation *op : from.reads)
        isNew |= slot.reads.insert(op);
      for (auto &[op, progress] : from.writes) {
        auto [known, inserted] = slot.writes.insert({op, progress});
        isNew |= inserted || progress < known->second;
        known->second = std::min(known->second, progress);
      }
    }
    return isNew;
  }

  InFlight products;

private:
  SmallVector<Slot, 0> slots;
};

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Values that are known on the path that is walked: loop variables, numbers of rounds, what is computed of them.
class Numbers {
public:
  void set(Value value, std::optional<int64_t> number) {
    if (number)
      known[value] = *number;
    else
      known.erase(value);
  }
  std::optional<int64_t> get(Value value, unsigned depth = 0) const;

private:
  DenseMap<Value, int64_t> known;
};

} // namespace

std::optional<int64_t> Numbers::get(Value value, unsigned depth) const {
  constexpr unsigned maxDepth = 12;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getBitWidth() == 1 ? constant.getZExtValue() : constant.getSExtValue();
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth || !isa<arith::ArithDialect>(op->getDialect()) || op->getNumOperands() == 0)
    return std::nullopt;
  auto operand = [&](unsigned i) { return get(op->getOperand(i), depth + 1); };
  std::optional<int64_t> a = operand(0);
  if (!a)
    return std::nullopt;
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
    return a;
  if (isa<arith::SelectOp>(op))
    return operand(*a ? 1 : 2);
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> b = operand(1);
  if (!b)
    return std::nullopt;
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) // numbers of rounds are small
    return arith::applyCmpPredicate(compare.getPredicate(), APInt(64, *a, true), APInt(64, *b, true));
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case([&](arith::AddIOp) { return *a + *b; })
      .Case([&](arith::SubIOp) { return *a - *b; })
      .Case([&](arith::MulIOp) { return *a * *b; })
      .Case([&](arith::AndIOp) { return *a & *b; })
      .Case([&](arith::OrIOp) { return *a | *b; })
      .Case<arith::MinSIOp, arith::MinUIOp>([&](auto) { return std::min(*a, *b); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto) { return std::max(*a, *b); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) { return *b > 0 && *a >= 0 ? std::optional(*a / *b) : std::nullopt; })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) { return *b > 0 && *a >= 0 ? std::optional(*a % *b) : std::nullopt; })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Walk
//===----------------------------------------------------------------------===//

namespace {

class KernelWalk {
public:
  /// `root` is the body of a kernel without roles, or a role.
  explicit KernelWalk(Region &root) : root(root) {}

  LogicalResult run();

private:
  bool isUnderstood();
  void findMemory();
  void findUnknowns();
  bool isCounter(scf::ForOp loop) { return numbers.get(loop.getLowerBound()) && numbers.get(loop.getStep()); }
  bool variesInside(Value value, unsigned depth = 0);

  void walk(Region &region, State &state);
  void visit(Operation *op, State &state);
  void walkLoop(scf::ForOp loop, State &state);
  void walkItems(scf::ForOp loop, State &state);
  void walkEach(size_t number, Region &region, const State &before, State &after);
  void walkWhile(scf::WhileOp loop, State &state);
  void walkIf(scf::IfOp op, State &state);

  void access(Operation *op, State &state);
  void read(Operation *op, Value memory, State &state, bool byProducts = false);
  void write(Operation *op, Value memory, State &state, int progress);
  template <typename Fn>
  void forEachSlot(Value memory, State &state, Fn &&fn);
  void report(Operation *op, Value memory, Operation *other, const Twine &does, const Twine &needs, StringRef note);

  Region &root;
  DenseMap<Operation *, unsigned> firstSlots; // of allocations that are not handed over
  unsigned numSlots = 0;
  int64_t maxRing = 1, period = 1; // the most slots of a ring; after how many rounds all are at the same slot again
  /// What paths depend on and is the same all through an item, with the numbers that are tried for it.
  llvm::MapVector<Value, SmallVector<int64_t>> unknowns;
  Numbers numbers;
  DenseMap<Operation *, bool> matters; // whether something happens inside
  bool hasFailed = false;
};

} // namespace

/// Also of a pair of blocks.
static bool isNumberOfBlock(Value number) {
  if (auto pair = number.getDefiningOp<arith::DivUIOp>())
    number = pair.getLhs();
  return number.getDefiningOp<gpu::BlockIdOp>();
}

/// Whether all that touches shared memory is known here. Loops that begin at a number which is only known at run time, with slots that depend
/// on it, are not. The simulator checks them while kernels run.
bool KernelWalk::isUnderstood() {
  return !root.walk([&](Operation *op) {
    bool isShared = llvm::any_of(op->getOperands(), [](Value v) { return isa<SharedType>(v.getType()) && !getAllocation(v); });
    bool isKnownRegion = isa<scf::ForOp, scf::IfOp, scf::WhileOp, FindRowsOp, FillOp, MapRowsOp, MapColumnsOp, MapOp, StoreRowsOp,
                                             StoreColumnsOp, StoreEntriesOp, GatherBoxOp>(op);
    auto loop = dyn_cast<scf::ForOp>(op);
    bool beginsAnywhere = loop && !isCounter(loop) && !isNumberOfBlock(loop.getLowerBound());
    return isShared || beginsAnywhere || (op->getNumRegions() != 0 && !isKnownRegion) ? WalkResult::interrupt() : WalkResult::advance();
  }).wasInterrupted();
}

void KernelWalk::findMemory() {
  root.getParentOfType<gpu::GPUFuncOp>().walk([&](AllocOp alloc) {
    if (isHandedOver(alloc))
      return;
    SharedType type = alloc.getMemory().getType();
    firstSlots[alloc] = numSlots;
    numSlots += type.getNumSlots();
    maxRing = std::max(maxRing, type.getNumSlots());
    period = std::lcm(period, type.getNumSlots());
  });
  root.walk([&](Operation *op) {
    bool happens = isa<gpu::BarrierOp, ssa_gpu::BarrierOp, CommitCopiesOp, WaitCopiesOp, FinishCopiesOp, WaitMmaOp>(op) ||
                   llvm::any_of(op->getOperands(), [](Value v) { return isa<SharedType>(v.getType()); });
    for (Operation *at = op; happens && at != root.getParentOp() && matters.insert({at, true}).second;)
      at = at->getParentOp();
  });
}

/// Whether a value is computed of a variable of a loop that counts rounds.
bool KernelWalk::variesInside(Value value, unsigned depth) {
  constexpr unsigned maxDepth = 12;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return argument.getOwner()->getParent() != &root && (!loop || isCounter(loop));
  }
  return depth == maxDepth || value.getDefiningOp()->getNumRegions() != 0 ||
         llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value v) { return variesInside(v, depth + 1); });
}

/// Numbers of rounds of all loops but those over items, which start at the number of the block; and what conditions compare
/// with a constant.
void KernelWalk::findUnknowns() {
  llvm::MapVector<Value, llvm::SmallSetVector<int64_t, 8>> compared;
  llvm::SmallSetVector<Value, 4> rounds;
  root.walk([&](Operation *op) {
    if (!matters.lookup(op))
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && isCounter(loop) && !numbers.get(loop.getUpperBound()))
      rounds.insert(loop.getUpperBound());
    auto branch = dyn_cast<scf::IfOp>(op);
    auto compare = branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
    if (!compare || numbers.get(compare.getLhs()) || variesInside(compare.getLhs()))
      return;
    if (std::optional<int64_t> constant = numbers.get(compare.getRhs()))
      for (int64_t near : {-1, 0, 1})
        compared[compare.getLhs()].insert(*constant + near);
  });
  // Of many only the numbers that differ most.
  for (Value bound : rounds) {
    SmallVector<int64_t> &counts = unknowns[bound];
    counts = {0, maxRing + 1};
    if (rounds.size() <= 2)
      counts = llvm::to_vector(llvm::seq<int64_t>(0, maxRing + 2));
  }
  constexpr size_t maxCompared = 3;
  for (auto &[value, constants] : compared)
    if (!unknowns.contains(value) && compared.size() <= maxCompared)
      unknowns[value] = constants.takeVector();
}

LogicalResult KernelWalk::run() {
  if (!isUnderstood())
    return success();
  findMemory();
  if (numSlots == 0)
    return success();
  findUnknowns();
  bool hasItems = llvm::any_of(root.getOps<scf::ForOp>(),
                               [&](scf::ForOp loop) { return matters.lookup(loop) && !isCounter(loop); });
  State before(numSlots), after(numSlots);
  if (hasItems)
    walk(root, before);
  else
    walkEach(0, root, before, after);
  return failure(hasFailed);
}

void KernelWalk::walk(Region &region, State &state) {
  for (Operation &op : region.front())
    if (matters.lookup(&op) && !hasFailed)
      visit(&op, state);
}

void KernelWalk::visit(Operation *op, State &state) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) { isCounter(loop) ? walkLoop(loop, state) : walkItems(loop, state); })
      .Case([&](scf::WhileOp loop) { walkWhile(loop, state); })
      .Case([&](scf::IfOp branch) { walkIf(branch, state); })
      .Case([&](gpu::BarrierOp) { state.synchronize(std::nullopt); })
      .Case([&](ssa_gpu::BarrierOp) { state.synchronize(written); }) // all that threads have written, for products too
      .Case([&](WaitCopiesOp wait) { state.synchronize(wait.getPending()); })
      .Case([&](CommitCopiesOp) { state.commit(); })
      .Case([&](FinishCopiesOp finish) { state.finish(finish.getPending()); })
      .Case([&](WaitMmaOp wait) { state.products.wait(wait.getPending()); })
      .Case([&](JoinGroupsOp join) { // it has a barrier between what it writes and what it reads
        write(op, join.getScratch(), state, written);
        state.synchronize(std::nullopt);
        read(op, join.getScratch(), state);
      })
      .Case([&](JoinRowsOp) {}) // warps meet before and after they write what is nobody else's
      .Case([&](MmaOp mma) {
        if (mma.getAsync()) {
          state.products.grow();
          state.products.add(mma, 0);
        }
        access(op, state);
      })
      .Default([&](Operation *other) {
        for (Region &region : other->getRegions())
          walk(region, state);
        access(other, state);
      });
}

void KernelWalk::walkIf(scf::IfOp op, State &state) {
  std::optional<int64_t> condition = numbers.get(op.getCondition());
  State otherwise = state;
  if (!condition || *condition)
    walk(op.getThenRegion(), state);
  if ((!condition || !*condition) && !op.getElseRegion().empty())
    walk(op.getElseRegion(), otherwise);
  if (!condition)
    state.join(otherwise);
  else if (!*condition)
    state = otherwise;
}

void KernelWalk::walkLoop(scf::ForOp loop, State &state) {
  std::optional<int64_t> end = numbers.get(loop.getUpperBound());
  int64_t begin = *numbers.get(loop.getLowerBound()), step = *numbers.get(loop.getStep());
  if (!end || step <= 0)
    return;
  // Rounds in the middle of a long loop do what others did before, in the same slots.
  int64_t edge = step * period * (2 + maxRing / period), middle = (*end - begin - 2 * edge) / (step * period) * step * period;
  for (int64_t i = begin; i < *end; i += step) {
    if (i == begin + edge && middle > 0)
      i += middle;
    numbers.set(loop.getInductionVar(), i);
    walk(loop.getRegion(), state);
  }
}

/// A loop of unknown begin: each round may be followed by any other.
void KernelWalk::walkItems(scf::ForOp loop, State &state) {
  numbers.set(loop.getInductionVar(), std::nullopt);
  bool isOuter = loop->getParentRegion() == &root;
  State after(numSlots);
  do {
    after = State(numSlots);
    if (isOuter) {
      walkEach(0, loop.getRegion(), state, after);
    } else {
      after = state;
      walk(loop.getRegion(), after);
    }
  } while (!hasFailed && state.join(after));
}

/// Walks a region for all numbers of the unknowns from `number` on, and adds to `after` what may hold then.
void KernelWalk::walkEach(size_t number, Region &region, const State &before, State &after) {
  if (hasFailed)
    return;
  if (number == unknowns.size()) {
    State state = before;
    walk(region, state);
    after.join(state);
    return;
  }
  auto &[value, tried] = *std::next(unknowns.begin(), number);
  numbers.set(value, std::nullopt);
  if (numbers.get(value)) // it is computed of others
    return walkEach(number + 1, region, before, after);
  for (int64_t count : tried) {
    numbers.set(value, count);
    walkEach(number + 1, region, before, after);
  }
  numbers.set(value, std::nullopt);
}

void KernelWalk::walkWhile(scf::WhileOp loop, State &state) {
  State after(numSlots);
  do {
    walk(loop.getBefore(), state);
    after = state;
    walk(loop.getAfter(), after);
  } while (!hasFailed && state.join(after));
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void KernelWalk::access(Operation *op, State &state) {
  auto mma = dyn_cast<MmaOp>(op);
  for (const Access &access : getAccesses(op)) {
    if (access.writes)
      write(op, access.memory, state, isa<CopyRowsOp, CopyBlockOp>(op) ? uncommitted : written);
    else
      read(op, access.memory, state, isa<MmaTensorOp>(op) || (mma && mma.getFamily() == Family::wgmma));
  }
}

template <typename Fn>
void KernelWalk::forEachSlot(Value memory, State &state, Fn &&fn) {
  AllocOp alloc = getAllocation(memory);
  if (!firstSlots.contains(alloc))
    return;
  unsigned first = firstSlots[alloc], count = alloc.getMemory().getType().getNumSlots();
  std::optional<int64_t> index;
  for (Operation *op = memory.getDefiningOp(); op != alloc; op = op->getOperand(0).getDefiningOp())
    if (auto slot = dyn_cast<SlotOp>(op))
      index = numbers.get(slot.getIndex());
  if (index && *index >= 0 && *index < count)
    return fn(state[first + *index]);
  for (unsigned i = 0; i < count; ++i)
    fn(state[first + i]);
}

static bool isCopy(int progress) { return progress <= oldest; }

void KernelWalk::read(Operation *op, Value memory, State &state, bool byProducts) {
  forEachSlot(memory, state, [&](Slot &slot) {
    slot.reads.insert(op);
    for (auto &[writer, progress] : slot.writes) {
      if (progress == uncommitted)
        return report(op, memory, writer, "reads {0} while copies into it may be under way",
                      "'ssa_gpu.commit_copies' and 'ssa_gpu.wait_copies' must come between", "copied here");
      if (isCopy(progress))
        return report(op, memory, writer, "reads {0} while copies into it may be under way",
                      "an 'ssa_gpu.wait_copies' that leaves at most " + Twine(progress) + " groups pending must come between",
                      "copied here");
      if (byProducts)
        return report(op, memory, writer, "reads {0} by 'wgmma' before it may see what is written there",
                      "an 'ssa_gpu.wait_copies' must come between", "written here");
      if (progress == written)
        return report(op, memory, writer, "reads {0} before it may see what other threads write there",
                      "a 'gpu.barrier' or 'ssa_gpu.wait_copies' must come between", "written here");
    }
  });
}

void KernelWalk::write(Operation *op, Value memory, State &state, int progress) {
  forEachSlot(memory, state, [&](Slot &slot) {
    for (Operation *reader : slot.reads)
      if (reader != op || isa<JoinGroupsOp>(op)) // other ops read the entries that they write
        return report(op, memory, reader, "overwrites {0} while other threads may still read it",
                      "a 'gpu.barrier' or 'ssa_gpu.wait_copies' must come between", "read here");
    for (auto &[writer, before] : slot.writes) {
      if (isCopy(before))
        return report(op, memory, writer, "overwrites {0} while copies into it may be under way",
                      "an 'ssa_gpu.wait_copies' must come between", "copied here");
      // One thread writes the same entries by the same kind of op.
      if (before == written && writer->getName() != op->getName())
        return report(op, memory, writer, "overwrites {0} while other threads may still write it",
                      "a 'gpu.barrier' or 'ssa_gpu.wait_copies' must come between", "written here");
    }
    slot.writes.clear();
    slot.writes[op] = progress;
  });
}

void KernelWalk::report(Operation *op, Value memory, Operation *other, const Twine &does, const Twine &needs, StringRef note) {
  if (hasFailed)
    return;
  hasFailed = true;
  AllocOp alloc = getAllocation(memory);
  std::string text = does.str();
  text.replace(text.find("{0}"), 3, describe(alloc));
  InFlightDiagnostic diag = op->emitOpError(text) << ": " << needs;
  diag.attachNote(other->getLoc()) << note << " by '" << other->getName() << "'";
  diag.attachNote(alloc.getLoc()) << "the memory is allocated here";
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Tensor memory that is not freed is lost to the kernels behind. In the block where it is allocated nothing leaves the kernel, so what is freed there is
/// freed on every path.
static LogicalResult verifyTensors(gpu::GPUFuncOp kernel) {
  bool isFreed = true;
  kernel.walk([&](AllocTensorsOp alloc) {
    auto frees = [&](Operation &op) {
      auto free = dyn_cast<FreeTensorsOp>(op);
      return free && llvm::equal(free.getMemory(), alloc.getMemory());
    };
    if (llvm::count_if(llvm::make_range(std::next(alloc->getIterator()), alloc->getBlock()->end()), frees) == 1)
      return;
    alloc.emitOpError("needs one 'ssa_gpu.free_tensors' of all its tiles behind it, in the same block: no path may leave the kernel without it");
    isFreed = false;
  });
  return success(isFreed);
}

static LogicalResult verify(gpu::GPUFuncOp kernel) {
  if (failed(verifyTensors(kernel)))
    return failure();
  auto roles = kernel.getBody().getOps<RolesOp>();
  if (roles.empty())
    return success(succeeded(verifyPipes(kernel.getBody())) && succeeded(KernelWalk(kernel.getBody()).run()));
  RolesOp op = *roles.begin();
  if (failed(verifyRoles(op)))
    return failure();
  return success(llvm::all_of(op.getPrograms(), [](Region &role) { return succeeded(KernelWalk(role).run()); }));
}

namespace {
struct VerifySync : ssa_gpu::impl::SSAGPUVerifySyncPassBase<VerifySync> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(failableParallelForEach(&getContext(), getOperation().getOps<gpu::GPUFuncOp>(), verify)))
      signalPassFailure();
  }
};
} // namespace
