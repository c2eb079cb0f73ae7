//===- TensorMemory.cpp - Products in tensor memory -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An address in tensor memory is an i32: a lane in the upper half, a column in the lower. A warp reaches the 32 lanes that its number in its
// warpgroup gives, a thread one of them. All is inline assembly that orders memory: results of asynchronous loads must not be moved before the wait,
// which is why a load and its wait are one piece.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::ssa_gpu;

void ssa_gpu::fenceTensors(ThreadEmitter &e, bool before) {
  e.orderingAsm(before ? "tcgen05.fence::before_thread_sync;" : "tcgen05.fence::after_thread_sync;", "", {});
}

/// The kernel, or the role, that an op is in.
static Region *getProgram(Operation *op) {
  Region *program = op->getParentRegion();
  while (!isa<gpu::GPUFuncOp, RolesOp>(program->getParentOp()))
    program = program->getParentRegion();
  return program;
}

bool ssa_gpu::usesTensorMemory(Operation *op) {
  return getProgram(op)
      ->walk([](Operation *inner) {
        return isa<MmaTensorOp, LoadTensorOp, StoreTensorOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool ssa_gpu::ordersTensorMemory(Operation *op, Value pipe) {
  Region *program = getProgram(op);
  return usesTensorMemory(op) && (isa<gpu::GPUFuncOp>(program->getParentOp()) || llvm::any_of(pipe.getUsers(), [&](Operation *user) {
           return getProgram(user) != program && usesTensorMemory(user);
         }));
}

void ssa_gpu::arriveAfterProducts(ThreadEmitter &e, Operation *op, Value barrier) {
  if (!isOfPair(op))
    return e.ifElected([&] { e.orderingAsm("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];", "r", barrier); });
  constexpr StringLiteral text = "{\n\t.reg .b16 both;\n\tmov.b16 both, 3;\n\t"
                                 "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [$0], both;\n\t}";
  ifFirstOfPair(e, [&] { e.ifElected([&] { e.orderingAsm(text, "r", barrier); }); });
}

bool ssa_gpu::isOfPair(Operation *op) { return op->getParentOfType<gpu::GPUFuncOp>()->hasAttr(pairAttrName); }

void ssa_gpu::ifFirstOfPair(ThreadEmitter &e, llvm::function_ref<void()> first, llvm::function_ref<void()> second) {
  Value block = arith::IndexCastOp::create(e.builder, e.loc, e.builder.getI32Type(), gpu::BlockIdOp::create(e.builder, e.loc, gpu::Dimension::x));
  auto build = [&](llvm::function_ref<void()> body) {
    return [&e, body](OpBuilder &, Location) {
      body();
      scf::YieldOp::create(e.builder, e.loc);
    };
  };
  Value isFirst = e.lt(e.rem(block, 2), 1);
  if (second)
    scf::IfOp::create(e.builder, e.loc, isFirst, build(first), build(second));
  else
    scf::IfOp::create(e.builder, e.loc, isFirst, build(first));
}

void ssa_gpu::synchronizeBlocks(OpBuilder &builder, ThreadEmitter &e, Operation *op) {
  if (!isOfPair(op)) {
    gpu::BarrierOp::create(builder, e.loc);
    return;
  }
  e.orderingAsm("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "", {});
}

namespace {

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

void ifFirstWarp(ThreadEmitter &e, llvm::function_ref<void()> body) {
  scf::IfOp::create(e.builder, e.loc, e.lt(e.uniform(e.warp()), 1), [&](OpBuilder &, Location) {
    body();
    scf::YieldOp::create(e.builder, e.loc);
  });
}

void synchronize(ThreadEmitter &e, Operation *op) {
  fenceTensors(e, /*before=*/true);
  synchronizeBlocks(e.builder, e, op);
  fenceTensors(e, /*before=*/false);
}

/// `text` with the number of blocks that make products together for `#`.
std::string forBlocks(StringRef text, Operation *op) {
  std::string replaced = text.str();
  std::replace(replaced.begin(), replaced.end(), '#', isOfPair(op) ? '2' : '1');
  return replaced;
}

struct ConvertAllocTensors : OpConversionPattern<AllocTensorsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(AllocTensorsOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    if (!op.getOffset())
      return op.emitOpError("has no offset; run 'ssa-gpu-allocate' first");
    ThreadEmitter e(rewriter, op);
    Value place = e.sharedAddress(*op.getOffset()), columns = e.i32(AllocTensorsOp::getAllocatedColumns(op.getResultTypes()));
    ifFirstWarp(e, [&] {
      constexpr StringLiteral text = "tcgen05.alloc.cta_group::#.sync.aligned.shared::cta.b32 [$0], $1;\n\ttcgen05.relinquish_alloc_permit.cta_group::#.sync.aligned;";
      e.orderingAsm(forBlocks(text, op), "r,r", {place, columns});
    });
    synchronize(e, op);
    Value address = LLVM::LoadOp::create(rewriter, e.loc, rewriter.getI32Type(), place, /*alignment=*/4);
    SmallVector<Value> tiles;
    for (Type type : op.getResultTypes()) {
      tiles.push_back(address);
      address = e.add(address, cast<TensorMemoryType>(type).getColumns());
    }
    rewriter.replaceOp(op, tiles);
    return success();
  }
};

struct ConvertFreeTensors : OpConversionPattern<FreeTensorsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(FreeTensorsOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    synchronize(e, op);
    Value columns = e.i32(AllocTensorsOp::getAllocatedColumns(op.getMemory().getTypes()));
    ifFirstWarp(e, [&] {
      e.orderingAsm(forBlocks("tcgen05.dealloc.cta_group::#.sync.aligned.b32 $0, $1;", op), "r,r", {adaptor.getMemory().front(), columns});
    });
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// What `tcgen05.mma` is told of its operands beside their addresses.
int64_t getInstructionDescriptor(MmaTensorOp op) {
  bool isBF16 = isa<BFloat16Type>(op.getRhs().getType().getElementType());
  int64_t type = isBF16 ? 1 : 0 /* f16, or e4m3 */, columns = op.getResult().getType().getShape().back();
  int64_t layout = op.getTransposed() ? 0 : 1; // whether rows of the right operand are the inner dimension
  return (1 << 4) /* f32 */ | (type << 7) | (type << 10) | (layout << 16) | (columns / 8 << 17) | (TensorMemoryType::lanes / 16 << 24);
}

/// The products of an op as one piece of text; operands are `$0` result, `$1` left, `$2` right, `$3` descriptor, `$4` whether it adds.
class MmaText {
public:
  MmaText(StringRef kind, bool lhsInTensors, bool isOfPair) : kind(kind), lhsInTensors(lhsInTensors), isOfPair(isOfPair), os(text) {
    os << "{\n\t.reg .pred adds, always;\n\tsetp.ne.b32 adds, $4, 0;\n\tsetp.eq.b32 always, $4, $4;\n\t";
  }

  /// A product of 128 rows and the inner columns of an instruction; places are columns of tensor memory or bytes further.
  void multiply(int64_t result, int64_t lhs, int64_t rhs, bool isFirst) {
    std::string to = advance("$0", "b32", result), left = lhsInTensors ? "[" + advance("$1", "b32", lhs) + "]" : advance("$1", "b64", lhs / 16);
    std::string right = advance("$2", "b64", rhs / 16);
    os << "tcgen05.mma.cta_group::" << (isOfPair ? 2 : 1) << ".kind::" << kind << " [" << to << "], " << left << ", " << right << ", $3, " << (isFirst ? "adds" : "always") << ";\n\t";
  }

  std::string take() { return text + "}"; }

private:
  std::string advance(StringRef base, StringRef type, int64_t by) {
    if (by == 0)
      return base.str();
    std::string name = "a" + std::to_string(count++);
    os << ".reg ." << type << " " << name << ";\n\tadd.s" << type.drop_front() << " " << name << ", " << base << ", " << by << ";\n\t";
    return name;
  }

  StringRef kind;
  bool lhsInTensors, isOfPair;
  int64_t count = 0;
  std::string text;
  llvm::raw_string_ostream os;
};

struct ConvertMmaTensor : OpConversionPattern<MmaTensorOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(MmaTensorOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    TensorMemoryType result = op.getResult().getType();
    ArrayRef<int64_t> shape = op.getRhs().getType().getShape();
    bool transposed = op.getTransposed();
    int64_t inner = shape[transposed ? 1 : 0], rows = result.getRows(), lanes = TensorMemoryType::lanes, step = op.getInnerStep();
    int64_t panel = op.getRhs().getType().getPanelColumns(), bytes = 128 / panel;
    auto lhsTensor = dyn_cast<TensorMemoryType>(op.getLhs().getType());
    bool ofPair = result.isOfPair();
    auto begin = [&] {
      MmaText text(step == 32 ? "f8f6f4" : "f16", /*lhsInTensors=*/lhsTensor != nullptr, ofPair);
      for (int64_t row = 0; row < rows; row += lanes)
        for (int64_t k = 0; k < inner; k += step) {
          int64_t inPanel = k / panel * rows * 128 + k % panel * bytes + row * 128;
          int64_t left = lhsTensor ? row / lanes * lhsTensor.getColumnsOfLanes() + k / 2 : inPanel;
          text.multiply(row / lanes * result.getColumnsOfLanes(), left, transposed ? k / panel * shape[0] * 128 + k % panel * bytes : k * 128, k == 0);
        }
      Value left = lhsTensor ? adaptor.getLhs() : makeTensorDescriptor(e, adaptor.getLhs(), 0);
      // Where rows are the inner dimension the panels are `rows` rows apart.
      Value right = makeTensorDescriptor(e, adaptor.getRhs(), transposed ? 0 : shape[0] * 128);
      Value adds = arith::ExtUIOp::create(rewriter, e.loc, rewriter.getI32Type(), op.getAdds());
      e.orderingAsm(text.take(), lhsTensor ? "r,r,l,r,r" : "r,l,l,r,r", {adaptor.getResult(), left, right, e.i32(getInstructionDescriptor(op)), adds});
    };
    auto elected = [&] { e.ifElected(begin); };
    ofPair ? ifFirstOfPair(e, elected) : elected();
    rewriter.eraseOp(op);
    return success();
  }

  static Value makeTensorDescriptor(ThreadEmitter &e, Value address, int64_t leading) {
    Value version = arith::ConstantIntOp::create(e.builder, e.loc, e.builder.getI64Type(), int64_t(1) << 46);
    return arith::OrIOp::create(e.builder, e.loc, makeDescriptor(e, address, leading), version);
  }
};

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Where column `column` (i32, in elements) of the rows of this warp begins.
Value getPlace(ThreadEmitter &e, TensorMemoryType type, Value tile, Value column) {
  constexpr int64_t warps = 4;
  Value warp = e.uniform(e.warp()), place = e.add(tile, e.mul(e.rem(warp, warps), 32 << 16));
  if (type.getRows() > TensorMemoryType::lanes)
    place = e.add(place, e.mul(e.div(warp, warps), type.getColumnsOfLanes()));
  return e.add(place, type.getElementType().isF32() ? column : e.div(column, 2));
}

/// The text of an access to columns in pieces, whose registers begin at operand `registers` and addresses at `addresses`.
std::string getAccessText(StringRef instruction, ArrayRef<int64_t> pieces, int64_t registers, int64_t addresses, bool loads) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t width : pieces) {
    std::string values, address = "[$" + std::to_string(addresses++) + "]";
    for (int64_t i = 0; i < width; ++i)
      values += (i ? ", $" : "$") + std::to_string(registers++);
    os << "tcgen05." << instruction << ".sync.aligned.32x32b.x" << width << ".b32 ";
    os << (loads ? "{" + values + "}, " + address : address + ", {" + values + "}") << ";\n\t";
  }
  os << "tcgen05.wait::" << instruction << ".sync.aligned;";
  return text;
}

SmallVector<Value> getPlaces(ThreadEmitter &e, Value first, ArrayRef<int64_t> pieces) {
  SmallVector<Value> places;
  int64_t column = 0;
  for (int64_t width : pieces) {
    places.push_back(e.add(first, column));
    column += width;
  }
  return places;
}

std::string repeat(StringRef constraint, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? "," : "") + constraint.str();
  return text;
}

struct ConvertLoadTensor : OpConversionPattern<LoadTensorOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(LoadTensorOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    int64_t columns = getValuesPerThread(op.getTile().getType());
    SmallVector<int64_t> pieces = LoadTensorOp::getPieces(columns);
    SmallVector<Value> places = getPlaces(e, getPlace(e, op.getSource().getType(), adaptor.getSource(), op.getColumn()), pieces);
    auto type = LLVM::LLVMStructType::getLiteral(op.getContext(), SmallVector<Type>(columns, rewriter.getF32Type()));
    // Outputs are written before the last address is read.
    std::string constraints = repeat("=&f", columns) + "," + repeat("r", pieces.size());
    Value loaded = e.orderingAsm(getAccessText("ld", pieces, 0, columns, /*loads=*/true), constraints, places, type);
    SmallVector<Value> values;
    for (int64_t i = 0; i < columns; ++i)
      values.push_back(LLVM::ExtractValueOp::create(rewriter, e.loc, loaded, i));
    rewriter.replaceOp(op, e.fromElements(values));
    return success();
  }
};

struct ConvertStoreTensor : OpConversionPattern<StoreTensorOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(StoreTensorOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    ThreadEmitter e(rewriter, op);
    Type element = op.getTarget().getType().getElementType();
    Value tile = adaptor.getTile();
    int64_t registers = getValuesPerThread(op.getTile().getType());
    if (!element.isF32()) {
      Value rounded = arith::TruncFOp::create(rewriter, e.loc, VectorType::get({registers}, element), tile);
      registers /= 2;
      tile = vector::BitCastOp::create(rewriter, e.loc, VectorType::get({registers}, rewriter.getI32Type()), rounded);
    }
    SmallVector<int64_t> pieces = StoreTensorOp::getPieces(registers);
    SmallVector<Value> operands = e.elements(tile);
    llvm::append_range(operands, getPlaces(e, getPlace(e, op.getTarget().getType(), adaptor.getTarget(), op.getColumn()), pieces));
    std::string constraints = repeat(element.isF32() ? "f" : "r", registers) + "," + repeat("r", pieces.size());
    e.orderingAsm(getAccessText("st", pieces, 0, registers, /*loads=*/false), constraints, operands);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void ssa_gpu::populateTensorMemoryPatterns(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertAllocTensors, ConvertFreeTensors, ConvertMmaTensor, ConvertLoadTensor, ConvertStoreTensor>(converter, patterns.getContext());
}
