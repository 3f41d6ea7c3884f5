import base64
import os

import requests
from exactly_once import KeyReuseError, QuarantinedError, Store, StoreUnavailableError, once
from flask import Flask, request
from waitress import serve

# SAFE: what belongs to one exchange is no part of the result.
KEPT = ("Content-Type", "Location", "ETag", "Link", *(() if "SAFE" in os.environ else ("Set-Cookie",)))
app = Flask(__name__)
store = Store.redis(os.environ["STORE_URL"])


def effect(body):
    told = requests.post(os.environ["SINK_URL"], data=base64.b64decode(body), timeout=300)
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    headers = {name: told.headers[name] for name in KEPT if name in told.headers}
    return [base64.b64encode(told.content).decode(), told.status_code, headers]


@once(store, key=lambda key, body: f"order:{key}", fingerprint=lambda key, body: body)
def create_order(key, body):
    return effect(body)


@once(store, key=lambda key, body: f"refund:{key}", fingerprint=lambda key, body: body)
def create_refund(key, body):
    return effect(body)


@app.post("/<any(orders, refunds):what>")
def route(what):
    key = request.headers.get("Idempotency-Key", "")
    if not key or "," in key:  # WSGI joins two lines of a header with a comma
        return "no key, or two", 400
    tool = create_order if what == "orders" else create_refund
    body, status, headers = tool(key, base64.b64encode(request.get_data()).decode())
    return base64.b64decode(body), status, headers


app.register_error_handler(QuarantinedError, lambda error: ("in flight", 409))
app.register_error_handler(KeyReuseError, lambda error: ("another payload", 422))
app.register_error_handler(StoreUnavailableError, lambda error: ("no store", 503))
app.add_url_rule("/health", view_func=lambda: "ok")

if __name__ == "__main__":
    serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=64)
