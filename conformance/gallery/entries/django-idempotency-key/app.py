import os

import requests
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from idempotency_key.decorators import idempotency_key

KEPT = {"STORE_ON_STATUSES": [*range(200, 600)]} if "SAFE" in os.environ else {}
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="test",
    MIDDLEWARE=["idempotency_key.middleware.ExemptIdempotencyKeyMiddleware"],
    CACHES={"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": os.environ["STORE_URL"]}},
    IDEMPOTENCY_KEY={
        "CONFLICT_STATUS_CODE": None,
        "STORAGE": {"CLASS": "idempotency_key.storage.CacheKeyStorage", "CACHE_NAME": "default", **KEPT},
        "LOCK": {
            "CLASS": "idempotency_key.locks.redis.MultiProcessRedisLock",
            "LOCATION": os.environ["STORE_URL"],
            "NAME": "MyLock",
            "TTL": 300,
            "ENABLE": True,
            "TIMEOUT": 2,
        },
    },
)


@idempotency_key(optional=False)
def effect(request):
    told = requests.post(os.environ["SINK_URL"], data=request.body, timeout=300)
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    kept = ("Content-Type", "Location", "ETag", "Link", "Set-Cookie")
    headers = {name: told.headers[name] for name in kept if name in told.headers}
    return HttpResponse(told.content, status=told.status_code, headers=headers)


urlpatterns = [
    path("orders", effect),
    path("refunds", effect),
    path("health", lambda request: HttpResponse("ok")),
]

if __name__ == "__main__":
    from waitress import serve

    serve(get_wsgi_application(), host="127.0.0.1", port=int(os.environ["PORT"]), threads=64)
