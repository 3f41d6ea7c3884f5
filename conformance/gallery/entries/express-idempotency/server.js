// express-idempotency with express-idempotency-redis-adapter, as the two READMEs show it.
const express = require("express");
const idempotency = require("express-idempotency");
const RedisAdapter = require("express-idempotency-redis-adapter").default;

const KEPT = ["content-type", "location", "etag", "link", "set-cookie"];

const adapter = new RedisAdapter({ connectionConfig: { url: process.env.STORE_URL } });
adapter.connect().catch((error) => {
  throw error;
});

const app = express();
// The middleware compares req.body, so each media type is parsed; the raw bytes are for the sink.
const parse = { limit: "20mb", verify: (req, res, raw) => void (req.raw = raw) };
app.use(express.json(parse), express.text({ ...parse, type: () => true }));
app.use(idempotency.idempotency({ dataAdapter: adapter }));
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
    await idempotencyService.reportError(req); // README, "Report error in processing request"
    throw error;
  }
}

app.post("/orders", create);
app.post("/refunds", create);
app.listen(Number(process.env.PORT), "127.0.0.1");
