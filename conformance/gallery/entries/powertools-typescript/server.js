// Powertools for AWS Lambda: makeIdempotent with CachePersistenceLayer on Redis, behind a plain HTTP server that
// gives the handler an event and a Lambda context, as Lambda would.
import { createServer } from "node:http";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { CachePersistenceLayer } from "@aws-lambda-powertools/idempotency/cache";
import { createClient } from "@redis/client";

const SAFE = Boolean(process.env.SAFE);
const TIMEOUT_MS = SAFE ? 900_000 : 15_000; // the function's timeout
const KEPT = ["content-type", "location", "etag", "link", ...(SAFE ? [] : ["set-cookie"])];
const STATUS = {
  IdempotencyKeyError: 400,
  IdempotencyAlreadyInProgressError: 409,
  IdempotencyValidationError: 422,
  IdempotencyPersistenceLayerError: 503,
};

const client = await createClient({ url: process.env.STORE_URL })
  .on("error", (error) => console.error(String(error)))
  .connect();

async function create(event, _context) {
  const told = await fetch(process.env.SINK_URL, { method: "POST", body: Buffer.from(event.body, "latin1") });
  const body = await told.text();
  if (told.headers.has("holdfast-throw")) throw new Error("the handler throws");
  const headers = Object.fromEntries([...told.headers].filter(([name]) => KEPT.includes(name)));
  return { statusCode: told.status, headers, body };
}

const caught = (event) => create(event).catch(() => ({ statusCode: 500, headers: {}, body: "" }));

function handlerOf(route) {
  return makeIdempotent(SAFE ? caught : create, {
    persistenceStore: new CachePersistenceLayer({ client }),
    keyPrefix: route,
    config: new IdempotencyConfig({
      eventKeyJmesPath: 'headers."idempotency-key"',
      throwOnNoIdempotencyKey: true,
    }),
  });
}

const routes = { "/orders": handlerOf("orders"), "/refunds": handlerOf("refunds") };

createServer(async (req, res) => {
  if (req.url === "/health") return res.end("ok");
  const handler = req.method === "POST" ? routes[req.url.split("?")[0]] : undefined;
  if (!handler) return res.writeHead(404).end();
  const deadline = Date.now() + TIMEOUT_MS;
  const context = { getRemainingTimeInMillis: () => deadline - Date.now() };
  try {
    const body = Buffer.concat(await req.toArray()).toString("latin1"); // one character for each byte
    const answer = await handler({ httpMethod: req.method, path: req.url, headers: req.headers, body }, context);
    res.writeHead(answer.statusCode, answer.headers).end(answer.body);
  } catch (error) {
    // IdempotencyKeyError comes as the cause of an IdempotencyPersistenceLayerError
    res.writeHead(STATUS[error.cause?.name] ?? STATUS[error.name] ?? 500, { "content-type": "application/json" });
    res.end(JSON.stringify({ error: error.name, message: error.message }));
  }
}).listen(Number(process.env.PORT), "127.0.0.1");
