// The recipe of many posts and answers: SET key NX EX claims the key, the result is stored under it, an error frees it.
import express from "express";
import { createClient } from "redis";

const LOCK_S = 10; // the claim: posts say 10 to 60 seconds, so that a crash does not block the key for ever
const TTL_S = 24 * 60 * 60; // the result: 24 hours
const KEPT = ["content-type", "location", "etag", "link", "set-cookie"];

const redis = createClient({ url: process.env.STORE_URL });
redis.on("error", (error) => console.error("Redis Client Error", String(error)));
await redis.connect();

async function pay(body) {
  const told = await fetch(process.env.SINK_URL, { method: "POST", body });
  const text = await told.text();
  if (told.headers.has("holdfast-throw")) throw new Error("the handler throws");
  const headers = Object.fromEntries([...told.headers].filter(([name]) => KEPT.includes(name)));
  return { status: told.status, headers, text };
}

function answer(res, result) {
  res.status(result.status).set(result.headers).send(result.text);
}

const app = express();
app.get("/health", (req, res) => res.send("ok"));
app.use(express.raw({ type: () => true, limit: "20mb" }));

app.post(["/orders", "/refunds"], async (req, res) => {
  const idempotencyKey = req.get("Idempotency-Key");
  if (!idempotencyKey) return res.status(400).json({ error: "Idempotency-Key header is required" });
  const key = `idempotency:${idempotencyKey}`;
  const isNew = await redis.set(key, "processing", { NX: true, EX: LOCK_S });
  if (!isNew) {
    const stored = await redis.get(key);
    if (!stored || stored === "processing") return res.status(409).json({ error: "Request already in progress" });
    return answer(res, JSON.parse(stored));
  }
  try {
    const result = await pay(req.body ?? Buffer.alloc(0));
    await redis.set(key, JSON.stringify(result), { EX: TTL_S });
    answer(res, result);
  } catch (error) {
    await redis.del(key); // so that the client can try again
    throw error;
  }
});

app.listen(Number(process.env.PORT), "127.0.0.1");
