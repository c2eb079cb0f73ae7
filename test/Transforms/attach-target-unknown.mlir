// RUN: ssa-opt %s -ssa-attach-target=chip=sm_100b -verify-diagnostics

// expected-error @below {{unknown chip 'sm_100b'; known are sm_80}}
module {}
