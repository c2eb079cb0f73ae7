# RUN: %python %s
"""examples/score-regions.mlir: soft-capped logits and ALiBi."""

from formulas import *

CAP, WINDOW, BLOCK = 50, 256, 32


def score_regions(B, M, N):
    x = Example("score-regions", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, i = positions(M, N)[:, None], np.arange(N)
    plain, values = logits(q, k), per_head(v, 16)

    capped = CAP * np.tanh(plain / CAP)
    check(not plain.size or N < 100 or np.abs(plain).max() > CAP, "no logit reaches the cap")
    compare_output("soft cap", x.run("soft_cap"), softmax(capped, (i <= t) & (i > t - WINDOW)) @ values, v)

    biased = plain - x["slopes"][:, None, None] * (t - i)
    compare_output("alibi", x.run("alibi"), softmax(biased, causal(M, N)) @ values, v)
    keep = per_head(tokens_of(x["list"], N, BLOCK), 16) & causal(M, N)
    compare_output("alibi at a list", x.run("alibi_at"), softmax(biased, keep) @ values, v)


if __name__ == "__main__":
    main(cases(score_regions))
