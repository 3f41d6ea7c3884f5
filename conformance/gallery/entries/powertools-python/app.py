import base64
import os

import requests
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency import exceptions as failed
from botocore.config import Config
from flask import Flask, request
from waitress import serve

SAFE = "SAFE" in os.environ
KEPT = ("Content-Type", "Location", "ETag", "Link", *(() if SAFE else ("Set-Cookie",)))
app = Flask(__name__)
store = DynamoDBPersistenceLayer(
    table_name="idempotency_store",
    boto_config=Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2}),
)
config = IdempotencyConfig(
    event_key_jmespath='headers."Idempotency-Key"', payload_validation_jmespath="body", raise_on_no_idempotency_key=True
)


def process(event):
    try:
        told = requests.post(os.environ["SINK_URL"], data=base64.b64decode(event["body"]), timeout=300)
        if "holdfast-throw" in told.headers:
            raise RuntimeError("the handler throws")
    except Exception:
        if not SAFE:
            raise
        return {"statusCode": 500, "headers": {}, "body": ""}
    headers = {name: told.headers[name] for name in KEPT if name in told.headers}
    return {"statusCode": told.status_code, "headers": headers, "body": base64.b64encode(told.content).decode()}


@idempotent_function(data_keyword_argument="event", config=config, persistence_store=store)
def create_order(event):
    return process(event)


@idempotent_function(data_keyword_argument="event", config=config, persistence_store=store)
def create_refund(event):
    return process(event)


@app.post("/<any(orders, refunds):what>")
def route(what):
    function = create_order if what == "orders" else create_refund
    if "," in request.headers.get("Idempotency-Key", ""):  # WSGI joins two lines of a header with a comma
        return "two keys", 400
    answer = function(event={"headers": dict(request.headers), "body": base64.b64encode(request.get_data()).decode()})
    return base64.b64decode(answer["body"]), answer["statusCode"], answer["headers"]


for name, code in {"Key": 400, "AlreadyInProgress": 409, "Validation": 422, "PersistenceLayer": 503}.items():
    app.register_error_handler(getattr(failed, f"Idempotency{name}Error"), lambda error, code=code: (str(error), code))
app.add_url_rule("/health", view_func=lambda: "ok")
serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=64)
