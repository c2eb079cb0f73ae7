# RUN: %python %s
"""examples/infllm-v2.mlir: blocks ranked by the largest weight of the summaries that touch them."""

from formulas import *

SIZE, STRIDE, BLOCK = 32, 16, 64
HEADS, GROUPS, INIT, LOCAL = 32, 2, 1, 8


def infllm_v2(B, M, N):
    x = Example("infllm-v2", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, b = positions(M, N)[:, None], np.arange(-(-N // BLOCK))

    kc = round_to(means(k, SIZE, STRIDE), "bf16")
    J = kc.shape[2]
    p = softmax(logits(q, kc), np.arange(J) * STRIDE + SIZE - 1 <= t)
    p = p.reshape(B, GROUPS, HEADS // GROUPS, M, J).sum(axis=2)
    s = np.zeros(p.shape[:3] + b.shape)
    for j in b:
        s[..., j] = p[..., max(4 * j - 1, 0) : 4 * j + 4].max(axis=3, initial=0)

    # The own block and the 8 before it: one more than NSA would count.
    behind = t // BLOCK - b
    lists = x.run("infllm_v2_select")
    cut = compare_lists("blocks", lists, s, behind >= 0, (b < INIT) | (behind >= 0) & (behind <= LOCAL))
    check(cut or N < 1100, "no row was cut by score")

    keep = per_head(tokens_of(lists, N, BLOCK), HEADS) & causal(M, N)
    compare_output("o", x.run("infllm_v2"), attention(q, k, v, keep), v)


if __name__ == "__main__":
    main(cases(infllm_v2, more_blocks_than_listed=(1, 29, 1477)))
