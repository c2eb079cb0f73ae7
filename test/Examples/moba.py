# RUN: %python %s
"""examples/moba.mlir against the formulas of mixture of block attention."""

from formulas import *

CHUNK = 128


def moba(B, M, N):
    x = Example("moba", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, n = positions(M, N)[:, None], np.arange(-(-N // CHUNK))

    s = logits(q, round_to(means(k, CHUNK), "f32"), 1.0)
    own = n == t // CHUNK
    s = np.where(own, np.inf, np.where(t < (n + 1) * CHUNK, -np.inf, s))
    lists = x.run("moba_select")
    cut = compare_lists("chunks", lists, s, s > -np.inf, own)
    check(cut or N < 400, "no row was cut by score")

    keep = tokens_of(lists, N, CHUNK) & causal(M, N)
    compare_output("o", x.run("moba"), attention(q, k, v, keep), v)


if __name__ == "__main__":
    main(cases(moba, more_chunks_than_listed=(1, 31, 907), odd_length_of_four_chunks=(1, 453, 453)))
