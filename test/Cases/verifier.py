# RUN: %python %s
"""What the verifier refuses, with a message and a place, never a crash; beside each refusal a neighbour that is accepted."""

from ssatest import *

Q, K, V = tensor((1, 4, 5, 16)), tensor((1, 2, 9, 16)), tensor((1, 2, 9, 16))
O, L, S = tensor((1, 4, 5, 16)), tensor((1, 4, 5)), tensor((1, 4, 5, 9))
LIST = selection((1, 2, 5, 3))
SORTED = selection((1, 2, 5, 3), sorted=True)
SCORES = tensor((1, 2, 5, 9))
QUIET_NAN, INFINITY = "0x7FF8000000000000 : f64", "0x7FF0000000000000 : f64"


def module(op, operands, results):
    """A module with one op, whose operands `{0}`, `{1}`, .. are the arguments, in the order of the text."""
    arguments = [f"%arg{i}" for i in range(len(operands))]
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    head = ", ".join(f"{a}: {t}" for a, t in zip(arguments, operands))
    text = re.sub(r"\{(\d)\}", lambda m: arguments[int(m[1])], op)
    return f"func.func @main({head}) {{\n  {names} = {text} : {', '.join(operands)} -> {', '.join(results)}\n  return\n}}\n"


def accept(what, op, operands, results):
    message = check_verifier(module(op, operands, results))
    check(message == "", f"{what}: expected no error, but got: {message}")


def refuse(what, op, operands, results, *words):
    """The module is refused with a message that gives a place and holds the words."""
    message = check_verifier(module(op, operands, results))
    check(message != "", f"{what}: expected an error")
    check(re.search(r":\d+:\d+: error: ", message) is not None, f"{what}: expected a place, but got: {message}")
    for w in words:
        check(str(w) in errors(message), f"{what}: expected {str(w)!r} in the error, but got: {message}")


ATTEND = "ssa.sparse_attend {0}, {1}, {2}"
ATTEND_AT = "ssa.sparse_attend {0}, {1}, {2} at {3}"
ROUTE = "ssa.route {0}, {1}"
TOPK = "ssa.topk {0} of {1}"


def heads(hq, hk, d=16):
    """Operands and results of an attention with these head counts."""
    return [tensor((1, hq, 5, d)), tensor((1, hk, 9, d)), tensor((1, hk, 9, d))], [tensor((1, hq, 5, d)), tensor((1, hq, 5))]


# --- Heads -----------------------------------------------------------------------------------------------------------


@case
def G4_heads_of_attention():
    for hq, hk in ((33, 3), (4, 2), (4, 4), (3, 1)):
        accept(f"{hq}, {hk}", ATTEND, *heads(hq, hk))
    for hq, hk in ((33, 2), (3, 2), (2, 4)):
        refuse(f"{hq}, {hk}", ATTEND, *heads(hq, hk), hq, hk)
    for hq, hk in ((4, 0), (0, 4), (0, 0)):
        refuse(f"{hq}, {hk}", ATTEND, *heads(hq, hk))


@case
def G4_heads_of_lists():
    accept("4 heads, 1 list", ATTEND_AT, [Q, K, V, selection((1, 1, 5, 3))], [O, L])
    for G in (3, 8):
        refuse(f"4 heads, {G} lists", ATTEND_AT, [Q, K, V, selection((1, G, 5, 3))], [O, L], 4, G)
    refuse("no list", ATTEND_AT, [Q, K, V, selection((1, 0, 5, 3))], [O, L])


@case
def G4_heads_of_route():
    accept("4 to 2", ROUTE + " {reduce = sum}", [Q, K], [SCORES])
    for G in (3, 8):
        refuse(f"4 to {G}", ROUTE + " {reduce = sum}", [Q, K], [tensor((1, G, 5, 9))], 4, G)
    refuse("4 and 3", ROUTE, [Q, tensor((1, 3, 9, 16))], [S], 4, 3)
    refuse("no reduction of 4 to 2", ROUTE, [Q, K], [SCORES], 4, 2)


@case
def G4_heads_of_the_other_ops():
    rows = tensor((1, 4, 5, 3, 16))
    accept("gather 2 at 4", "ssa.gather {0} at {1}", [K, selection((1, 4, 5, 3))], [rows])
    refuse("gather 2 at 3", "ssa.gather {0} at {1}", [K, selection((1, 3, 5, 3))], [tensor((1, 3, 5, 3, 16))], 2, 3)
    refuse("gather with too few heads", "ssa.gather {0} at {1}", [K, selection((1, 4, 5, 3))], [tensor((1, 2, 5, 3, 16))], 4, 2)
    accept("project by one head", "ssa.project {0}, {1}", [K, tensor((1, 16, 8))], [tensor((1, 2, 9, 8))])
    refuse("project by 3 heads", "ssa.project {0}, {1}", [K, tensor((3, 16, 8))], [tensor((1, 2, 9, 8))], 2, 3)
    accept("sinks of 4 heads", "ssa.merge ({0}, {1}) sink_logits {2}", [O, L, tensor((4,))], [O, L])
    refuse("sinks of 3 heads", "ssa.merge ({0}, {1}) sink_logits {2}", [O, L, tensor((3,))], [O, L], 4, 3)
    refuse("topk of other heads", TOPK, [tensor((1, 4, 5, 9)), K], [SORTED], 4, 2)
    refuse("pool of other heads", "ssa.pool mean {0} {blocks = #ssa.blocks<4>}", [K], [tensor((1, 3, 3, 16))], 2, 3)


@case
def H1_no_heads():
    accept("attend", ATTEND, [Q, K, V], [O, L])
    refuse("attend", ATTEND, [tensor((1, 0, 5, 16)), K, V], [tensor((1, 0, 5, 16)), tensor((1, 0, 5))])
    accept("route", ROUTE, [Q, K], [S])
    refuse("route", ROUTE, [tensor((1, 0, 5, 16)), K], [tensor((1, 0, 5, 9))])


@case
def H1_zero_sizes_are_accepted():
    for B, M, N in ((0, 5, 9), (1, 0, 9), (1, 5, 0)):
        types = [tensor((B, 4, M, 16)), tensor((B, 2, N, 16)), tensor((B, 2, N, 16))]
        accept(f"b {B} m {M} n {N}", ATTEND, types, [types[0], tensor((B, 4, M))])


# --- Widths and forced blocks ----------------------------------------------------------------------------------------


@case
def C1_widths():
    for k in (0, 1, 3, 9, 16, 4096):
        accept(f"k {k}", TOPK, [SCORES, K], [selection((1, 2, 5, k), sorted=True)])
    for k in (-1, -5):
        refuse(f"k {k}", TOPK, [SCORES, K], [selection((1, 2, 5, k), sorted=True)])
        refuse(f"list of {k}", ATTEND_AT, [Q, K, V, selection((1, 2, 5, k))], [O, L])


@case
def D5_widths_above_the_limit():
    for k in (4097, 8192):
        refuse(f"k {k}", TOPK, [SCORES, K], [selection((1, 2, 5, k), sorted=True)], k, 4096)


@case
def O10_dynamic_width():
    accept("queries ?", TOPK, [SCORES, K], [selection((1, 2, None, 3), sorted=True)])
    refuse("k ?", TOPK, [SCORES, K], [selection((1, 2, 5, None), sorted=True)])


@case
def C1_forced_blocks_fit_the_width():
    for init, local in ((1, 2), (3, 0), (0, 3)):
        accept(f"{init} + {local}", f"{TOPK} {{init_blocks = {init}, local_blocks = {local}}}", [SCORES, K], [SORTED])
    for init, local in ((1, 3), (4, 0), (0, 4)):
        refuse(f"{init} + {local}", f"{TOPK} {{init_blocks = {init}, local_blocks = {local}}}", [SCORES, K], [SORTED], init, local, 3)
    for init, local in ((-1, 0), (0, -1)):
        refuse(f"{init} + {local}", f"{TOPK} {{init_blocks = {init}, local_blocks = {local}}}", [SCORES, K], [SORTED])
    # 7 queries lie in at most 1 + ceil(6 / 4) blocks of 4 keys.
    blocked, types = TOPK + " for {2} {init_blocks = 1, local_blocks = 1}", [tensor((1, 2, 1, 3)), K, Q]
    accept("queries of a block", blocked, types, [selection((1, 2, 1, 4), 4, 7, True)])
    refuse("queries of a block", blocked, types, [selection((1, 2, 1, 3), 4, 7, True)], 3)


# --- Masks and blocks ------------------------------------------------------------------------------------------------


@case
def F9_masks():
    for mask in ("causal", "window = 1", "causal, window = 2", "window = 2, sink = 1", "causal, window = 2, sink = 3"):
        accept(mask, f"{ATTEND} {{mask = #ssa.mask<{mask}>}}", [Q, K, V], [O, L])
    for mask in ("window = 0", "causal, window = 0", "causal, window = -1", "", "sink = 1", "causal, sink = 1",
                 "causal, window = 2, sink = -1", "casual", "causal, window", "causal = 1", "causal, window = 2.0"):
        refuse(f"<{mask}>", f"{ATTEND} {{mask = #ssa.mask<{mask}>}}", [Q, K, V], [O, L])


@case
def O10_blocks():
    for blocks, rows in (("4", 3), ("4, stride = 2", 3), ("4, offset = -3", 3), ("1", 9), ("9", 1), ("4, stride = 4", 3)):
        accept(blocks, f"ssa.pool mean {{0}} {{blocks = #ssa.blocks<{blocks}>}}", [K], [tensor((1, 2, rows, 16))])
        accept(f"{blocks}, dynamic", f"ssa.pool mean {{0}} {{blocks = #ssa.blocks<{blocks}>}}", [K], [tensor((1, 2, None, 16))])
    for blocks in ("", "0", "-4", "4, stride = 0", "4, stride = -1", "4, stride = 5", "4, offset = 1", "4, offset = -4",
                   "4, strides = 2", "[]", "4.0"):
        refuse(f"<{blocks}>", f"ssa.pool mean {{0}} {{blocks = #ssa.blocks<{blocks}>}}", [K], [tensor((1, 2, None, 16))])
    refuse("no blocks", "ssa.pool mean {0}", [K], [tensor((1, 2, None, 16))])
    refuse("blocks = []", "ssa.pool mean {0} {blocks = []}", [K], [tensor((1, 2, None, 16))])
    refuse("wrong count", "ssa.pool mean {0} {blocks = #ssa.blocks<4>}", [K], [tensor((1, 2, 4, 16))], 3, 4)


@case
def F10_lists_count_blocks_of_queries():
    queries = tensor((1, 4, 300, 16)), tensor((1, 4, 300))
    for Mq in (5, 1, None):
        accept(f"{Mq} lists", ATTEND_AT, [queries[0], K, V, selection((1, 2, Mq, 3), 64, 64)], queries)
    for Mq in (4, 6, 300):
        refuse(f"{Mq} lists", ATTEND_AT, [queries[0], K, V, selection((1, 2, Mq, 3), 64, 64)], queries, Mq)


@case
def Q2_block_sizes_must_agree():
    """A list made for 128 queries and 64 keys does not pass for one of 64 queries and 128 keys."""
    for key_block, query_block in ((128, 64), (64, 64), (128, 128)):
        other = selection((1, 2, 5, 3), key_block, query_block)
        sorted = selection((1, 2, 5, 3), key_block, query_block, True)
        refuse("sort", "ssa.sort {0}", [selection((1, 2, 5, 3), 64, 128)], [sorted])
        accept("sort", "ssa.sort {0}", [other], [sorted])
        refuse("union", "ssa.union {0}, {1}", [other, selection((1, 2, 5, 2), 64, 128)],
               [selection((1, 2, 5, 5), key_block, query_block, True)])
        accept("union", "ssa.union {0}, {1}", [other, selection((1, 2, 5, 2), key_block, query_block)],
               [selection((1, 2, 5, 5), key_block, query_block, True)])


@case
def Q2_sizes_of_a_list_type():
    accept("2 x 5", ATTEND_AT, [Q, K, V, selection((1, 2, 1, 3), 2, 5)], [O, L])
    for key_block, query_block in ((0, 1), (-1, 1), (1, 0), (1, -2)):
        refuse(f"{key_block} x {query_block}", ATTEND_AT, [Q, K, V, selection((1, 2, 5, 3), key_block, query_block)], [O, L])
    for text in ("1x2x5, key_block = 1", "1x2x5x3x1, key_block = 1", "1x2x5x3, key_blocks = 1", "1x2x5x3, sortd", "key_block = 1"):
        refuse(text, ATTEND_AT, [Q, K, V, f"!ssa.selection<{text}>"], [O, L])


@case
def Q2_candidates():
    cand = selection((1, 2, 2, 4), 8, 4, True)
    scores = tensor((1, 2, 5, 32))
    accept("tokens", TOPK + " within {2}", [scores, K, cand], [SORTED])
    accept("blocks of 4", TOPK + " within {2}", [tensor((1, 2, 5, 8)), K, cand], [selection((1, 2, 5, 3), 4, sorted=True)])
    refuse("unsorted", TOPK + " within {2}", [scores, K, selection((1, 2, 2, 4), 8, 4)], [SORTED])
    refuse("other heads", TOPK + " within {2}", [scores, K, selection((1, 1, 2, 4), 8, 4, True)], [SORTED])
    refuse("blocks of 3", TOPK + " within {2}", [scores, K, cand], [selection((1, 2, 5, 3), 3, sorted=True)], 8, 3)
    refuse("slots", TOPK + " within {2}", [tensor((1, 2, 5, 31)), K, cand], [SORTED], 31, 32)
    queries = tensor((1, 2, 6, 16))
    refuse("blocks of 3 queries", TOPK + " for {2} within {3}", [tensor((1, 2, 2, 32)), K, queries, cand],
           [selection((1, 2, 2, 9), 1, 3, True)], 4, 3)
    accept("route", ROUTE + " within {2} {reduce = sum}", [Q, K, cand], [scores])
    refuse("route, unsorted", ROUTE + " within {2} {reduce = sum}", [Q, K, selection((1, 2, 2, 4), 8, 4)], [scores])
    refuse("route, slots", ROUTE + " within {2} {reduce = sum}", [Q, K, cand], [SCORES], 32, 9)


@case
def Q2_rebin_grids():
    def rebin(a, b):
        return f"ssa.rebin sum {{0}} of {{1}} {{from = #ssa.blocks<{a}>, to = #ssa.blocks<{b}>}}"

    keys, scores = tensor((1, 2, 128, 16)), tensor((1, 2, 5, None))
    for a, b in (("32, stride = 16", "64"), ("4", "8"), ("4", "4"), ("8, stride = 4", "4")):
        accept(f"{a} to {b}", rebin(a, b), [scores, keys], [scores])
    for a, b in (("32, stride = 12", "64"), ("32, stride = 16", "40"), ("4, offset = -1", "8"), ("4", "8, offset = -1"),
                 ("3", "8")):
        refuse(f"{a} to {b}", rebin(a, b), [scores, keys], [scores])


# --- Numbers ---------------------------------------------------------------------------------------------------------


@case
def O10_numbers_that_are_not_finite():
    for value in ("1.0", "0.0", "-2.5", "1"):
        accept(f"scale {value}", f"{ATTEND} {{scale = {value}}}", [Q, K, V], [O, L])
        accept(f"scale {value}", f"{ROUTE} {{scale = {value}}}", [Q, K], [S])
    for value in (QUIET_NAN, INFINITY, INFINITY.replace("7FF", "FFF"), "1.0e300"):
        refuse(f"scale {value}", f"{ATTEND} {{scale = {value}}}", [Q, K, V], [O, L], "scale")
        refuse(f"scale {value}", f"{ROUTE} {{scale = {value}}}", [Q, K], [S], "scale")
        for name in ("top_p", "threshold"):
            refuse(f"{name} {value}", f"{TOPK} {{{name} = {value}}}", [SCORES, K], [SORTED], name)
    for value in ("0.0", "0.5", "1.0"):
        accept(f"top_p {value}", f"{TOPK} {{top_p = {value}, threshold = {value}}}", [SCORES, K], [SORTED])
    for value in ("-0.5", "1.5"):
        refuse(f"top_p {value}", f"{TOPK} {{top_p = {value}}}", [SCORES, K], [SORTED], "top_p")


# --- Types, ranks, extents -------------------------------------------------------------------------------------------


@case
def O10_ranks():
    accept("rank 4", ATTEND, [Q, K, V], [O, L])
    for i in range(3):
        types = [Q, K, V]
        for rank in ((4, 5, 16), (1, 1, 4, 5, 16), (16,), ()):
            types[i] = tensor(rank)
            refuse(f"operand {i} of rank {len(rank)}", ATTEND, types, [O, L])
    refuse("rank of o", ATTEND, [Q, K, V], [tensor((4, 5, 16)), L])
    refuse("rank of lse", ATTEND, [Q, K, V], [O, tensor((1, 4, 5, 1))])
    refuse("unranked", ATTEND, ["tensor<*xf32>", K, V], [O, L])
    refuse("memref", ATTEND, [Q.replace("tensor", "memref"), K, V], [O, L])
    refuse("rank of scores", TOPK, [tensor((2, 5, 9)), K], [SORTED])
    refuse("rank of lists", "ssa.from_indices {0}", [tensor((2, 5, 3), "i32")], [LIST])
    refuse("gathered keys without their tokens", ATTEND_AT, [Q, tensor((1, 2, 5, 3, 16)), tensor((1, 2, 5, 3, 16)), LIST], [O, L])


@case
def O10_extents():
    accept("all as they should be", ATTEND, [Q, K, V], [O, L])
    refuse("keys and values", ATTEND, [Q, K, tensor((1, 2, 8, 16))], [O, L], 9, 8)
    refuse("heads of keys and values", ATTEND, [Q, K, tensor((1, 4, 9, 16))], [O, L], 2, 4)
    refuse("batches", ATTEND, [Q, tensor((3, 2, 9, 16)), tensor((3, 2, 9, 16))], [O, L], 1, 3)
    refuse("head dims of q and k", ATTEND, [Q, tensor((1, 2, 9, 24)), V], [O, L], 16, 24)
    refuse("value dims", ATTEND, [Q, K, tensor((1, 2, 9, 24))], [O, L], 16, 24)
    accept("value dims", ATTEND, [Q, K, tensor((1, 2, 9, 24))], [tensor((1, 4, 5, 24)), L])
    refuse("rows of o", ATTEND, [Q, K, V], [tensor((1, 4, 6, 16)), L], 5, 6)
    refuse("rows of lse", ATTEND, [Q, K, V], [O, tensor((1, 4, 6))], 5, 6)
    refuse("batches of lists", ATTEND_AT, [Q, K, V, selection((3, 2, 5, 3))], [O, L], 1, 3)
    refuse("head dims of route", ROUTE, [Q, tensor((1, 2, 9, 24))], [S], 16, 24)
    refuse("scores of route", ROUTE, [Q, K], [tensor((1, 4, 5, 8))], 9, 8)
    refuse("weights of route", ROUTE + " weights {2}", [Q, K, tensor((1, 4, 6))], [S], 5, 6)
    refuse("scales of route", ROUTE + " scales {2}", [Q, K, tensor((1, 2, 8))], [S], 9, 8)
    refuse("lists and indices", "ssa.from_indices {0}", [tensor((1, 2, 5, 4), "i32")], [LIST], 4, 3)
    refuse("indices and lists", "ssa.to_indices {0}", [LIST], [tensor((1, 2, 5, 4), "i32")], 3, 4)
    refuse("gathered rows", "ssa.gather {0} at {1}", [K, selection((1, 2, 5, 3), 4)], [tensor((1, 2, 5, 3, 16))], 12, 3)
    refuse("parts of merge", "ssa.merge ({0}, {1}), ({2}, {3})", [O, L, tensor((1, 4, 6, 16)), tensor((1, 4, 6))], [O, L], 5, 6)
    refuse("gates of mix", "ssa.mix ({0}, {1})", [O, tensor((1, 4, 6))], [O], 5, 6)
    refuse("width of a union", "ssa.union {0}, {1}", [LIST, LIST], [SORTED], 6, 3)
    refuse("width of a sort", "ssa.sort {0}", [LIST], [selection((1, 2, 5, 2), sorted=True)], 3, 2)
    accept("a wider sort", "ssa.sort {0}", [LIST], [selection((1, 2, 5, 4), sorted=True)])


@case
def O10_dynamic_extents():
    """An unknown number of queries or keys is no error, also under a causal mask."""
    q, k = tensor((None, 4, None, 16)), tensor((None, 2, None, 16))
    accept("causal", ATTEND + " {mask = #ssa.mask<causal>}", [q, k, k], [q, tensor((None, 4, None))])
    accept("mixed", ATTEND, [Q, k, K], [q, L])
    refuse("dynamic heads", ATTEND, [tensor((1, None, 5, 16)), K, V], [tensor((1, None, 5, 16)), tensor((1, None, 5))])
    refuse("dynamic head dim", ATTEND, [tensor((1, 4, 5, None)), tensor((1, 2, 9, None)), V], [O, L])
    refuse("dynamic value dim", ATTEND, [Q, K, tensor((1, 2, 9, None))], [tensor((1, 4, 5, None)), L])


@case
def J6_element_types():
    for elem in ("f32", "bf16", "f16"):
        accept(elem, ATTEND, [tensor((1, 4, 5, 16), elem), tensor((1, 2, 9, 16), elem), tensor((1, 2, 9, 16), "f32")], [O, L])
    for elem in ("f64", "i32", "i8", "index", "f8E5M2", "complex<f32>"):
        refuse(f"q {elem}", ATTEND, [tensor((1, 4, 5, 16), elem), K, V], [O, L])
        refuse(f"v {elem}", ATTEND, [Q, K, tensor((1, 2, 9, 16), elem)], [O, L])
        refuse(f"o {elem}", ATTEND, [Q, K, V], [tensor((1, 4, 5, 16), elem), L])
    for elem in ("f32", "i64", "i16", "i8", "index", "f64"):
        refuse(f"indices {elem}", "ssa.from_indices {0}", [tensor((1, 2, 5, 3), elem)], [LIST])
        refuse(f"list {elem}", ATTEND_AT, [Q, K, V, tensor((1, 2, 5, 3), elem)], [O, L])
    refuse("raw indices", ATTEND_AT, [Q, K, V, tensor((1, 2, 5, 3), "i32")], [O, L])
    accept("indices", "ssa.from_indices {0}", [tensor((1, 2, 5, 3), "i32")], [LIST])
    for elem in ("bf16", "f16", "f64"):
        refuse(f"lse {elem}", ATTEND, [Q, K, V], [O, tensor((1, 4, 5), elem)])
        refuse(f"scores {elem}", TOPK, [tensor((1, 2, 5, 9), elem), K], [SORTED])
        refuse(f"route to {elem}", ROUTE, [Q, K], [tensor((1, 4, 5, 9), elem)])
        refuse(f"sinks {elem}", "ssa.merge ({0}, {1}) sink_logits {2}", [O, L, tensor((4,), elem)], [O, L])
        refuse(f"weights {elem}", ROUTE + " weights {2}", [Q, K, tensor((1, 4, 5), elem)], [S])


@case
def J6_fp8_needs_scales():
    f8 = tensor((1, 4, 5, 16), "f8E4M3FN"), tensor((1, 2, 9, 16), "f8E4M3FN")
    for types in ([f8[0], K, V], [Q, f8[1], V], [Q, K, f8[1]]):
        refuse("attend", ATTEND, types, [O, L])
    accept("route", ROUTE + " scales {2}", [*f8, tensor((1, 2, 9))], [S])
    accept("pool", "ssa.pool max {0} scales {1} {blocks = #ssa.blocks<4>}", [f8[1], tensor((1, 2, 9))], [tensor((1, 2, 3, 16))])


@case
def O10_sorted_is_a_promise():
    accept("topk", TOPK, [SCORES, K], [SORTED])
    refuse("from_indices", "ssa.from_indices {0}", [tensor((1, 2, 5, 3), "i32")], [SORTED], "sort")
    for what, op, types in (("topk", TOPK, [SCORES, K]), ("sort", "ssa.sort {0}", [LIST])):
        refuse(what, op, types, [LIST], "sorted")
    refuse("union", "ssa.union {0}, {1}", [LIST, LIST], [selection((1, 2, 5, 6))], "sorted")


@case
def O10_missing_operands():
    blocked = tensor((1, 2, 2, 9))
    refuse("queries of topk", TOPK, [blocked, K], [selection((1, 2, 2, 5), 1, 4, True)], "for")
    accept("queries of topk", TOPK + " for {2}", [blocked, K, Q], [selection((1, 2, 2, 5), 1, 4, True)])
    refuse("queries of route", ROUTE + " {query_block = 4}", [tensor((1, 4, 2, 16)), K], [tensor((1, 4, 2, 9))], "for")
    accept("queries of route", ROUTE + " for {2} {query_block = 4}", [tensor((1, 4, 2, 16)), K, Q], [tensor((1, 4, 2, 9))])
    refuse("largest keys", "ssa.route bound {0}, {1}", [Q, K], [S])
    refuse("largest keys of no bound", ROUTE + ", {2}", [Q, K, K], [S])
    accept("largest keys", "ssa.route bound {0}, {1}, {2} of {3} {blocks = #ssa.blocks<4>}", [Q, *[tensor((1, 2, 3, 16))] * 2, K],
           [tensor((1, 4, 5, 3))])
    masked = ROUTE + " {blocks = #ssa.blocks<4>, mask = #ssa.mask<causal>}"
    refuse("tokens of summaries", masked, [Q, tensor((1, 2, 3, 16))], [tensor((1, 4, 5, 3))], "of")
    accept("tokens of summaries", masked.replace(" {b", " of {2} {b"), [Q, tensor((1, 2, 3, 16)), K], [tensor((1, 4, 5, 3))])
    refuse("tokens of summaries", ATTEND + " {blocks = #ssa.blocks<4>}", [Q, K, V], [O, L], "of")


@case
def Q1_unknown_attributes():
    """Nothing that is written is ignored."""
    accept("a prefix", ATTEND + " {other.note = 1}", [Q, K, V], [O, L])
    for attribute in ("scal = 0.5", "causal = true", "lengths = 3", "masks = #ssa.mask<causal>", "scale = 0.5, scale = 0.5",
                      'scale = "1"', "mask = 3", "mask = #ssa.blocks<3>", "blocks = #ssa.mask<causal>", "reduce = sum", "scale"):
        refuse(attribute, f"{ATTEND} {{{attribute}}}", [Q, K, V], [O, L])
    for attribute in ("normalize = softmx", "reduce = mean", "visible = all", "query_block = \"x\"", "query_block = 0",
                      "query_block = -1", "blocks = 3", "gate = none", "top_p = 0.5"):
        refuse(attribute, f"{ROUTE} {{{attribute}}}", [Q, K], [S])
    for attribute in ("gate = tanh", "scale = 1.0"):
        refuse(attribute, f"ssa.mix ({{0}}, {{1}}) {{{attribute}}}", [O, L], [O])
    refuse("pool of another kind", "ssa.pool sum {0} {blocks = #ssa.blocks<4>}", [K], [tensor((1, 2, 3, 16))])


@case
def O10_score_regions():
    def region(arguments, body):
        return f"{ROUTE} score ({arguments}) {{\n    {body}\n  }}"

    six = "%x, %w, %b, %h, %p, %j"
    accept("product", region(six, "%y = arith.mulf %x, %w : f32\n    ssa.yield %y : f32"), [Q, K], [S])
    refuse("too few arguments", region("%x", "ssa.yield %x : f32"), [Q, K], [S], 6, 1)
    refuse("too many arguments", region(six + ", %z", "ssa.yield %x : f32"), [Q, K], [S], 6, 7)
    refuse("an integer", region(six, "ssa.yield %b : i32"), [Q, K], [S])
    refuse("nothing", region(six, ""), [Q, K], [S])
    refuse("a side effect", region(six, "func.call @main() : () -> ()\n    ssa.yield %x : f32"), [Q, K], [S])
    refuse("arguments of attend", f"{ATTEND} score ({six}) {{\n    ssa.yield %x : f32\n  }}", [Q, K, V], [O, L], 5, 6)
    accept("arguments of attend", f"{ATTEND} score (%x, %b, %h, %p, %n) {{\n    ssa.yield %x : f32\n  }}", [Q, K, V], [O, L])
    refuse("an unknown value", region(six, "ssa.yield %y : f32"), [Q, K], [S])


@case
def O10_broken_text():
    for text in ("", "ssa", "func.func @main(", "func.func @main() { ssa.topk }", "func.func @main() { %0 = ssa.sort : () -> () return }",
                 "\0\1\2", "module { ssa.yield }", '"ssa.topk"() : () -> ()', '"ssa.sparse_attend"() : () -> (tensor<1xf32>, i32)',
                 '"ssa.merge"() : () -> ()', '"ssa.mix"() : () -> tensor<1x1x1x1xf32>'):
        message = check_verifier(text)
        check((message == "") == (text == ""), f"{text!r}: got {message!r}")


main()
