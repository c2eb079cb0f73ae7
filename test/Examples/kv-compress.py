# RUN: %python %s
"""examples/kv-compress.mlir: a compact cache of the tokens that the last queries looked at, and attention to it later."""

from formulas import *

OBSERVED, SINKS, RECENT, WIDTH = 64, 4, 64, 512


def gathered(x, index):
    """Rows `[b, g, 1, 512, d]` of x `[b, g, n, d]`; 0 where the index is -1."""
    rows = np.take_along_axis(np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0))), np.where(index < 0, x.shape[2], index)[:, :, 0, :, None], axis=2)
    return rows[:, :, None]


def kv_compress(B, M, N):
    x = Example("kv-compress", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    rows = min(M, OBSERVED)
    t, i = np.arange(rows)[:, None] + N - rows, np.arange(N)
    weights = softmax(logits(q[:, :, M - rows :], k), i <= t)
    score = weights.reshape(B, 4, 4, rows, N).sum(axis=(2, 3))[:, :, None]
    kc, vc, index = x.run("compress")
    compare_lists("index", index, score, i < N, (i < SINKS) | (i >= N - RECENT))
    compare_exact("the index alone", x.run("compress_select"), index)
    compare_exact("keys", kc, gathered(x.raw["k"], index))
    compare_exact("values", vc, gathered(x.raw["v"], index))
    compare_exact("by an index", x.run("gather_by", index=index), gathered(x.raw["v"], index))

    # Later: queries at the end of what has come since attend to what was kept and to that.
    m, n = x["ql"].shape[2], x["kn"].shape[2]
    parts = (tokens_of(index, N), N), (causal(m, n), n)
    keep = np.concatenate([np.broadcast_to(part, (B, 4, m, size)) for part, size in parts], axis=3)
    everything = [np.concatenate([x[a], x[b]], axis=2) for a, b in (("k", "kn"), ("v", "vn"))]
    ref = attention(x["ql"], *everything, per_head(keep, 16))
    got = x.run("attend_compressed", kc=kc, vc=vc, index=index)
    compare_output("o", got, ref, v if v.size else x["vn"])


if __name__ == "__main__":
    main(cases(kv_compress, a_long_prompt=(1, 70, 901)))
