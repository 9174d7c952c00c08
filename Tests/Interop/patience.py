"""Waits as clients do while a cloud is failing over: after an answer 503 with Retry-After it waits, and sends the request again.

A server that answers 503 has done nothing of the request (Formats/http.md), so it may be sent again as it is.
"""

import atexit
import email.utils
import os
import pathlib
import time

import requests

# The total of seconds that a request may be delayed: an outage lasts 30 at most.
PATIENCE = 60
# The environment variable that tells drivers that the cloud fails over: it names a file, into which they write how many answers were 503.
VARIABLE = "TIDEMARK_FAILS_OVER"
count, longest = 0, 0.0


def is_needed():
    return VARIABLE in os.environ


def seconds_of(answer):
    """The seconds of Retry-After; an answer 503 without it is an error."""
    text = answer.headers.get("Retry-After")
    if text is None:
        raise AssertionError(f"503 without Retry-After: {answer.text[:300]!r}")
    return float(text) if text.isdigit() else max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())


def install():
    """Makes the requests of all libraries in this process wait if the cloud fails over."""
    if not is_needed():
        return
    send = requests.adapters.HTTPAdapter.send

    def patient(adapter, request, *words, **named):
        global count, longest
        began = time.monotonic()
        while True:
            answer = send(adapter, request, *words, **named)
            if answer.status_code != 503:
                return answer
            wait, waited = seconds_of(answer), time.monotonic() - began
            if waited + wait > PATIENCE:
                return answer
            count += 1
            # This holds for 0, too: a client may not use a whole processor.
            time.sleep(max(0.2, wait))
            longest = max(longest, time.monotonic() - began)

    requests.adapters.HTTPAdapter.send = patient
    atexit.register(lambda: pathlib.Path(os.environ[VARIABLE]).write_text(str(count)))


def was_needed(path):
    """Whether a driver that has ended was delayed."""
    return path.exists() and int(path.read_text()) > 0


def report():
    if is_needed():
        print(f"    while the cloud failed over: {count} answers 503, a request waited {longest:.1f} s at the most", flush=True)
