// What only a run can find, one function per message.

// RUN: not ssa-run %s --entry=argument_shape --in zeros:3x4 2>&1 | FileCheck %s --check-prefix=ARGUMENT-SHAPE
// ARGUMENT-SHAPE: errors.mlir:[[#@LINE+2]]:1: error: argument 0 '%x' of @argument_shape has shape 3x4, but its type 'tensor<?x5xf32>' wants 5 at dimension 1
// RUN: not ssa-run %s --entry=argument_shape --in zeros:5 2>&1 | FileCheck %s --check-prefix=ARGUMENT-RANK
func.func @argument_shape(%x: tensor<?x5xf32>) {
  // ARGUMENT-RANK: error: argument 0 '%x' of @argument_shape has shape 5, but its type 'tensor<?x5xf32>' wants rank 2
  return
}

// RUN: not ssa-run %s --entry=argument_type --in zeros:3 2>&1 | FileCheck %s --check-prefix=ARGUMENT-TYPE
func.func @argument_type(%m: memref<3xf32>) {
  // ARGUMENT-TYPE: error: argument 0 '%m' of @argument_type has type 'memref<3xf32>', which the interpreter cannot hold; it holds scalars and ranked tensors
  return
}

// RUN: not ssa-run %s --entry=argument_element --in zeros:3 2>&1 | FileCheck %s --check-prefix=ARGUMENT-ELEMENT
func.func @argument_element(%c: tensor<3xcomplex<f32>>) {
  // ARGUMENT-ELEMENT: error: argument 0 '%c' of @argument_element has type 'tensor<3xcomplex<f32>>', which the interpreter cannot hold
  return
}

// RUN: not ssa-run %s --entry=result_type 2>&1 | FileCheck %s --check-prefix=RESULT-TYPE
func.func @result_type() {
  // RESULT-TYPE: error: 'tensor.empty' op result 0 has type 'tensor<3xcomplex<f32>>', which the interpreter cannot hold; it holds scalars and ranked tensors
  %e = tensor.empty() : tensor<3xcomplex<f32>>
  return
}

// RUN: not ssa-run %s --entry=result_shape --in zeros:3x4 2>&1 | FileCheck %s --check-prefix=RESULT-SHAPE
func.func @result_shape(%x: tensor<?x?xf32>) {
  // RESULT-SHAPE: error: 'tensor.cast' op result 0 has shape 3x4, but its type 'tensor<?x5xf32>' wants 5 at dimension 1
  %y = tensor.cast %x : tensor<?x?xf32> to tensor<?x5xf32>
  return
}

// RUN: not ssa-run %s --entry=too_large 2>&1 | FileCheck %s --check-prefix=TOO-LARGE
func.func @too_large() {
  // TOO-LARGE: error: 'tensor.empty' op result 0 needs 40000000000000 bytes, but at most {{[0-9]+}} can be had
  %e = tensor.empty() : tensor<1000000x10000000xf32>
  return
}

// RUN: not ssa-run %s --entry=larger_than_64_bits --in value:9000000000000000000 2>&1 | FileCheck %s --check-prefix=LARGER
func.func @larger_than_64_bits(%n: index) {
  // LARGER: error: 'tensor.empty' op result 0 needs more bytes than 64 bits count, but at most {{[0-9]+}} can be had
  %e = tensor.empty(%n, %n) : tensor<?x?xf32>
  return
}

// RUN: not ssa-run %s --entry=large_constant 2>&1 | FileCheck %s --check-prefix=LARGE-CONSTANT
func.func @large_constant() {
  // LARGE-CONSTANT: error: 'arith.constant' op result 0 needs 40000000000000 bytes, but at most {{[0-9]+}} can be had
  %c = arith.constant dense<1.0> : tensor<1000000x10000000xf32>
  return
}

// RUN: not ssa-run %s --entry=constant_type 2>&1 | FileCheck %s --check-prefix=CONSTANT-TYPE
func.func @constant_type() {
  // CONSTANT-TYPE: error: 'arith.constant' op has a value of a type that the interpreter cannot hold; it holds scalars and ranked tensors
  %c = arith.constant dense<1.0> : vector<4xf32>
  return
}

// RUN: not ssa-run %s --entry=constant_resource 2>&1 | FileCheck %s --check-prefix=CONSTANT-RESOURCE
func.func @constant_resource() {
  // CONSTANT-RESOURCE: error: 'arith.constant' op has elements that cannot be read; is the data of a resource missing or of another size?
  %c = arith.constant dense_resource<nowhere> : tensor<4xf32>
  return
}

// RUN: not ssa-run %s --entry=unknown_op 2>&1 | FileCheck %s --check-prefix=UNKNOWN-OP
func.func @unknown_op() {
  // UNKNOWN-OP: error: 'memref.alloc' op is not something the interpreter can evaluate; it knows ssa, func.call, cf.assert, and arith, math, index, tensor and linalg on tensors and scalars
  %m = memref.alloc() : memref<4xf32>
  return
}

// RUN: not ssa-run %s --entry=unknown_in_region 2>&1 | FileCheck %s --check-prefix=UNKNOWN-IN-REGION
func.func @unknown_in_region() {
  %e = tensor.empty() : tensor<4xindex>
  %r = linalg.map outs(%e : tensor<4xindex>) (%o: index) {
    // UNKNOWN-IN-REGION: error: 'affine.apply' op is not something the interpreter can evaluate in a region of scalars; it knows arith, math, index, tensor.extract, tensor.dim and scf.if there
    %x = affine.apply affine_map<(d) -> (d + 1)>(%o)
    linalg.yield %x : index
  }
  return
}

// RUN: not ssa-run %s --entry=type_in_region 2>&1 | FileCheck %s --check-prefix=TYPE-IN-REGION
func.func @type_in_region() {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.map outs(%e : tensor<4xf32>) (%o: f32) {
    // TYPE-IN-REGION: error: 'vector.broadcast' op is not something the interpreter can evaluate on values of type 'vector<2xf32>'
    %v = vector.broadcast %o : f32 to vector<2xf32>
    linalg.yield %o : f32
  }
  return
}

// RUN: not ssa-run %s --entry=no_fold --in value:0 2>&1 | FileCheck %s --check-prefix=NO-FOLD
func.func @no_fold(%n: index) {
  // NO-FOLD: error: 'affine.apply' op has no value for the operands (0 : index)
  %x = affine.apply affine_map<()[s] -> (7 floordiv s)>()[%n]
  return
}

// RUN: not ssa-run %s --entry=division --in value:7,value:0 2>&1 | FileCheck %s --check-prefix=DIVISION
func.func @division(%a: i32, %b: i32) {
  // DIVISION: error: 'arith.divsi' op division of 7 by zero
  %x = arith.divsi %a, %b : i32
  return
}

// RUN: not ssa-run %s --entry=division_in_region --in arange:3000 2>&1 | FileCheck %s --check-prefix=DIVISION-IN-REGION
func.func @division_in_region(%x: tensor<3000xi32>) {
  %e = tensor.empty() : tensor<3000xi32>
  %r = linalg.map ins(%x : tensor<3000xi32>) outs(%e : tensor<3000xi32>) (%i: i32, %o: i32) {
    %c = arith.constant 2345 : i32
    %d = arith.subi %i, %c : i32
    // DIVISION-IN-REGION: error: 'arith.remsi' op division of 2345 by zero
    %y = arith.remsi %i, %d : i32
    linalg.yield %y : i32
  }
  return
}

// RUN: not ssa-run %s --entry=extract_in_region --in zeros:2x3 2>&1 | FileCheck %s --check-prefix=EXTRACT-IN-REGION
func.func @extract_in_region(%t: tensor<?x?xf32>) {
  %e = tensor.empty() : tensor<9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<9xf32>) {
  ^bb0(%o: f32):
    %c = arith.constant 1 : index
    %i = linalg.index 0 : index
    // EXTRACT-IN-REGION: error: 'tensor.extract' op reads index 3 of dimension 1, but its tensor has shape 2x3
    %x = tensor.extract %t[%c, %i] : tensor<?x?xf32>
    linalg.yield %x : f32
  } -> tensor<9xf32>
  return
}

// RUN: not ssa-run %s --entry=dim_in_region --in zeros:2x3 2>&1 | FileCheck %s --check-prefix=DIM-IN-REGION
func.func @dim_in_region(%t: tensor<?x?xf32>) {
  %e = tensor.empty() : tensor<9xindex>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<9xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 0 : index
    // DIM-IN-REGION: error: 'tensor.dim' op asks for dimension 2 of a tensor of shape 2x3
    %x = tensor.dim %t, %i : tensor<?x?xf32>
    linalg.yield %x : index
  } -> tensor<9xindex>
  return
}

// RUN: not ssa-run %s --entry=no_body 2>&1 | FileCheck %s --check-prefix=NO-BODY
// NO-BODY: error: @external has no body to evaluate
func.func private @external()
func.func @no_body() {
  call @external() : () -> ()
  return
}

// RUN: not ssa-run %s --entry=blocks 2>&1 | FileCheck %s --check-prefix=BLOCKS
// BLOCKS: error: @blocks has 2 blocks, but the interpreter evaluates functions of one
func.func @blocks() {
  cf.br ^next
^next:
  return
}

// RUN: not ssa-run %s --entry=recursion --in value:1 2>&1 | FileCheck %s --check-prefix=RECURSION
func.func @recursion(%x: f32) -> f32 {
  // RECURSION: error: 'func.call' op calls 'recursion' inside of 100 calls, which is the most; does it end?
  %y = call @recursion(%x) : (f32) -> f32
  return %y : f32
}
