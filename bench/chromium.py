"""Headless Chromium, controlled over two pipes with the DevTools protocol. Messages end with a zero byte."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


def find_program():
    program = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if program is None:
        raise SystemExit("Chromium is missing: run tools/setup --dev")
    return program


class Chromium:
    """A browser for `with`. Its profile is temporary, so its cache is empty."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="trainyard-browser-", ignore_cleanup_errors=True)
        command_read, self.commands = os.pipe()
        self.messages, message_write = os.pipe()

        def connect():  # in the child: the browser uses descriptors 3 and 4
            ends = [os.dup(command_read), os.dup(message_write)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [find_program(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
             "--disable-background-networking", "--no-first-run", "--disable-sync", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"],
            preexec_fn=connect, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(message_write)
        self.last_id, self.received, self.events, self.session = 0, b"", [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

    def next_message(self):
        while b"\0" not in self.received:
            data = os.read(self.messages, 65536)
            if not data:
                raise SystemExit("Chromium ended: start it by hand to see why")
            self.received += data
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") != self.last_id:
                self.events.append(answer.get("method"))
            elif "error" in answer:
                raise SystemExit(f"Chromium: {method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def open(self, page, width, height=900):
        """Open a file in a new tab and wait for its load event. Returns the tab, for `close`."""
        self.session = None
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.next_message().get("method"))
        return tab

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise SystemExit(f"Chromium: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self):
        """PNG of the window."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self, tab):
        self.session = None
        self.call("Target.closeTarget", targetId=tab)
