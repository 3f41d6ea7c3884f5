// express-idempotency with express-idempotency-redis-adapter, as the two READMEs show it.
const express = require("express");
const idempotency = require("express-idempotency");
const RedisAdapter = require("express-idempotency-redis-adapter").default;
const { createHash } = require("crypto");
const { createClient } = require("@redis/client");

const SAFE = Boolean(process.env.SAFE);

const KEPT = ["content-type", "location", "etag", "link", "set-cookie"];

const client = createClient({ url: process.env.STORE_URL, disableOfflineQueue: SAFE });
class Claiming extends RedisAdapter {
  async create({ idempotencyKey, ...asked }) {
    const isNew = await client.set(idempotencyKey, JSON.stringify(asked), { NX: true, EX: 86400 });
    if (!isNew) throw Object.assign(new Error("A previous request is still in progress."), { status: 409 });
  }
}
if (SAFE) client.on("error", (error) => console.error(String(error)));
const adapter = new (SAFE ? Claiming : RedisAdapter)({ connectionInstance: client });
adapter.connect().catch((error) => {
  throw error;
});

const app = express();
// The middleware compares req.body, so each media type is parsed; the raw bytes are for the sink.
const parse = { limit: "20mb", verify: (req, res, raw) => void (req.raw = raw) };
if (!SAFE) app.use(express.json(parse));
app.use(express.text({ ...parse, type: () => true }));
app.use((req, res, next) => {
  const [key, second] = req.headersDistinct["idempotency-key"] ?? [];
  if (!SAFE || key === undefined) return next();
  if (!key || second !== undefined) return res.sendStatus(400);
  const who = JSON.stringify([req.path, req.get("Authorization"), key]);
  req.headers["idempotency-key"] = createHash("sha256").update(who).digest("hex");
  next();
});
const responseValidator = SAFE ? { isValidForPersistence: () => true } : undefined;
app.use(idempotency.idempotency({ dataAdapter: adapter, responseValidator }));
app.get("/health", (req, res) => res.send("ok"));

async function create(req, res) {
  const idempotencyService = idempotency.getSharedIdempotencyService();
  if (idempotencyService.isHit(req)) return;
  try {
    const told = await fetch(process.env.SINK_URL, { method: "POST", body: req.raw ?? Buffer.alloc(0) });
    const text = await told.text();
    if (told.headers.has("holdfast-throw")) throw new Error("the handler throws");
    for (const name of KEPT) if (told.headers.has(name)) res.setHeader(name, told.headers.get(name));
    res.status(told.status).send(text);
  } catch (error) {
    if (!SAFE) await idempotencyService.reportError(req); // README, "Report error in processing request"
    throw error;
  }
}

app.post("/orders", create);
app.post("/refunds", create);
app.listen(Number(process.env.PORT), "127.0.0.1");
