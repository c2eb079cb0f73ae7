# RUN: %python %s
"""A short conversation with ssa-lsp-server: a wrong file is diagnosed, then mended, hovered over, asked for a definition."""

import json
import subprocess
import threading

from ssatest import _tool, case, check, main

URI = "file:///pattern.mlir"
GOOD = """!sel = !ssa.selection<1x2x8x4, key_block = 64, sorted>
func.func @pick(%s: tensor<1x2x8x16xf32>, %k: tensor<1x2x1024x64xf32>) -> !sel {
  %sel = ssa.topk %s of %k {init_blocks = 1, local_blocks = 2}
    : tensor<1x2x8x16xf32>, tensor<1x2x1024x64xf32> -> !sel
  return %sel : !sel
}
"""
BAD = GOOD.replace("local_blocks = 2", "local_blocks = 4")
MESSAGE = "expected 'init_blocks' + 'local_blocks' to be at most 4, the width of the selection, but got 1 + 4"


class Client:
    """A running server. Requests wait for their answer; notifications from the server are kept."""

    def __init__(self):
        self.server = subprocess.Popen([_tool("ssa-lsp-server")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
        self.timer = threading.Timer(60, self.server.kill)
        self.timer.start()
        self.last_id = 0

    def send(self, method, params, **extra):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **extra}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def receive(self):
        length = 0
        while line := self.server.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        check(length, f"the server ended: {self.server.stderr.read().decode()[-2000:] if not length else ''}")
        return json.loads(self.server.stdout.read(length))

    def request(self, method, params):
        self.last_id += 1
        self.send(method, params, id=self.last_id)
        while (message := self.receive()).get("id") != self.last_id:
            pass
        check("result" in message, f"{method}: {message}")
        return message["result"]

    def diagnostics(self):
        while (message := self.receive()).get("method") != "textDocument/publishDiagnostics":
            pass
        check(message["params"]["uri"] == URI, f"diagnostics of another file: {message}")
        return message["params"]["diagnostics"]

    def end(self):
        self.request("shutdown", None)
        self.send("exit", None)
        check(self.server.wait(60) == 0, f"expected exit code 0, but got {self.server.returncode}")
        self.timer.cancel()


def at(line, character):
    return {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}


@case
def conversation():
    s = Client()
    capabilities = s.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
    check(capabilities["hoverProvider"] and capabilities["definitionProvider"], f"got {capabilities}")
    s.send("initialized", {})

    document = {"uri": URI, "languageId": "mlir", "version": 1, "text": BAD}
    s.send("textDocument/didOpen", {"textDocument": document})
    found = s.diagnostics()
    check(len(found) == 1 and MESSAGE in found[0]["message"], f"expected {MESSAGE!r}, but got {found}")
    check(found[0]["severity"] == 1 and found[0]["range"]["start"] == {"line": 2, "character": 9}, f"got {found}")

    s.send("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": GOOD}]})
    found = s.diagnostics()
    check(found == [], f"expected no diagnostics, but got {found}")

    hover = s.request("textDocument/hover", at(2, 14))
    text = hover["contents"]["value"]
    check('"ssa.topk"' in text and "init_blocks = 1" in text, f"got {text}")
    # `%s` in the op, defined in the signature.
    where = s.request("textDocument/definition", at(2, 19))
    check(where and where[0]["range"]["start"] == {"line": 1, "character": 16}, f"got {where}")
    s.end()


@case
def help():
    def shown(option):
        return subprocess.run([_tool("ssa-lsp-server"), option], capture_output=True, text=True, timeout=60).stdout

    check("mlir.server_path" in shown("--help"), f"got {shown('--help')}")
    check("--lit-test" in shown("--help-all"), "--help-all lists all options")


main()
