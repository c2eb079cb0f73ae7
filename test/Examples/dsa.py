# RUN: %python %s
"""examples/dsa.mlir against the formulas of DeepSeek sparse attention."""

from formulas import *

LATENT, SCALE = 512, 192**-0.5


def indexer(x, ki, sc):
    """I[t,i] = sum over index heads of w[t,h] max(0, qI[t,h] . kI[i]), the key multiplied by its scale."""
    dots = logits(x["qi"], ki * sc[..., None], 1.0)
    return np.einsum("bht,bhti->bti", x["w"], np.maximum(dots, 0))[:, None]


def latent_attention(x, tokens):
    """All heads over one list of tokens; the value is the latent part of the key."""
    q, k = x["q"], x["k"]
    M, N = q.shape[2], k.shape[2]
    keep = tokens_of(tokens, N) & causal(M, N)
    return attention(q, k, k[..., :LATENT], keep, SCALE)


def dsa(B, M, N):
    x = Example("dsa", B, M, N)
    tokens = x.run("dsa_select")
    exact = compare_lists("tokens", tokens, indexer(x, x["ki"], x["sc"]), causal(M, N))
    check(exact or N < 300, "no row was cut by score")
    compare_output("o", x.run("dsa"), latent_attention(x, tokens), x["k"][..., :LATENT])


if __name__ == "__main__":
    main(cases(dsa))
