# RUN: %python %s
"""examples/nsa.mlir against the formulas of the NSA paper.

    nsa.py --check INDIR OUT.npy     reports how well a result agrees, for inputs made by `generate.py nsa INDIR`
"""

import sys

from formulas import *

L, D, LP = 32, 16, 64  # size and stride of a summary, size of a selected block
ALPHA, BETA = LP // D, L // D
INIT, LOCAL, TOP, WINDOW = 1, 2, 16, 512


def compressed(q, k, v):
    """The compressed branch, and the softmax weights of its summaries."""
    M, N = q.shape[2], k.shape[2]
    kc, vc = (round_to(means(x, L, D), "bf16") for x in (k, v))
    visible = np.arange(kc.shape[2]) * D + L - 1 <= positions(M, N)[:, None]
    p = softmax(logits(q, kc), visible)
    return p @ per_head(vc, q.shape[1]), p


def importance(p, groups, N):
    """Equation 9: the weights of the summaries that touch a block, summed over the heads of a group."""
    B, H, M, J = p.shape
    p = p.reshape(B, groups, H // groups, M, J).sum(axis=2)
    s = np.zeros((B, groups, M, -(-N // LP)))
    for b in range(s.shape[3]):
        for x in range(ALPHA):
            for y in range(BETA):
                j = ALPHA * b + x + y - (BETA - 1)
                if 0 <= j < J:
                    s[..., b] += p[..., j]
    return s


def blocks(M, N):
    """Which blocks a query may take, and which it must."""
    t, b = positions(M, N)[:, None], np.arange(-(-N // LP))
    behind = t // LP - b
    return behind >= 0, (b < INIT) | (behind >= 0) & (behind < LOCAL)


def combine(x, o1, lists):
    """The output for given lists."""
    q, k, v = x["q"], x["k"], x["v"]
    M, N = q.shape[2], k.shape[2]
    t, i = positions(M, N)[:, None], np.arange(N)
    o2 = attention(q, k, v, per_head(tokens_of(lists, N, LP), q.shape[1]) & causal(M, N))
    o3 = attention(q, k, v, (i <= t) & (i > t - WINDOW))
    gates = (1 / (1 + np.exp(-x[g]))[..., None] for g in ("g1", "g2", "g3"))
    return sum(g * round_to(o, "bf16") for g, o in zip(gates, (o1, o2, o3)))


def nsa(B, M, N):
    x = Example("nsa", B, M, N)
    o1, p = compressed(x["q"], x["k"], x["v"])
    lists = x.run("nsa_select")
    exact = compare_lists("blocks", lists, importance(p, 4, N), *blocks(M, N))
    check(exact or N < 1100, "no row was cut by score")
    compare_output("o", x.run("nsa"), combine(x, o1, lists), x["v"])


def report(folder, result):
    """Compares a stored result; 0 if it agrees. Rows with a tie at the cut may be selected either way: they are left out."""
    x = {name: np.load(f"{folder}/{name}.npy").astype(np.float64) for name in ("q", "k", "v", "g1", "g2", "g3")}
    got = np.load(result)
    (B, H, M, _), N = x["q"].shape, x["k"].shape[2]
    o1, p = compressed(x["q"], x["k"], x["v"])
    lists, clear = choose(importance(p, x["k"].shape[1], N), *blocks(M, N), TOP)
    ref = combine(x, o1, lists)
    if got.shape != ref.shape:
        print(f"expected a result of shape {ref.shape}, but got {got.shape}")
        return 1
    clear = per_head(clear, H)
    error = np.abs(got - ref) / (np.abs(x["v"]).max(initial=0) + np.abs(ref))
    worst = error[clear].max(initial=0) if np.isfinite(got).all() else np.inf
    print(f"NSA against float64 NumPy: {B} x {H} heads, {M} queries, {N} keys; {clear.sum()} of {clear.size} rows compared")
    print(f"largest difference {np.abs(got - ref)[clear].max(initial=0):.2e}; by max|v| + |o| {worst:.2e}, allowed {2.0**-8:.2e}")
    print("PASS" if worst <= 2.0**-8 else "FAIL")
    return int(worst > 2.0**-8)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(report(*sys.argv[2:]))
    main(cases(nsa, more_blocks_than_listed=(1, 29, 1477)))
