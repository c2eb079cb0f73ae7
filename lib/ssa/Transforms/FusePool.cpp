//===- FusePool.cpp - What ssa-fuse does with pooled projections ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "ssa/IR/SSA.h"

using namespace mlir;
using namespace mlir::ssa;

/// The projection whose rows are pooled, null if there is none; `reason` is told why the two cannot change places.
static ProjectOp findProjection(PoolOp pool, llvm::function_ref<void(const Twine &)> reason) {
  auto project = pool.getInput().getDefiningOp<ProjectOp>();
  auto refuse = [&](const Twine &why) {
    reason(why);
    return ProjectOp();
  };
  if (!project)
    return ProjectOp();
  if (!project->hasOneUse())
    return refuse("its rows are used by others, too");
  if (pool.getKind() != PoolKind::mean)
    return refuse("the '" + stringifyPoolKind(pool.getKind()) + "' of projections is not the projection of the '" + stringifyPoolKind(pool.getKind()) + "'");
  if (pool.getScales() && project.getInput().getType().getDimSize(1) != project.getType().getDimSize(1))
    return refuse("its heads, which have scales of their own, are made of one head");
  return project;
}

namespace {

/// The mean of projections is the projection of the mean: then only one row of a block is projected. The mean stays in f32, so nothing is rounded
/// but the result.
struct PoolBeforeProject : OpRewritePattern<PoolOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PoolOp pool, PatternRewriter &rewriter) const override {
    ProjectOp project = findProjection(pool, [&](const Twine &why) { (void)rewriter.notifyMatchFailure(pool, why); });
    if (!project)
      return failure();
    RankedTensorType input = project.getInput().getType();
    SmallVector<int64_t> shape(pool.getOutput().getType().getShape());
    shape[0] = input.getDimSize(0);
    shape[1] = input.getDimSize(1);
    shape[3] = input.getDimSize(3);
    Type mean = RankedTensorType::get(shape, rewriter.getF32Type());
    auto pooled = PoolOp::create(rewriter, pool.getLoc(), mean, pool.getKind(), project.getInput(), pool.getScales(), pool.getBlocks());
    rewriter.replaceOpWithNewOp<ProjectOp>(pool, pool.getOutput().getType(), pooled, project.getWeight());
    return success();
  }
};

} // namespace

void ssa::populateFusePoolPatterns(RewritePatternSet &patterns) { patterns.add<PoolBeforeProject>(patterns.getContext()); }

void ssa::remarkPools(ModuleOp module) {
  module.walk([](PoolOp pool) {
    findProjection(pool, [&](const Twine &why) { pool.emitRemark("is not made before the projection of its rows: ") << why; });
  });
}
