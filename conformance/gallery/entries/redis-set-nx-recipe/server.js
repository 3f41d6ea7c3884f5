// The recipe of many posts and answers: SET key NX EX claims the key, the result is stored under it, an error frees it.
// SAFE=1: the claim has no end and is never deleted, and holds a hash of who asked what.
import { createHash } from "node:crypto";
import express from "express";
import { createClient } from "redis";

const LOCK = process.env.SAFE ? {} : { EX: 10 }; // posts say 10 to 60 seconds
const TTL_S = 24 * 60 * 60; // the result: 24 hours
const KEPT = ["content-type", "location", "etag", "link", ...(process.env.SAFE ? [] : ["set-cookie"])];

const redis = createClient({ url: process.env.STORE_URL, disableOfflineQueue: Boolean(process.env.SAFE) });
redis.on("error", (error) => console.error("Redis Client Error", String(error)));
await redis.connect();

async function pay(body) {
  const told = await fetch(process.env.SINK_URL, { method: "POST", body });
  const text = await told.text();
  if (told.headers.has("holdfast-throw")) throw new Error("the handler throws");
  const headers = Object.fromEntries([...told.headers].filter(([name]) => KEPT.includes(name)));
  return { status: told.status, headers, text };
}

const app = express();
app.get("/health", (req, res) => res.send("ok"));
app.use(express.raw({ type: () => true, limit: "20mb" }));

const late = () => new Promise((_, no) => setTimeout(no, 3000, new Error("Redis does not answer")));
const within = (promise) => (process.env.SAFE ? Promise.race([promise, late()]) : promise);
const hash = (...parts) => parts.reduce((all, part) => all.update(`${part.length}:`).update(part), createHash("sha256"));

app.post(["/orders", "/refunds"], async (req, res) => {
  const [idempotencyKey, second] = req.headersDistinct["idempotency-key"] ?? [];
  if (!idempotencyKey || (process.env.SAFE && second !== undefined)) return res.status(400).json({ error: "one key" });
  const body = req.body ?? Buffer.alloc(0);
  const who = process.env.SAFE ? hash(req.path, req.get("Authorization") ?? "").digest("hex") : "";
  const key = `idempotency:${who}${idempotencyKey}`;
  const asked = process.env.SAFE ? hash(req.url, body).digest("hex") : "";
  const isNew = await within(redis.set(key, JSON.stringify({ asked }), { NX: true, ...LOCK }));
  if (!isNew) {
    const stored = JSON.parse((await within(redis.get(key))) ?? "{}");
    if (stored.asked && stored.asked !== asked) return res.status(422).json({ error: "Another payload" });
    if (!stored.result) return res.status(409).json({ error: "Request in progress, or its outcome is not known" });
    return res.status(stored.result.status).set(stored.result.headers).send(stored.result.text);
  }
  try {
    const result = await pay(body);
    await within(redis.set(key, JSON.stringify({ asked, result }), { EX: TTL_S }));
    res.status(result.status).set(result.headers).send(result.text);
  } catch (error) {
    if (!process.env.SAFE) await redis.del(key); // so that the client can try again
    throw error;
  }
});

app.listen(Number(process.env.PORT), "127.0.0.1");
