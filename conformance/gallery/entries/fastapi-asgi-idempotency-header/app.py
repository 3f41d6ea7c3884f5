import os

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.middleware import Middleware
from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import RedisBackend
from redis.asyncio import from_url

backend = RedisBackend(redis=from_url(os.environ["STORE_URL"]))
app = FastAPI(middleware=[Middleware(IdempotencyHeaderMiddleware, backend=backend)])


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


@app.get("/health")
async def health():
    return "ok"
