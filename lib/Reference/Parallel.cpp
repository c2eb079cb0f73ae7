//===- Parallel.cpp - Loops of the interpreter on all cores ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Evaluation.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/ThreadPool.h"
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

using namespace mlir;
using namespace mlir::ssa::reference;

namespace {
/// Tells the owner of an evaluation how far a loop has got, at most ten times a second.
class Progress {
public:
  Progress(const InterpreterOptions &options, Operation *op, int64_t count) : options(options), op(op), count(count) {}

  void advance() {
    int64_t now = ++done;
    if (!options.progress || !isDue() || !mutex.try_lock())
      return;
    if (isDue()) {
      options.progress(op->getName().getStringRef(), static_cast<double>(now) / static_cast<double>(count));
      last = nanoseconds();
    }
    mutex.unlock();
  }

private:
  static int64_t nanoseconds() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  bool isDue() const { return nanoseconds() - last >= 100000000; }

  const InterpreterOptions &options;
  Operation *op;
  int64_t count;
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> last{nanoseconds()};
  std::mutex mutex;
};

/// One loop: hands out chunks in ascending order, and keeps the diagnostics of each index until it is known which of
/// them a loop on one core would have emitted.
class ParallelLoop {
public:
  ParallelLoop(MLIRContext *context, Progress &progress, int64_t count, llvm::function_ref<LogicalResult(int64_t)> body)
      : context(context), progress(progress), count(count), body(body) {}

  LogicalResult run();

private:
  void work(int64_t chunk);

  MLIRContext *context;
  Progress &progress;
  int64_t count;
  llvm::function_ref<LogicalResult(int64_t)> body;
  std::atomic<int64_t> next{0};
  /// The lowest index whose body failed, `count` if none did.
  std::atomic<int64_t> firstFailure{0};
  std::multimap<int64_t, Diagnostic> diagnostics;
};

/// What the current thread works on.
struct Position {
  const ParallelLoop *loop;
  int64_t index;
};
} // namespace

static thread_local Position position{nullptr, 0};

void ParallelLoop::work(int64_t chunk) {
  Position outer = position;
  // No chunk starts below one that was handed out before, so those below the first failure still all run to their end.
  while (firstFailure == count) {
    int64_t begin = next.fetch_add(chunk), end = std::min(begin + chunk, count);
    if (begin >= count)
      break;
    for (int64_t i = begin; i < end && i < firstFailure; ++i) {
      position = {this, i};
      if (failed(body(i)))
        for (int64_t lowest = firstFailure; i < lowest && !firstFailure.compare_exchange_weak(lowest, i);) {
        }
      progress.advance();
    }
  }
  position = outer;
}

LogicalResult ParallelLoop::run() {
  firstFailure = count;
  llvm::ThreadPoolInterface &pool = context->getThreadPool();
  int64_t threads = std::min<int64_t>(pool.getMaxConcurrency(), count);
  int64_t chunk = std::clamp<int64_t>(count / (threads * 64), 1, 4096);

  DiagnosticEngine &engine = context->getDiagEngine();
  auto handler = engine.registerHandler([this](Diagnostic &diagnostic) {
    if (position.loop != this)
      return failure();
    // The engine calls its handlers one at a time.
    diagnostics.emplace(position.index, std::move(diagnostic));
    return success();
  });
  llvm::ThreadPoolTaskGroup group(pool);
  for (int64_t t = 0; t < threads; ++t)
    group.async([this, chunk] { work(chunk); });
  group.wait();
  engine.eraseHandler(handler);

  for (auto &[index, diagnostic] : diagnostics)
    if (index <= firstFailure)
      engine.emit(std::move(diagnostic));
  return success(firstFailure == count);
}

LogicalResult Evaluation::parallelFor(Operation *op, int64_t count,
                                      llvm::function_ref<LogicalResult(int64_t)> body) const {
  Progress progress(options, op, count);
  if (count > 1 && context->isMultithreadingEnabled())
    return ParallelLoop(context, progress, count, body).run();
  for (int64_t i = 0; i < count; ++i) {
    if (failed(body(i)))
      return failure();
    progress.advance();
  }
  return success();
}
