"""assemble.py PTXAS BUNDLE: assembles the PTX of every target; prints registers and spills of each."""
import json
import re
import subprocess
import sys

ptxas, bundle = sys.argv[1:]
for target in json.load(open(bundle))["targets"]:
    command = [ptxas, "-v", "-arch=" + target["chip"], "-o", "/dev/null", "-"]
    done = subprocess.run(command, input=target["ptx"], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{target['chip']}: {done.stderr}")
    spills = sum(map(int, re.findall(r"(\d+) bytes spill", done.stderr)))
    registers = max(map(int, re.findall(r"Used (\d+) registers", done.stderr)))
    print(f"{target['chip']}: {spills} bytes spilled, {registers} registers")
