import sys, pathlib, torch, statistics, os
sys.path.insert(0, "."); 
import ssa
D = torch.device("cuda")
def lists_of(rows, count, agreement):
    own = torch.arange(rows, device=D) // 64
    if agreement is None:
        kept = 0.0
    else:
        kept = max((agreement * count - 63 / 64) / (count - 1), 0)
    time = torch.arange(rows, device=D)[:, None].expand(rows, count - 1)
    anew = torch.rand(rows, count - 1, device=D) >= kept
    drawn = torch.where(anew, time, 0).cummax(0).values
    values = (torch.rand(rows, count - 1, device=D) * own[:, None].clamp(min=1)).int()
    return torch.cat([own[:, None].int(), values.gather(0, drawn)], 1)
def med(run, n=5):
    for _ in range(2): run()
    ts = []
    for _ in range(n):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); run(); b.record(); torch.cuda.synchronize(); ts.append(a.elapsed_time(b))
    return statistics.median(ts)
bundles = {p.stem: ssa.load(str(p)) for p in sorted(pathlib.Path("bundles").glob("*.json"))}
base = bundles["head"]
def data(n):
    g = lambda h: torch.randn(1, h, n, 128, device=D).bfloat16()
    return g(64), g(4), g(4)
torch.manual_seed(1)
q, k, v = data(8192)
for a in (None, 0.75):
    l = torch.stack([lists_of(8192, 16, a) for _ in range(4)])[None].contiguous()
    o0, l0 = base.run(q, k, v, l)
    for name, b in bundles.items():
        o, ls = b.run(q, k, v, l)
        o2, ls2 = b.run(q, k, v, l)
        print("check", a, name, "max|do|", (o.float() - o0.float()).abs().max().item(), "mean rel", ((o.float()-o0.float()).norm()/o0.float().norm()).item(), "dlse", (ls - l0).abs().max().item(), "same", torch.equal(o, o2) and torch.equal(ls, ls2), flush=True)
q, k, v = data(131072)
for a in (None, 0.5, 0.75, 0.9):
    l = torch.stack([lists_of(131072, 16, a) for _ in range(4)])[None].contiguous()
    for name, b in bundles.items():
        if "ag" in name and a is None: continue
        print("time", a, name, round(med(lambda: b.run(q, k, v, l)), 2), flush=True)
if len(sys.argv) > 1:
    from torch.profiler import profile, ProfilerActivity
    l = torch.stack([lists_of(131072, 16, 0.75) for _ in range(4)])[None].contiguous()
    for name in sys.argv[1:]:
        b = bundles[name]; b.run(q, k, v, l); torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            b.run(q, k, v, l); torch.cuda.synchronize()
        print(name); print(p.key_averages().table(sort_by="cuda_time_total", row_limit=12, max_name_column_width=50))
