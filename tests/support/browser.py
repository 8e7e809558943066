"""A headless Chromium that tests control by its DevTools protocol, over two pipes: no driver and no port."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]
# The browser reads commands from descriptor 3 and writes answers to 4.
START = 'exec "$@" 3<&"$TO_BROWSER" 4>&"$FROM_BROWSER"'

BROKEN_WORDS = r"""
(() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node; (node = walker.nextNode());) {
    if (!node.parentElement.checkVisibility() || node.parentElement.closest(".md-search, svg")) continue;
    for (const word of node.data.matchAll(/[A-Za-z0-9]{2,}/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].filter(box => box.width).map(box => Math.round(box.top)));
      if (tops.size > 1) found.push(`${word[0]} in ${node.data}`);
    }
  }
  return found;
})()
"""


class Browser:
    """Browser with one tab."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "-c", START, "bash", CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            env=os.environ | {"TO_BROWSER": str(to_browser), "FROM_BROWSER": str(from_browser)},
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._read, self._n, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._commands)  # which ends the browser
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command; keep the events that come before it."""
        self._n += 1
        command = {"id": self._n, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        message = json.dumps(command).encode() + b"\0"
        while message:
            message = message[os.write(self._commands, message) :]
        while (answer := self._next()).get("id") != self._n:
            self.events.append(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            read = os.read(self._answers, 1 << 20)
            assert read, "the browser has ended"
            self._read += read
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, *, width: int = 1280, scheme: str = "light") -> None:
        """Load a file, in a window of a width, light or dark; wait until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="", features=features)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """Return the value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def broken_words(self) -> list[str]:
        """Return the words that are shown on two lines, and their text."""
        found: list[str] = self.run(BROKEN_WORDS)
        return found

    def complaints(self) -> list[str]:
        """Return errors and warnings of the page and of the browser about it."""
        return [
            json.dumps(event["params"])
            for event in self.events
            if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        ]

    def requests(self) -> list[str]:
        """Return the requested addresses."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def screenshot(self, path: Path, *, size: tuple[int, int]) -> None:
        """Save a picture of the top of the page, of a width and a height in pixels."""
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(picture))
