//===- VerifyRoles.cpp - Slots that roles hand over -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks each role and keeps which tickets it holds, on every path: those acquired and not yet published, awaited and not yet released. A
// ticket goes by several names, since loops and branches pass it on; it is lost when none is left.
//
//===----------------------------------------------------------------------===//

#include "VerifySync.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

namespace {

/// A slot of a pipe that a role has.
struct Ticket {
  Value pipe;
  bool isEmpty; // acquired, to be written; else awaited, to be read
  Operation *taken;
  llvm::SmallSetVector<Value, 4> names;

  bool isSameSlot(const Ticket &other) const {
    return pipe == other.pipe && isEmpty == other.isEmpty && llvm::any_of(names, [&](Value name) { return other.names.contains(name); });
  }
};

struct State {
  SmallVector<Ticket, 4> held;
  InFlight copies, products;
  llvm::SmallSetVector<Operation *, 4> reads; // products that other warps of the role may still make
};

/// What is known of memory that is handed over: the pipes whose slots were held at each of its accesses so far.
struct Guard {
  llvm::SmallSetVector<Value, 4> pipes;
  Operation *access = nullptr;
};

class RoleWalk {
public:
  RoleWalk(DenseMap<Operation *, Guard> &guards, bool knowsGuards) : guards(guards), knowsGuards(knowsGuards) {}
  bool walkRole(Region &role);

private:
  void walk(Region &region, State &state);
  void visit(Operation *op, State &state);
  void walkIf(scf::IfOp op, State &state);
  void walkFor(scf::ForOp loop, State &state);
  void walkWhile(scf::WhileOp loop, State &state);
  State passOn(const State &state, ValueRange from, ValueRange to, Region *left = nullptr);
  bool join(Operation *at, State &state, const State &other);

  void take(Operation *op, Value pipe, Value ticket, bool isEmpty, State &state);
  void giveBack(Operation *op, Value pipe, Value ticket, bool isEmpty, State &state, bool afterProducts = false);
  void access(Operation *op, const Access &access, State &state);
  InFlightDiagnostic fail(Operation *op, const Twine &message) {
    hasFailed = true;
    return op->emitOpError(message);
  }

  DenseMap<Operation *, Guard> &guards; // of allocations
  DenseMap<Operation *, llvm::SmallPtrSet<Operation *, 4>> taken; // for each access, what took the slots that were held
  bool knowsGuards;                     // from a walk of all roles
  bool hasFailed = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

bool RoleWalk::walkRole(Region &role) {
  State state;
  walk(role, state);
  if (!hasFailed && !state.held.empty())
    fail(state.held.front().taken, "takes a slot that the role does not give back before its end");
  return !hasFailed;
}

void RoleWalk::walk(Region &region, State &state) {
  for (Operation &op : region.front())
    if (!hasFailed)
      visit(&op, state);
}

/// The state where values are passed on to others, and `left` is the region that control leaves.
State RoleWalk::passOn(const State &state, ValueRange from, ValueRange to, Region *left) {
  State passed = state;
  for (Ticket &ticket : passed.held) {
    llvm::SmallSetVector<Value, 4> names;
    for (Value name : ticket.names)
      if (!left || !left->isAncestor(name.getParentRegion()))
        names.insert(name);
    for (auto [before, after] : llvm::zip_equal(from, to))
      if (ticket.names.contains(before))
        names.insert(after);
    ticket.names = names;
  }
  return passed;
}

/// Adds what holds on another path that meets this one. Returns whether anything changed.
bool RoleWalk::join(Operation *at, State &state, const State &other) {
  bool isNew = state.copies.join(other.copies);
  isNew |= state.products.join(other.products);
  isNew |= state.reads.set_union(other.reads);
  for (Ticket &ticket : state.held) {
    const Ticket *match = llvm::find_if(other.held, [&](const Ticket &o) { return ticket.isSameSlot(o); });
    if (match == other.held.end()) {
      fail(at, "has paths that meet with different slots of a pipe: each must hold the same").attachNote(ticket.taken->getLoc()) << "one holds what is taken here";
      return false;
    }
    size_t before = ticket.names.size();
    ticket.names.remove_if([&](Value name) { return !match->names.contains(name); });
    isNew |= ticket.names.size() != before;
  }
  if (other.held.size() != state.held.size()) {
    fail(at, "has paths that meet with different slots of a pipe: each must hold the same").attachNote(other.held.back().taken->getLoc()) << "one holds what is taken here";
    return false;
  }
  return isNew;
}

void RoleWalk::walkIf(scf::IfOp op, State &state) {
  State otherwise = state;
  walk(op.getThenRegion(), state);
  if (!op.getElseRegion().empty())
    walk(op.getElseRegion(), otherwise);
  if (hasFailed)
    return;
  state = passOn(state, op.thenYield().getOperands(), op.getResults(), &op.getThenRegion());
  if (!op.getElseRegion().empty())
    otherwise = passOn(otherwise, op.elseYield().getOperands(), op.getResults(), &op.getElseRegion());
  join(op, state, otherwise);
}

void RoleWalk::walkFor(scf::ForOp loop, State &state) {
  State head = passOn(state, loop.getInitArgs(), loop.getRegionIterArgs());
  bool isNew = true;
  while (isNew && !hasFailed) {
    State round = head;
    walk(loop.getRegion(), round);
    if (!hasFailed)
      isNew = join(loop, head, passOn(round, loop.getYieldedValues(), loop.getRegionIterArgs(), &loop.getRegion()));
  }
  state = passOn(head, loop.getRegionIterArgs(), loop.getResults(), &loop.getRegion());
}

void RoleWalk::walkWhile(scf::WhileOp loop, State &state) {
  State head = passOn(state, loop.getInits(), loop.getBeforeArguments()), decided;
  bool isNew = true;
  while (isNew && !hasFailed) {
    decided = head;
    walk(loop.getBefore(), decided);
    State round = passOn(decided, loop.getConditionOp().getArgs(), loop.getAfterArguments(), &loop.getBefore());
    walk(loop.getAfter(), round);
    if (!hasFailed)
      isNew = join(loop, head, passOn(round, loop.getYieldedValues(), loop.getBeforeArguments(), &loop.getAfter()));
  }
  state = passOn(decided, loop.getConditionOp().getArgs(), loop.getResults(), &loop.getBefore());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void RoleWalk::visit(Operation *op, State &state) {
  for (const Access &a : getAccesses(op))
    access(op, a, state);
  if (hasFailed)
    return;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::IfOp branch) { walkIf(branch, state); })
      .Case([&](scf::ForOp loop) { walkFor(loop, state); })
      .Case([&](scf::WhileOp loop) { walkWhile(loop, state); })
      .Case([&](AcquireOp acquire) { take(op, acquire.getPipe(), acquire.getTicket(), /*isEmpty=*/true, state); })
      .Case([&](AwaitOp await) { take(op, await.getPipe(), await.getTicket(), /*isEmpty=*/false, state); })
      .Case([&](PublishOp publish) { giveBack(op, publish.getPipe(), publish.getTicket(), /*isEmpty=*/true, state); })
      .Case([&](ReleaseOp release) { giveBack(op, release.getPipe(), release.getTicket(), /*isEmpty=*/false, state, release.getProducts()); })
      .Case<CopyRowsOp, CopyBlockOp>([&](auto copy) { state.copies.add(copy, -1); })
      .Case([&](StoreOperandOp store) { // as a copy of a group that is closed: products see it once copies are finished
        if (AllocOp alloc = getAllocation(store.getTarget()); alloc && isHandedOver(alloc))
          state.copies.add(store, 0);
      })
      .Case([&](ssa_gpu::BarrierOp) { state.reads.remove_if([&](Operation *product) { return !state.products.contains(product); }); })
      .Case([&](CommitCopiesOp) { state.copies.grow(); })
      .Case<FinishCopiesOp, WaitCopiesOp>([&](auto wait) { state.copies.wait(wait.getPending()); })
      .Case([&](MmaOp mma) {
        state.reads.insert(mma);
        if (mma.getAsync()) {
          state.products.grow();
          state.products.add(mma, 0);
        }
      })
      .Case([&](WaitMmaOp wait) {
        state.products.wait(wait.getPending());
        if (Operation *product = wait.getTile().getDefiningOp(); product && state.products.contains(product))
          fail(op, "gives the result of a product that may be under way: 'pending' is too large").attachNote(product->getLoc()) << "the product begins here";
      })
      .Case([&](MmaTensorOp mma) { state.products.add(mma, 0); }) // no op waits for it
      .Default([&](Operation *other) {
        for (Region &region : other->getRegions())
          walk(region, state);
      });
}

/// The tickets that a number is computed of, without others between: the ticket after one that is held is computed of that, too.
static void addTickets(Value number, ArrayRef<Ticket> held, SmallVectorImpl<const Ticket *> &found, unsigned depth = 0) {
  constexpr unsigned maxDepth = 12;
  if (const Ticket *named = llvm::find_if(held, [&](const Ticket &t) { return t.names.contains(number); }); named != held.end()) {
    for (const Ticket &ticket : held)
      if (ticket.names.contains(number))
        found.push_back(&ticket);
    return;
  }
  Operation *op = number.getDefiningOp();
  if (op && depth < maxDepth && isa<arith::ArithDialect>(op->getDialect()))
    for (Value operand : op->getOperands())
      addTickets(operand, held, found, depth + 1);
}

/// The tickets of those that are held which memory is the slot of.
static SmallVector<const Ticket *> getTicketsOf(Value memory, ArrayRef<Ticket> held) {
  int64_t slots = getAllocation(memory).getMemory().getType().getNumSlots();
  SmallVector<const Ticket *> found;
  if (slots == 1)
    found = llvm::to_vector(llvm::make_pointer_range(held));
  for (; !memory.getDefiningOp<AllocOp>(); memory = memory.getDefiningOp()->getOperand(0))
    if (auto slot = memory.getDefiningOp<SlotOp>(); slot && slots != 1)
      addTickets(slot.getIndex(), held, found);
  auto slotsOf = [](const Ticket &ticket) { return cast<PipeType>(ticket.pipe.getType()).getSlots(); };
  // A slot of the pipe may have several of the memory.
  llvm::erase_if(found, [&](const Ticket *ticket) { return slots % slotsOf(*ticket) != 0; });
  if (found.empty()) // a pipe of one slot hands over whole rings
    for (const Ticket &ticket : held)
      if (slotsOf(ticket) == 1)
        found.push_back(&ticket);
  return found;
}

void RoleWalk::take(Operation *op, Value pipe, Value name, bool isEmpty, State &state) {
  Ticket ticket{pipe, isEmpty, op, {}};
  ticket.names.insert(name);
  if (const Ticket *held = llvm::find_if(state.held, [&](const Ticket &other) { return ticket.isSameSlot(other); }); held != state.held.end()) {
    fail(op, "takes a slot that the role holds already").attachNote(held->taken->getLoc()) << "taken here";
    return;
  }
  state.held.push_back(ticket);
}

void RoleWalk::giveBack(Operation *op, Value pipe, Value name, bool isEmpty, State &state, bool afterProducts) {
  Ticket *held = llvm::find_if(state.held, [&](const Ticket &t) { return t.pipe == pipe && t.isEmpty == isEmpty && t.names.contains(name); });
  if (held == state.held.end()) {
    fail(op, Twine("gives back a slot that the role does not hold: an '") + (isEmpty ? "ssa_gpu.acquire" : "ssa_gpu.await") + "' of this ticket must come before");
    return;
  }
  auto isUsed = [&](Operation *user) {
    return llvm::any_of(getAccesses(user), [&](const Access &a) {
      AllocOp alloc = getAllocation(a.memory);
      if (!alloc || !isHandedOver(alloc) || !guards[alloc].pipes.contains(pipe))
        return false;
      SmallVector<const Ticket *> tickets = getTicketsOf(a.memory, state.held);
      // Names that the ticket had where memory was used may be gone: then what counts is where it was taken.
      bool isNamed = llvm::any_of(tickets, [&](const Ticket *ticket) { return ticket->pipe == pipe; });
      return isNamed ? llvm::is_contained(tickets, held) : taken[user].contains(held->taken);
    });
  };
  for (Operation *copy : state.copies.getOps()) {
    if (isEmpty && isa<StoreOperandOp>(copy)) {
      fail(op, "hands over what products may not see yet: an 'ssa_gpu.finish_copies 0' must come between").attachNote(copy->getLoc()) << "written here";
      return;
    }
    bool waitsForCopies = cast<PipeType>(pipe.getType()).getCopies();
    if (knowsGuards && isEmpty && !waitsForCopies && isUsed(copy)) {
      fail(op, "gives back a slot while copies into it may be under way: 'ssa_gpu.commit_copies' and 'ssa_gpu.finish_copies' must come between")
              .attachNote(copy->getLoc()) << "copied here";
      return;
    }
  }
  for (Operation *product : state.products.getOps())
    if (knowsGuards && !isEmpty && !afterProducts && isUsed(product)) {
      StringRef remedy = isa<MmaTensorOp>(product) ? "it must be given back 'after products'" : "an 'ssa_gpu.wait_mma' must come between";
      fail(op, "gives back a slot while a product may still read it: " + remedy).attachNote(product->getLoc())
          << "the product begins here";
      return;
    }
  state.held.erase(held);
}

void RoleWalk::access(Operation *op, const Access &access, State &state) {
  AllocOp alloc = getAllocation(access.memory);
  if (hasFailed || !alloc || !isHandedOver(alloc))
    return;
  // What a role writes to a slot that it only reads else it has to hand over by another pipe, of which it holds an empty slot.
  bool handsOver = isa<StoreOperandOp>(op) && llvm::any_of(state.held, [](const Ticket &ticket) { return ticket.isEmpty; });
  llvm::SmallSetVector<Value, 4> pipes;
  for (const Ticket *ticket : getTicketsOf(access.memory, state.held)) {
    if (access.writes && !ticket->isEmpty && !handsOver)
      continue;
    pipes.insert(ticket->pipe);
    taken[op].insert(ticket->taken);
    for (Operation *product : state.reads)
      for (const Access &read : getAccesses(product))
        if (access.writes && getAllocation(read.memory) == alloc && llvm::is_contained(getTicketsOf(read.memory, state.held), ticket)) {
          fail(op, "overwrites " + describe(alloc) + " while other threads may still read it: an 'ssa_gpu.wait_mma' and an 'ssa_gpu.barrier' must come between")
                  .attachNote(product->getLoc()) << "read here";
          return;
        }
  }
  StringRef take = access.writes ? "an 'ssa_gpu.acquire'" : "an 'ssa_gpu.await'";
  if (pipes.empty()) {
    fail(op, Twine(access.writes ? "writes " : "reads ") + describe(alloc) + ", which another role uses too, without holding its slot: " + take +
                 " must come before, and nothing that gives the slot back")
            .attachNote(alloc.getLoc())
        << "the memory is allocated here";
    return;
  }
  Guard &guard = guards[alloc];
  if (!guard.access) {
    guard = {pipes, op};
    return;
  }
  guard.pipes.remove_if([&](Value pipe) { return !pipes.contains(pipe); });
  if (guard.pipes.empty())
    fail(op, Twine("uses ") + describe(alloc) + " under another pipe than others do: one pipe must guard all its uses")
            .attachNote(guard.access->getLoc())
        << "used here under another";
}

//===----------------------------------------------------------------------===//
// Pipes
//===----------------------------------------------------------------------===//

/// Each pipe has one role that fills its slots, and others that empty them.
static LogicalResult verifyEnds(RolesOp roles) {
  for (AllocPipeOp pipe : roles->getParentRegion()->getOps<AllocPipeOp>()) {
    llvm::SmallSetVector<Region *, 2> fills, empties;
    for (Operation *user : pipe->getUsers())
      for (Region &role : roles.getPrograms())
        if (role.isAncestor(user->getParentRegion())) {
          if (isa<AcquireOp, AwaitEmptyOp, PublishOp, CopyBoxOp, GatherBoxOp>(user))
            fills.insert(&role);
          else
            empties.insert(&role);
        }
    if (fills.size() != 1 || empties.empty() || empties.contains(fills.front()))
      return pipe.emitOpError("has ")
             << fills.size() << " roles that fill its slots and " << empties.size() << " that empty them: one must fill them, and others empty them";
  }
  return success();
}

LogicalResult mlir::ssa_gpu::verifyPipes(Region &kernel) {
  DenseMap<Operation *, Guard> guards;
  return success(RoleWalk(guards, /*knowsGuards=*/false).walkRole(kernel));
}

LogicalResult mlir::ssa_gpu::verifyRoles(RolesOp roles) {
  if (failed(verifyEnds(roles)))
    return failure();
  DenseMap<Operation *, Guard> guards;
  for (bool knowsGuards : {false, true})
    for (Region &role : roles.getPrograms())
      if (!RoleWalk(guards, knowsGuards).walkRole(role))
        return failure();
  return success();
}
