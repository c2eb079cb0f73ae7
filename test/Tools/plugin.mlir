// REQUIRES: plugin

// Stock mlir-opt reads the dialect and runs the pipelines.
// RUN: mlir-opt %s --load-dialect-plugin=%build/lib/libSSAPlugin.so | FileCheck %s --check-prefix=READ
// RUN: mlir-opt %s --load-dialect-plugin=%build/lib/libSSAPlugin.so --load-pass-plugin=%build/lib/libSSAPlugin.so \
// RUN:   --pass-pipeline='builtin.module(ssa-optimize)' | FileCheck %s --check-prefix=OPT

// Without it the file cannot be read, nor the pipeline found.
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not mlir-opt %s --load-dialect-plugin=%build/lib/libSSAPlugin.so --pass-pipeline='builtin.module(ssa-optimize)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOPASS
// NONE: error: {{.*}}ssa
// NOPASS: 'ssa-optimize' does not refer to a registered pass or pass pipeline

// Errors are those of the dialect.
// RUN: sed 's/local_blocks = 2/local_blocks = 4/' %s | not mlir-opt --load-dialect-plugin=%build/lib/libSSAPlugin.so 2>&1 \
// RUN:   | FileCheck %s --check-prefix=INVALID
// INVALID: error: 'ssa.topk' op expected 'init_blocks' + 'local_blocks' to be at most 4

// It shows what a plugin must show and nothing else.
// RUN: llvm-nm -D --defined-only --format=just-symbols %build/lib/libSSAPlugin.so | FileCheck %s --check-prefix=SYMBOLS \
// RUN:   --implicit-check-not={{.}}
// SYMBOLS: mlirGetDialectPluginInfo
// SYMBOLS-NEXT: mlirGetPassPluginInfo

// READ-LABEL: func.func @twice
// READ-COUNT-2: ssa.sort
// OPT-LABEL: func.func @twice
// OPT: ssa.topk
// OPT-NOT: ssa.sort
func.func @twice(%s: tensor<1x2x8x16xf32>, %k: tensor<1x2x1024x64xf32>) -> !ssa.selection<1x2x8x4, key_block = 64, sorted> {
  %sel = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2}
    : tensor<1x2x8x16xf32>, tensor<1x2x1024x64xf32> -> !ssa.selection<1x2x8x4, key_block = 64, sorted>
  %a = ssa.sort %sel : !ssa.selection<1x2x8x4, key_block = 64, sorted> -> !ssa.selection<1x2x8x4, key_block = 64, sorted>
  %b = ssa.sort %a : !ssa.selection<1x2x8x4, key_block = 64, sorted> -> !ssa.selection<1x2x8x4, key_block = 64, sorted>
  return %b : !ssa.selection<1x2x8x4, key_block = 64, sorted>
}
