import hashlib
import os

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.middleware import Middleware
from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import RedisBackend
from redis.asyncio import from_url

redis = from_url(os.environ["STORE_URL"])


app = FastAPI(middleware=[Middleware(IdempotencyHeaderMiddleware, backend=RedisBackend(redis=redis))])


async def front(request, call_next):
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1 or keys == [""]:
        return Response(status_code=400)
    if keys:
        who = repr((request.url.path, request.headers.get("authorization"), keys))
        asked = hashlib.sha256(request.scope["query_string"] + b"\n" + await request.body()).digest()
        if await redis.set(f"asked {who}", asked, nx=True, get=True, ex=24 * 60 * 60) not in (None, asked):
            return Response(status_code=422)
        others = [pair for pair in request.scope["headers"] if pair[0] != b"idempotency-key"]
        request.scope["headers"] = [*others, (b"idempotency-key", hashlib.sha256(who.encode()).hexdigest().encode())]
    return await call_next(request)


if "SAFE" in os.environ:
    app.middleware("http")(front)


@app.post("/orders")
@app.post("/refunds")
async def effect(request: Request):
    async with httpx.AsyncClient(timeout=300) as client:
        told = await client.post(os.environ["SINK_URL"], content=await request.body())
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    kept = ("Content-Type", "Location", "ETag", "Link", "Set-Cookie")
    headers = {name: told.headers[name] for name in kept if name in told.headers}
    return Response(told.content, told.status_code, headers)


app.get("/health")(lambda: "ok")
