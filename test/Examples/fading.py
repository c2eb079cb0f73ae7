# RUN: %python %s
"""examples/fading.mlir: a formula of our own, with score regions in routing and in attention."""

from formulas import *

BLOCK, WIDTH, CAP = 64, 8, 30


def fading(B, M, N):
    x = Example("fading", B, M, N)
    q, k, v, rates = x["q"], x["k"], x["v"], x["rates"][:, None, None]
    t, i, block = positions(M, N)[:, None], np.arange(N), np.arange(-(-N // BLOCK))

    end = (block + 1) * BLOCK
    score = logits(q, round_to(means(k, BLOCK), "bf16")).clip(0) ** 2 - rates * np.log2(1 + (t - end).clip(0))
    score = score.reshape(B, 4, 4, M, len(block)).max(axis=2)
    score = np.where(end - 1 <= t, score, -np.inf)  # complete blocks
    own = t // BLOCK
    see, forced = block * BLOCK <= t, (block == 0) | (block == own) | (block == own - 1)
    lists = x.run("fading_select", k=x.raw["k"])
    cut = compare_lists("blocks", lists, score, see, forced)
    check(cut or not B * M or N < 12 * BLOCK, "no row was cut by score")

    with np.errstate(invalid="ignore", divide="ignore"):
        logit = CAP * np.tanh((logits(q, k) - rates * np.log2(1 + (t - i).clip(0))) / CAP)
    keep = per_head(tokens_of(lists, N, BLOCK), 16) & causal(M, N)
    compare_output("o", x.run("fading"), softmax(logit, keep) @ per_head(v, 16), v)


if __name__ == "__main__":
    main(cases(fading, chunk_with_many_blocks=(1, 37, 901)))
