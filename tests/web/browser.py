"""Debian's Chromium, driven over the WebDriver protocol, which is HTTP: no package is needed.

apt-get install chromium chromium-driver

async with browser(folder) as chromium:
    await chromium.open("http://127.0.0.1:7680/#map")
    await chromium.until("document.querySelectorAll('.node').length === 7")
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

MISSING = "needs Chromium and its driver: apt-get install chromium chromium-driver"
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
]  # fmt: skip
POLL_S = 0.1
ANSWER_S = 60.0


def is_installed() -> bool:
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    def __init__(self, http: httpx.AsyncClient, session: str) -> None:
        self._http = http
        self._session = session

    async def _post(self, path: str, **fields: object) -> Any:
        answer = await self._http.post(f"/session/{self._session}/{path}", json=fields)
        value = answer.json()["value"]
        assert answer.is_success, value
        return value

    async def open(self, url: str) -> None:
        await self._post("url", url=url)

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        return await self._post("execute/sync", script=f"return {script}", args=[])

    async def until(self, condition: str, *, within_s: float = 30.0) -> None:
        """Wait until an expression is true in the page."""
        try:
            async with asyncio.timeout(within_s):
                while not await self.run(condition):  # noqa: ASYNC110  The page has no event.
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            text = await self.run("document.body.innerText")
            raise AssertionError(f"not within {within_s:g} s: {condition}\n{text}") from None

    async def size(self, width: int, height: int) -> None:
        await self._post("window/rect", width=width, height=height)

    async def press(self, key: str) -> None:
        down, up = {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}
        await self._post("actions", actions=[{"type": "key", "id": "k", "actions": [down, up]}])

    async def screenshot(self, path: Path) -> None:
        answer = await self._http.get(f"/session/{self._session}/screenshot")
        path.write_bytes(  # noqa: ASYNC240  Small.
            base64.b64decode(answer.json()["value"])
        )

    async def console_errors(self) -> list[str]:
        """What went wrong in the page since the last call."""
        entries = await self._post("se/log", type="browser")
        return [each["message"] for each in entries if each["level"] in ("SEVERE", "WARNING")]


@contextlib.asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Browser]:
    """A browser with a new profile in this folder."""
    driver = await asyncio.create_subprocess_exec(
        "chromedriver", "--port=0", stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        url = await _listening(driver)
        async with httpx.AsyncClient(base_url=url, timeout=ANSWER_S, trust_env=False) as http:
            options = {"args": [*ARGUMENTS, f"--user-data-dir={profile}"]}
            asked = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
                "browserName": "chrome",
            }
            made = await http.post("/session", json={"capabilities": {"alwaysMatch": asked}})
            session = made.json()["value"]
            assert made.is_success, session
            try:
                yield Browser(http, session["sessionId"])
            finally:
                await http.delete(f"/session/{session['sessionId']}")
    finally:
        driver.terminate()
        await driver.wait()


async def _listening(driver: asyncio.subprocess.Process) -> str:
    assert driver.stdout is not None
    async for line in driver.stdout:
        if b"started successfully on port" in line:
            port = line.decode().rstrip(".\n").rpartition(" ")[2]
            return f"http://127.0.0.1:{port}"
    raise AssertionError("chromedriver has ended")
