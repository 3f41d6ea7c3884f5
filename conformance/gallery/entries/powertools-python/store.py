"""moto's server as a durable store: one request at a time, since its PutItem is not atomic, and with a log of writes."""
import base64
import io
import json
import os
import sys
import threading

import boto3

if sys.argv[1] == "table":
    boto3.client("dynamodb").create_table(
        TableName="idempotency_store",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    sys.exit()

os.environ["MOTO_PORT"] = sys.argv[1]
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple
from werkzeug.test import Client

moto, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()
log = open(os.path.join(sys.argv[2], "writes"), "a+b")


def serve(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    with lock:
        answer = list(moto(environ, start_response))
        if body and "GetItem" not in environ.get("HTTP_X_AMZ_TARGET", ""):
            kept = {name: environ[name] for name in environ if name.startswith(("HTTP_", "CONTENT_"))}
            log.write(json.dumps([kept, base64.b64encode(body).decode()]).encode() + b"\n")
            log.flush()
        return answer


log.seek(0)
for kept, body in map(json.loads, log.readlines()):
    Client(moto).post("/", data=base64.b64decode(body), environ_overrides=kept)
run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True, request_handler=MotoRequestHandler)
