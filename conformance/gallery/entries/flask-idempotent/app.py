import hashlib
import os

import redis
import requests
from flask import Flask, Response, abort, request
from flask_idempotent import Idempotent
from waitress import serve

SAFE, DAY_S = "SAFE" in os.environ, 24 * 60 * 60

app = Flask(__name__)
app.config["REDIS_URL"] = os.environ["STORE_URL"]
app.config["IDEMPOTENT_TIMEOUT"] = 11
if SAFE:
    app.config["IDEMPOTENT_EXPIRE"] = DAY_S
guard, store = Idempotent(app), redis.Redis.from_url(os.environ["STORE_URL"])


def find(request):
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not key or "," in key:  # WSGI joins two lines of a header with a comma
        abort(400)
    name = repr((request.path, request.headers.get("Authorization"), key))
    asked = hashlib.sha256(request.query_string + b"\n" + request.get_data()).digest()
    if store.set(f"asked {name}", asked, nx=True, get=True, ex=DAY_S) not in (None, asked):
        abort(422)
    return name


if SAFE:
    guard.key_finder(find)


@app.post("/orders", endpoint="orders")
@app.post("/refunds", endpoint="refunds")
def effect():
    told = requests.post(os.environ["SINK_URL"], data=request.get_data(), timeout=300)
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    kept = ("Content-Type", "Location", "ETag", "Link", "Set-Cookie")
    headers = {name: told.headers[name] for name in kept if name in told.headers}
    return Response(told.content, told.status_code, headers)


app.add_url_rule("/health", view_func=lambda: "ok")

if __name__ == "__main__":
    serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=64)
