"""Time limits and failures of the parts of tools/check-gpu."""
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    """A part failed. `found`: the results so far, `output`: the output of its commands."""

    def __init__(self, text, found=None, output=""):
        super().__init__(text)
        self.found, self.output = found, output


class Clock:
    """Remaining time of a part. At its end, running commands are killed with all their children."""

    def __init__(self, end):
        self.end = end

    def left(self):
        return self.end - time.monotonic()

    def start(self, *command, **options):
        return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace", cwd=ROOT, start_new_session=True, **options)

    def finish(self, process, fine=(0,)):
        words, text = process.args, ""
        try:
            text, _ = process.communicate(timeout=max(1, self.left()))
        except subprocess.TimeoutExpired:
            for ending in (signal.SIGTERM, signal.SIGKILL):
                os.killpg(process.pid, ending)
                try:
                    text, _ = process.communicate(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    pass
            name = pathlib.Path(words[0]).name
            raise Failed(f"{name} did not end within its time limit: {last_lines(text, 3)}", output=text) from None
        if process.returncode not in fine:
            raise Failed(f"{' '.join(words[:3])}: exit code {process.returncode}: {last_lines(text)}", output=text)
        return text

    def run(self, *command, fine=(0,), **options):
        return self.finish(self.start(*command, **options), fine)


def last_lines(text, count=12):
    return "\n".join(text.strip().splitlines()[-count:])
