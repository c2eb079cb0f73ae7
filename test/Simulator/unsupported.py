# RUN: %python %s
"""What the simulator does not do is an error that names the instruction, before anything runs."""

import os
import pathlib
import subprocess
import sys
import tempfile

SIM = os.path.join(os.environ.get("SSA_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"), "ssa-sim")
CASES = [
    ("tcgen05.mma.ws.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, %p0;", "tcgen05.mma.ws is not supported by the simulator"),
    ("tcgen05.mma.sp.cta_group::1.kind::f16 [%r0], %d0, %d1, [%r2], %r1, %p0;", "products that are sparse or have block scales are not supported by the simulator"),
    ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r0], %d0, %d1, %r1, [%r2], [%r3], %p0;", "products that are sparse or have block scales are not supported by the simulator"),
    ("tcgen05.mma.cta_group::1.kind::i8 [%r0], %d0, %d1, %r1, %p0;", "this kind of product is not supported by the simulator"),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, {%r2, %r3}, %p0;", "expected 4 masks of lanes, but got 2"),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, %p0, 16;", "scale-input-d must be 0 to 15, for f16 and tf32"),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, %p0;\ntcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;", "a kernel cannot use both cta_group::1 and cta_group::2"),
    ("tcgen05.shift.cta_group::1.down [%r0];", "tcgen05.shift is not supported by the simulator"),
    ("tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [%r0], %d0;", "copies that unpack elements of 4 or 6 bits are not supported by the simulator"),
    ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.b32 {%r0, %r1}, %r2, [%r3];", "tcgen05.ld.red is not supported by the simulator"),
    ("tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r0}, [%r3];", "this form does not exist: it would take 256 registers"),
    ("tcgen05.ld.sync.aligned.16x128b.x2.b32 {%r0, %r1}, [%r3];", "expected 4 registers, but got 2"),
    ("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%d0], [%d1, {%r0, %r1, %r2}], [%d2], {%h0};", "im2col modes of tensor maps are not supported by the simulator"),
    ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d0, {%r0, %r1}], [%d1];", "reductions of tiles are not supported by the simulator"),
    ("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%d0], [%d1], %r0, [%d2];", "reductions into shared memory of other blocks are not supported by the simulator"),
    ("cp.async.bulk.tensor.3d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%d0], [%d1, {%r0, %r1, %r2, %r3, %r4}], [%d2];", "rows are gathered from and scattered to tensors of two dimensions"),
    ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d0, {%r0}], [%d1];", "expected 2 coordinates, but got 1"),
]

wrong = 0
for text, message in CASES:
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n" + text + "\nret;\n}\n")
        file.flush()
        done = subprocess.run([SIM, file.name], capture_output=True, text=True)
    name, line = text.split("\n")[-1].split()[0].rstrip(";"), 10 + text.count("\n")
    if done.returncode != 1 or f"line {line} '{name}" not in done.stderr or message not in done.stderr:
        print(f"{text}: expected '{message}', but got: {done.stderr}")
        wrong += 1
sys.exit(wrong > 0)
