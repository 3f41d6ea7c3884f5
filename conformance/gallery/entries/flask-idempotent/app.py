import os

import requests
from flask import Flask, Response, request
from flask_idempotent import Idempotent
from waitress import serve

app = Flask(__name__)
app.config["REDIS_URL"] = os.environ["STORE_URL"]
app.config["IDEMPOTENT_TIMEOUT"] = 11
Idempotent(app)


@app.post("/orders", endpoint="orders")
@app.post("/refunds", endpoint="refunds")
def effect():
    told = requests.post(os.environ["SINK_URL"], data=request.get_data(), timeout=300)
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    kept = ("Content-Type", "Location", "ETag", "Link", "Set-Cookie")
    headers = {name: told.headers[name] for name in kept if name in told.headers}
    return Response(told.content, told.status_code, headers)


@app.get("/health")
def health():
    return "ok"


if __name__ == "__main__":
    serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=64)
