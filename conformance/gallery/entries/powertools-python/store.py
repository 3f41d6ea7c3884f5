"""moto's server, one request at a time: its PutItem is not atomic, that of DynamoDB is. `table` creates the table."""
import io
import os
import sys
import threading


def atomic(app, lock=threading.Lock()):
    def serve(environ, start_response):
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        with lock:
            return list(app(environ, start_response))

    return serve


if sys.argv[1] == "table":
    import boto3

    boto3.client("dynamodb").create_table(
        TableName="idempotency_store",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
else:
    os.environ["MOTO_PORT"] = sys.argv[1]
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple

    main = atomic(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), main, threaded=True, request_handler=MotoRequestHandler)
