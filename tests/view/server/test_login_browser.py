from __future__ import annotations

import pytest

TOKEN = "a-token-for-the-browser"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["localhost", "traces.lan"], ids=["trustworthy", "plain"])
def test_a_browser_logs_in_with_the_form_and_stays_in(serving, launch, name: str):
    """Also under a name of a network, where browsers do not say what site a request comes from."""
    server = serving(token=TOKEN, hosts=["traces.lan"])
    page = launch(f"--host-resolver-rules=MAP {name} 127.0.0.1").new_page()
    page.set_default_timeout(300_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"http://{name}:{server.port}/?state=scored")
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").inner_text() == "That is not the token."
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button").click()
    page.wait_for_url(f"http://{name}:{server.port}/")
    assert page.get_by_role("navigation").count()
    assert not page.evaluate("document.cookie")
    page.goto(f"http://{name}:{server.port}/nothing")
    assert "Not found" in page.title()
    assert not faults
