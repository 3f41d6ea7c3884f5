import base64
import os

import requests
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency import exceptions as failed
from botocore.config import Config
from flask import Flask, request
from waitress import serve

app = Flask(__name__)
store = DynamoDBPersistenceLayer(
    table_name="idempotency_store",
    boto_config=Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2}),
)
config = IdempotencyConfig(
    event_key_jmespath='headers."Idempotency-Key"',
    payload_validation_jmespath="body",
    raise_on_no_idempotency_key=True,
)


def process(event):
    told = requests.post(os.environ["SINK_URL"], data=base64.b64decode(event["body"]), timeout=300)
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    kept = ("Content-Type", "Location", "ETag", "Link", "Set-Cookie")
    headers = {name: told.headers[name] for name in kept if name in told.headers}
    body = base64.b64encode(told.content).decode()
    return {"statusCode": told.status_code, "headers": headers, "body": body, "isBase64Encoded": True}


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
    body = base64.b64encode(request.get_data()).decode()
    answer = function(event={"headers": dict(request.headers), "body": body, "isBase64Encoded": True})
    return base64.b64decode(answer["body"]), answer["statusCode"], answer["headers"]


app.register_error_handler(failed.IdempotencyKeyError, lambda error: (str(error), 400))
app.register_error_handler(failed.IdempotencyAlreadyInProgressError, lambda error: (str(error), 409))
app.register_error_handler(failed.IdempotencyValidationError, lambda error: (str(error), 422))
app.register_error_handler(failed.IdempotencyPersistenceLayerError, lambda error: (str(error), 503))
app.add_url_rule("/health", view_func=lambda: "ok")

if __name__ == "__main__":
    serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=64)
