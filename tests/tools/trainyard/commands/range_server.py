"""Serves the files of a folder on a free port and prints the port. Ends when its standard input ends.

Usage: range_server.py FOLDER MODE
  range  honours the Range header
  whole  ignores it
  cut    like "range", but an answer from byte 0 ends after half of the file
  loop   redirects each request to itself
  local  redirects each request to the file in the folder
Each request is appended as a line to FOLDER/requests.
"""
import http.server
import pathlib
import re
import sys
import threading

folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        with open(folder / "requests", "a") as log:
            print(self.path, asked.group(1) if asked else "-", file=log)
        path = folder / self.path.lstrip("/")
        if mode in ("loop", "local"):
            self.send_response(302)
            self.send_header("Location", self.path if mode == "loop" else path.resolve().as_uri())
            return self.end_headers()
        if not path.is_file():
            return self.send_error(404)
        body = path.read_bytes()
        start = int(asked.group(1)) if asked and mode != "whole" else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : len(body) // 2 if mode == "cut" and not start else None])

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
