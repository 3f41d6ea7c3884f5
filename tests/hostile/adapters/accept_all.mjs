// Accepts everything and remembers nothing.
import { createInterface } from "node:readline";

const hello = (request) => ({
  protocol: 1,
  challenge: request.challenge,
  implementation: { name: "accept-all", version: "1", language: "javascript" },
  claims: [{ contract: "toy", version: "0.1.0", not_claimed: {} }],
  limits: { workers: 4 },
});

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer = { outcome: "ok" };
  if (request.op === "hello") answer = { ok: hello(request) };
  else if (request.method === "state") answer.value = { entry: [] };
  else if (request.method === "audit") answer.value = { records: [] };
  else if (request.method === "put")
    answer = { outcome: "accepted", effect: "new", value: { entry: { key: "any", nonce: "any" } } };
  const last = request.op === "bye" ? () => process.exit(0) : () => {};
  process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n", last);
}
