// What only a run can find about ops of the tensor and linalg dialects.

// RUN: not ssa-run %s --entry=negative_size --in value:-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE-SIZE
func.func @negative_size(%n: index) {
  // NEGATIVE-SIZE: error: 'tensor.empty' op has size -1 at dimension 1, expected at least 0
  %e = tensor.empty(%n) : tensor<3x?xf32>
  return
}

// RUN: not ssa-run %s --entry=dim --in zeros:2x3,value:2 2>&1 | FileCheck %s --check-prefix=DIM
func.func @dim(%x: tensor<?x?xf32>, %i: index) {
  // DIM: error: 'tensor.dim' op asks for dimension 2 of a tensor of shape 2x3
  %d = tensor.dim %x, %i : tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=extract --in zeros:2x3,value:2 2>&1 | FileCheck %s --check-prefix=EXTRACT
func.func @extract(%x: tensor<?x?xf32>, %i: index) {
  // EXTRACT: error: 'tensor.extract' op has index 2 at dimension 0 of a tensor of shape 2x3
  %d = tensor.extract %x[%i, %i] : tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=extract_slice --in zeros:2x9,value:3 2>&1 | FileCheck %s --check-prefix=EXTRACT-SLICE
func.func @extract_slice(%x: tensor<?x?xf32>, %n: index) {
  // EXTRACT-SLICE: error: 'tensor.extract_slice' op has 3 elements from 1 in steps of 4 at dimension 1 of a tensor of shape 2x9
  %d = tensor.extract_slice %x[0, 1] [2, %n] [1, 4] : tensor<?x?xf32> to tensor<2x?xf32>
  return
}

// RUN: not ssa-run %s --entry=insert_slice --in zeros:2x9,zeros:2x4,value:3 2>&1 | FileCheck %s --check-prefix=INSERT-SLICE
func.func @insert_slice(%x: tensor<?x?xf32>, %y: tensor<2x?xf32>, %n: index) {
  // INSERT-SLICE: error: 'tensor.insert_slice' op operand 0 has shape 2x4, expected 2x3, the sizes of the slice
  %d = tensor.insert_slice %y into %x[0, 1] [2, %n] [1, 1] : tensor<2x?xf32> into tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=expand_shape --in zeros:7,value:2 2>&1 | FileCheck %s --check-prefix=EXPAND-SHAPE
func.func @expand_shape(%x: tensor<?xf32>, %n: index) {
  // EXPAND-SHAPE: error: 'tensor.expand_shape' op expands dimension 0 of size 7 to 2x3, which is another size
  %d = tensor.expand_shape %x [[0, 1]] output_shape [%n, 3] : tensor<?xf32> into tensor<?x3xf32>
  return
}

// RUN: not ssa-run %s --entry=reshape --in zeros:7,arange:2 2>&1 | FileCheck %s --check-prefix=RESHAPE
func.func @reshape(%x: tensor<?xf32>, %s: tensor<2xi32>) {
  // RESHAPE: error: 'tensor.reshape' op result 0 has shape 0x1, expected as many elements as its source of shape 7
  %d = tensor.reshape %x(%s) : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=collapse_shape --in zeros:0x1000000000000x1000000000000 2>&1 | FileCheck %s --check-prefix=COLLAPSE-SHAPE
func.func @collapse_shape(%x: tensor<?x?x?xf32>) {
  // COLLAPSE-SHAPE: error: 'tensor.collapse_shape' op collapses sizes of 0x1000000000000x1000000000000 to one that is too large
  %d = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=concat --in zeros:2x3,zeros:3x3 2>&1 | FileCheck %s --check-prefix=CONCAT
func.func @concat(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) {
  // CONCAT: error: 'tensor.concat' op operand 1 has shape 3x3, expected 2 at dimension 0 as in operand 0
  %d = tensor.concat dim(1) %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
  return
}

// RUN: not ssa-run %s --entry=concat_large --in zeros:0x9000000000000000000 2>&1 | FileCheck %s --check-prefix=CONCAT-LARGE
func.func @concat_large(%x: tensor<?x?xf32>) {
  // CONCAT-LARGE: error: 'tensor.concat' op has operands whose sizes at dimension 1 are too large to add
  %d = tensor.concat dim(1) %x, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=pad --in zeros:2x3,value:-1 2>&1 | FileCheck %s --check-prefix=PAD
func.func @pad(%x: tensor<?x?xf32>, %n: index) {
  // PAD: error: 'tensor.pad' op pads dimension 1 by 2 and -1, expected at least 0 and a size that fits in 64 bits
  %z = arith.constant 0.0 : f32
  %d = tensor.pad %x low[0, 2] high[1, %n] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=unknown --in zeros:2x3 2>&1 | FileCheck %s --check-prefix=UNKNOWN
func.func @unknown(%x: tensor<2x3xf32>) {
  // UNKNOWN: error: 'tensor.bitcast' op is not something the interpreter can evaluate
  %d = tensor.bitcast %x : tensor<2x3xf32> to tensor<2x3xi32>
  return
}

// RUN: not ssa-run %s --entry=generic_unequal --in zeros:2x3,zeros:2x4 2>&1 | FileCheck %s --check-prefix=GENERIC-UNEQUAL
func.func @generic_unequal(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) {
  // GENERIC-UNEQUAL: error: 'linalg.add' op operand 1 has shape 2x4, expected 3 at dimension 1 as in operand 0 of shape 2x3
  %d = linalg.add ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%x : tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=convolution --in zeros:8,zeros:3,zeros:7 2>&1 | FileCheck %s --check-prefix=CONVOLUTION
func.func @convolution(%x: tensor<?xf32>, %w: tensor<?xf32>, %o: tensor<?xf32>) {
  // CONVOLUTION: error: 'linalg.conv_1d' op operand 0 has shape 8, which ends before the element that loops at (6, 2) need
  %d = linalg.conv_1d ins(%x, %w : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  return
}

// RUN: not ssa-run %s --entry=buffers 2>&1 | FileCheck %s --check-prefix=BUFFERS
func.func @buffers() {
  %z = arith.constant 0.0 : f32
  // BUFFERS: error: 'memref.alloc' op is not something the interpreter can evaluate
  %m = memref.alloc() : memref<4xf32>
  linalg.fill ins(%z : f32) outs(%m : memref<4xf32>)
  return
}
