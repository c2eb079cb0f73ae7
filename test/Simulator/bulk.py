# RUN: %python %s
"""Bulk copies and tiles against NumPy: out of shared memory, to rows that indices name and back, to other blocks of a cluster, and reductions."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

SIM = os.path.join(os.environ.get("SSA_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"), "ssa-sim")


def run(name, parameters, body, arguments, result, files=(), cluster=1, version="8.8", target="sm_100a"):
    """A kernel of 32 threads for each block; returns the bytes of one argument. `%p1` is true in all threads but the first."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k({parameters})\n" + (f".reqnctapercluster {cluster}\n" if cluster > 1 else "")
    head += "{\n.reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<32>;\n.reg .b64 %d<32>;\n.shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b8 full[8];\n"
    head += "mov.u32 %r0, %tid.x;\nsetp.ne.u32 %p1, %r0, 0;\n@!%p1 mbarrier.init.shared::cta.b64 [full], 1;\n@!%p1 fence.mbarrier_init.release.cluster;\nmov.b64 %d0, tile;\nmov.b64 %d1, full;\nmul.wide.u32 %d2, %r0, 16;\nadd.s64 %d3, %d0, %d2;\nbar.sync 0;\n"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "k.ptx").write_text(head + body + "ret;\n}\n")
        for i, data in enumerate(files):
            data.tofile(f"{folder}/{i}")
        done = subprocess.run([SIM, f"{folder}/k.ptx", "--block=32", f"--grid={cluster}", f"--save={result}={folder}/out", *(f"--arg={a.replace('@', f'@{folder}/')}" for a in arguments)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        return np.fromfile(f"{folder}/out", np.uint8)


def expect(name, got, wanted):
    if not np.array_equal(got, wanted):
        bad = np.argwhere(got != wanted)
        sys.exit(f"{name}: {len(bad)} of {got.size} elements are wrong, first {bad[0]}: {got[tuple(bad[0])]}, expected {wanted[tuple(bad[0])]}")


def swizzled(offset, row_bytes):
    return offset ^ ((offset >> 7 & (row_bytes // 16 - 1)) << 4) if row_bytes > 16 else offset


FILL = "mov.b32 %r1, %r0;\nFILL:\nadd.s32 %r2, %r1, 1000;\nmul.wide.u32 %d5, %r1, 4;\nadd.s64 %d6, %d0, %d5;\nst.shared.b32 [%d6], %r2;\nadd.s32 %r1, %r1, 32;\nsetp.lt.u32 %p2, %r1, 2048;\n@%p2 bra FILL;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
FINISH = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"


def test_tile_stores():
    """A box that is partly outside; word i of shared memory is 1000 + i."""
    for mode, row_bytes in (("none", 16), ("32b", 32), ("64b", 64), ("128b", 128)):
        columns = 8 if mode == "none" else row_bytes // 4
        for row, column in ((0, 0), (3, 4), (-2, -4), (9, 0)):
            body = FILL + f"@%p1 ret;\nmov.b64 %d4, map;\ncvta.param.u64 %d4, %d4;\nmov.b32 %r3, {column};\nmov.b32 %r4, {row};\ncp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d4, {{%r3, %r4}}], [%d0];\n" + FINISH
            out = run(f"tile store {mode}", ".param .u64 out, .param .align 64 .b8 map[128]", body, ["out=u32[480]:7", f"map=out:12x40:8x{columns}:{mode}"], "out").view(np.uint32).reshape(12, 40)
            wanted = np.full((12, 40), 7, np.uint32)
            for r in range(8):
                for c in range(columns):
                    if 0 <= row + r < 12 and 0 <= column + c < 40:
                        wanted[row + r, column + c] = 1000 + swizzled((r * columns + c) * 4, row_bytes) // 4
            expect(f"tile store {mode} at {row}, {column}", out, wanted)


def test_rows():
    """Rows that are gathered, and scattered to other places; a row that does not exist is zeros, and is not written. Four rows may be half of a pattern of the swizzle."""
    data = np.arange(20 * 32, dtype=np.uint32).reshape(20, 32)
    picked, places = [3, 19, 25, 3], [7, -1, 0, 18]
    body = "@%p1 ret;\nmov.b64 %d4, from;\ncvta.param.u64 %d4, %d4;\nmov.b64 %d5, to;\ncvta.param.u64 %d5, %d5;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;\nmov.b32 %r1, 0;\nadd.s64 %d6, %d0, OFFSET;\n"
    body += "".join(f"mov.b32 %r{2 + i}, {r};\n" for i, r in enumerate(picked)) + "".join(f"mov.b32 %r{8 + i}, {r};\n" for i, r in enumerate(places))
    body += "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%d6], [%d4, {%r1, %r2, %r3, %r4, %r5}], [%d1];\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n@!%p3 bra WAIT;\n"
    scatter = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d5, {%r1, %r8, %r9, %r10, %r11}], [%d6];\n" + FINISH
    bulk = "ld.param.b64 %d7, [out];\nmov.b32 %r3, 512;\ncp.async.bulk.global.shared::cta.bulk_group [%d7], [%d6], %r3;\n" + FINISH
    arguments = ["in=u32[640]:@0", "out=u32[640]:7", "map=in:20x32:1x32:128b", "map=out:20x32:1x32:128b"]
    for offset in (0, 512):
        here = body.replace("OFFSET", str(offset))
        parameters = ".param .u64 in, .param .u64 out, .param .align 64 .b8 from[128], .param .align 64 .b8 to[128]"
        wanted = np.full((20, 32), 7, np.uint32)
        for source, place in zip(picked, places):
            if place >= 0:
                wanted[place] = data[source] if source < 20 else 0
        expect(f"gathered and scattered rows at {offset}", run("rows", parameters, here + scatter, arguments, "out", [data]).view(np.uint32).reshape(20, 32), wanted)
        # As they lie in shared memory: which pieces of 16 bytes are exchanged follows from the address.
        rows = np.stack([data[r] if r < 20 else np.zeros(32, np.uint32) for r in picked]).reshape(4, 8, 4)
        raw = np.stack([rows[r][[piece ^ ((r + offset // 128) % 8) for piece in range(8)]] for r in range(4)]).reshape(4, 32)
        out = run("raw rows", parameters, here + bulk, arguments, "out", [data]).view(np.uint32).reshape(20, 32)[:4]
        expect(f"gathered rows in shared memory at {offset}", out, raw)


def test_bytes_and_reductions():
    out = run("bulk store", ".param .u64 out", FILL + "@%p1 ret;\nld.param.b64 %d4, [out];\nadd.s64 %d4, %d4, 32;\nmov.b32 %r3, 4096;\ncp.async.bulk.global.shared::cta.bulk_group [%d4], [%d0], %r3;\n" + FINISH, ["out=u32[1040]:7"], "out").view(np.uint32)
    expect("bulk store", out, np.concatenate([np.full(8, 7), np.arange(1000, 2024), np.full(8, 7)]).astype(np.uint32))
    for name, function in (("add.u32", lambda a, b: a + b), ("min.s32", np.minimum), ("max.u32", np.maximum), ("and.b32", np.bitwise_and), ("or.b32", np.bitwise_or), ("xor.b32", np.bitwise_xor)):
        body = FILL + f"@%p1 ret;\nld.param.b64 %d4, [out];\nmov.b32 %r3, 512;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.{name} [%d4], [%d0], %r3;\n" + FINISH
        before = np.arange(1064, 936, -1).astype(np.uint32)
        expect(name, run(name, ".param .u64 out", body, ["out=u32[128]:@0"], "out", [before]).view(np.uint32), function(before, np.arange(1000, 1128).astype(np.uint32)).astype(np.uint32))
    # A read that is waited for and a write that is not: it lands at the end.
    body = FILL + "@%p1 ret;\nld.param.b64 %d4, [out];\nmov.b32 %r3, 512;\ncp.async.bulk.global.shared::cta.bulk_group [%d4], [%d0], %r3;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nst.shared.b32 [%d0], 5;\n"
    expect("wait for reading only", run("read", ".param .u64 out", body, ["out=u32[128]:7"], "out").view(np.uint32), np.arange(1000, 1128).astype(np.uint32))


def test_cluster():
    """A tile for three of four blocks at once; then each block sends it on to the next."""
    data = np.arange(8 * 32, dtype=np.uint32).reshape(8, 32)
    sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
    wait = "WAIT{0}:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [full], {0};\n@!%p3 bra WAIT{0};\n"
    body = "mov.u32 %r1, %cluster_ctarank;\nmov.b32 %r2, 0;\nsetp.ne.u32 %p2, %r1, 2;\nsetp.eq.u32 %p6, %r1, 0;\nmov.b64 %d4, map;\ncvta.param.u64 %d4, %d4;\n@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;\n" + sync
    body += "or.pred %p4, %p1, %p2;\nmov.b16 %h0, 14;\n@!%p4 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%d0], [%d4, {%r2, %r2}], [%d1], %h0;\n"
    body += "mov.b32 %r3, 1024;\n@!%p6 bra READY;\n@%p1 bra READY;\nmov.b32 %r4, 0;\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%d0], [%d4, {%r2, %r2}], [%d1];\nREADY:\n" + wait.format(0)
    # To the next block, behind what it has.
    body += "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;\n" + sync + "add.s32 %r5, %r1, 1;\nand.b32 %r5, %r5, 3;\nadd.s64 %d5, %d0, 1024;\nmapa.shared::cluster.u64 %d6, %d5, %r5;\nmapa.shared::cluster.u64 %d7, %d1, %r5;\n"
    body += "@!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%d6], [%d0], %r3, [%d7];\n" + wait.format(1)
    body += "add.s64 %d8, %d5, %d2;\nadd.s64 %d8, %d8, %d2;\nld.param.b64 %d9, [out];\nmad.lo.u32 %r6, %r1, 32, %r0;\nmul.wide.u32 %d10, %r6, 32;\nadd.s64 %d9, %d9, %d10;\n"
    body += "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%d8];\nst.global.v4.b32 [%d9], {%r10, %r11, %r12, %r13};\nld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%d8+16];\nst.global.v4.b32 [%d9+16], {%r10, %r11, %r12, %r13};\n" + sync
    out = run("cluster", ".param .u64 in, .param .u64 out, .param .align 64 .b8 map[128]", body, ["in=u32[256]:@0", "out=u32[1024]", "map=in:8x32:8x32:none"], "out", [data], cluster=4, target="sm_90a").view(np.uint32)
    expect("tiles of a cluster", out.reshape(4, 8, 32), np.stack([data] * 4))


test_tile_stores()
test_rows()
test_bytes_and_reductions()
test_cluster()
