# RUN: %python %s
"""examples/msa.mlir: blocks ranked by their best visible token."""

from formulas import *

BLOCK, INIT, LOCAL = 128, 1, 1


def msa(B, M, N):
    x = Example("msa", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, b = positions(M, N)[:, None], np.arange(-(-N // BLOCK))

    scores = np.where(causal(M, N), logits(x["qi"], x["ki"], 1.0), -np.inf)
    s = np.full(scores.shape[:3] + b.shape, -np.inf)
    for j in b:
        s[..., j] = scores[..., j * BLOCK : (j + 1) * BLOCK].max(axis=3)
    last = t // BLOCK
    lists = x.run("msa_select")
    cut = compare_lists("blocks", lists, s, b <= last, (b < INIT) | (b <= last) & (b > last - LOCAL))
    check(cut or N < 2200, "no row was cut by score")

    keep = per_head(tokens_of(lists, N, BLOCK), 16) & causal(M, N)
    compare_output("o", x.run("msa"), attention(q, k, v, keep), v)


if __name__ == "__main__":
    main(cases(msa, more_blocks_than_listed=(1, 21, 2501)))
