# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other implementations of what the benchmarks time. Each function returns what is to be run, or raises; an ImportError says that a
library is not installed."""

import functools

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def sdpa(backend, q, k, v, causal=True):
    """PyTorch's attention."""
    chosen = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[backend]

    def run():
        with sdpa_kernel(chosen):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    return run


@functools.cache
def compiled_flex():
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


def flex_window(q, k, v, window, sink=0):
    from torch.nn.attention.flex_attention import create_block_mask

    def sees(b, h, m, n):
        return (m >= n) & ((m - n < window) | (n < sink))

    mask = create_block_mask(sees, None, None, q.shape[2], k.shape[2], device="cuda", _compile=True)
    return lambda: compiled_flex()(q, k, v, block_mask=mask, enable_gqa=True)


def flex_lists(q, k, v, chosen, block):
    """Causal attention at lists of blocks that `block` queries share: `chosen` is 1 x heads x blocks of queries x width, ascending."""
    from torch.nn.attention.flex_attention import BlockMask

    heads, rows, width = chosen.shape[1:]
    own = torch.arange(rows, device="cuda")[:, None]
    first = torch.ones_like(chosen, dtype=torch.bool)
    first[..., 1:] = chosen[..., 1:] != chosen[..., :-1]
    partial, full = first & (chosen == own), first & (chosen < own)

    def pack(kept):
        """Counts, and the kept numbers before the others."""
        order = torch.argsort(~kept, dim=-1, stable=True)
        padded = torch.zeros((1, heads, rows, rows), dtype=torch.int32, device="cuda") if rows >= width else None
        if padded is None:
            raise ValueError("fewer blocks than a list has")
        padded[..., :width] = chosen.gather(-1, order)
        return kept.sum(-1).int(), padded

    mask = BlockMask.from_kv_blocks(*pack(partial), *pack(full), BLOCK_SIZE=block, mask_mod=lambda b, h, m, n: m >= n)
    return lambda: compiled_flex()(q, k, v, block_mask=mask, enable_gqa=True)


def triton_lists(q, k, v, chosen, block):
    """A plain Triton kernel of our own: a program for a query and a key head, its blocks one after another."""
    from triton_lists import attend

    return lambda: attend(q, k, v, chosen, block)


def fla_lists(q, k, v, chosen, block):
    """flash-linear-attention's selected branch of NSA."""
    from fla.ops.nsa.parallel import parallel_nsa_fwd

    rows_first = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    blocks, counts = chosen.transpose(1, 2).contiguous(), chosen.shape[3]

    def run():
        out = parallel_nsa_fwd(*rows_first, block_indices=blocks, block_counts=counts, block_size=block, scale=q.shape[3] ** -0.5)
        return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

    return run


def flashinfer_dense(q, k, v, window=-1):
    import flashinfer

    rows = [x[0].transpose(0, 1).contiguous() for x in (q, k, v)]
    return lambda: flashinfer.single_prefill_with_kv_cache(*rows, causal=True, window_left=window - 1 if window > 0 else -1).transpose(0, 1)[None]


def flash_mla_sparse(q, k, chosen, value_dim):
    """FlashMLA's attention to token lists: one key head of 576 numbers, values the first 512."""
    from flash_mla import flash_mla_sparse_fwd

    queries, keys = q[0].transpose(0, 1).contiguous(), k[0].transpose(0, 1).contiguous()
    numbers = chosen[0].transpose(0, 1).contiguous()
    return lambda: flash_mla_sparse_fwd(queries, keys, numbers, q.shape[3] ** -0.5, value_dim)[0].transpose(0, 1)[None]


def torch_topk(scores, width):
    """The best of every row, ascending by number."""
    return lambda: torch.topk(scores, width, dim=-1).indices.sort(-1).values.int()


def torch_regroup(scores, blocks):
    """NSA's equation 9: scores of blocks of 32 every 16 to blocks of 64."""
    padded = torch.nn.functional.pad(scores.clamp(min=0), (1, 4 * blocks + 4 - scores.shape[-1]))
    return sum(w * padded[..., i : i + 4 * blocks : 4] for i, w in enumerate((1, 2, 2, 2, 1)))


class torch_select:  # noqa: N801: used as the functions are
    """Means of keys, softmax of complete ones, sums over the heads of a group, regrouped to 64 where blocks overlap, the best besides the first and
    the two newest; some rows at a time."""

    def __init__(self, q, k, size, stride, width, part=2048):
        self.q, self.k, self.size, self.stride, self.width, self.part = q, k, size, stride, width, part
        self.means = self.make_means()

    def make_means(self):
        return self.k[0].unfold(1, self.size, self.stride).float().mean(-1).bfloat16()

    def __call__(self):
        self.means = self.make_means()
        every = torch.arange(self.q.shape[2], device="cuda")
        return torch.cat([self.rows(at) for at in every.split(self.part)], 2)

    def rows(self, at):
        """The lists of the queries `at`."""
        key_heads, group = self.k.shape[1], self.q.shape[1] // self.k.shape[1]
        ends = torch.arange(self.means.shape[1], device="cuda") * self.stride + self.size - 1
        number = torch.arange(self.k.shape[2] // 64, device="cuda")
        part, at = self.q[0][:, at].unflatten(0, (key_heads, group)), at[:, None]
        score = torch.zeros((key_heads, len(at), self.means.shape[1]), device="cuda")
        for head in range(group):
            x = torch.einsum("gmd,gnd->gmn", part[:, head], self.means).float() * self.q.shape[3] ** -0.5
            score += torch.softmax(x.masked_fill_(ends > at, -torch.inf), -1).nan_to_num_(0)
        if self.stride != self.size:
            score = torch_regroup(score, len(number))
        else:
            score = score.masked_fill(ends > at, -torch.inf)
        own = at // 64
        forced = (number == 0) | (number == own) | (number == own - 1)
        score = score.masked_fill(forced, torch.inf).masked_fill(number > own, -torch.inf)
        best = torch.topk(score, self.width, dim=-1)
        chosen = best.indices.masked_fill(best.values == -torch.inf, len(number)).sort(-1).values.int()
        return chosen.masked_fill(chosen == len(number), -1)[None]


def torch_indexer(q, k, w, c, width, rows=256):
    """DSA's scores by products in tf32, of which fp8 is a part, and the best of them; some rows at a time."""
    queries, n = q.shape[2], k.shape[2]
    keys = k[0, 0].float()

    def run():
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        out = []
        for begin in range(0, queries, rows):
            part = q[0, :, begin : begin + rows].float()
            scores = torch.zeros((part.shape[1], n), device="cuda")
            for head in range(part.shape[0]):
                scores += torch.relu(part[head] @ keys.T) * w[0, head, begin : begin + rows, None]
            at = torch.arange(begin, begin + part.shape[1], device="cuda")[:, None] + n - queries
            scores = (scores * c[0, 0]).masked_fill_(torch.arange(n, device="cuda") > at, -torch.inf)
            out.append(scores.topk(width).indices.sort(-1).values.int())
        torch.backends.cuda.matmul.allow_tf32 = before
        return torch.cat(out)[None, None]

    return run
