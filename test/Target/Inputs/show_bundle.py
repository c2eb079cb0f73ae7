import json
import sys

bundle = json.load(open(sys.argv[1]))
for target in bundle["targets"]:
    directive = next(line for line in target["ptx"].splitlines() if line.startswith(".target"))
    for entry in target["entries"]:
        kernels = " ".join(launch["kernel"] for launch in entry["launches"])
        print(target["chip"], target["ptx_version"], directive, entry["entry"] + ":", kernels)
