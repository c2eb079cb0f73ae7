// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SSA_BASE_TD
#define SSA_BASE_TD

include "mlir/IR/OpBase.td"

def SSA_Dialect : Dialect {
  let name = "ssa";
  let cppNamespace = "::mlir::ssa";
  let summary = "subquadratic sparse attention";
  let description = [{
    Attention over a selection of the keys. A program *routes* queries to keys (`project`, `pool`, `route`, `rebin`),
    keeps the best (`topk`), orders and joins lists (`sort`, `union`), and *attends* to what was selected (`gather`,
    `sparse_attend`, `merge`, `mix`).

    Shapes are written with `B` batch, `Hq` query heads, `Hk` key/value heads, `G` selection heads, `M` queries, `N`
    keys, `D` head dim, `Dv` value dim. `B`, `M`, `N` and numbers of blocks may be dynamic; heads, `D`, `Dv`, list
    widths and block sizes are static. Query head `h` reads key head `h / (Hq/Hk)` and selection head `h / (Hq/G)`.
    Query `m` stands at position `p(m) = m + N - M`.

    Rules of an op are numbered: I for inputs, C for constraints between them. Runtime sizes that an op equates are
    checked when it runs. Rules of all ops:

    - C1 there is no attribute without a dialect prefix that the op does not define; C2 every size, and `B` times
      heads, is below 2^31; C3 heads, head dims and ranks are static and at least 1; widths of lists are static.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

#endif // SSA_BASE_TD
