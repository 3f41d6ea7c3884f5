// Refuses everything, with a reason of the contract, and audits each refusal in memory.
import { createInterface } from "node:readline";

let records = [];
const hello = (request) => ({
  protocol: 1,
  challenge: request.challenge,
  implementation: { name: "refuse-all", version: "1", language: "javascript" },
  claims: [{ contract: "toy", version: "0.1.0", not_claimed: {} }],
  limits: { workers: 4 },
});

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer = { outcome: "ok" };
  if (request.op === "hello") answer = { ok: hello(request) };
  else if (request.op === "open") records = [];
  else if (request.method === "state") answer.value = { entry: [] };
  else if (request.method === "audit") answer.value = { records };
  else if (request.method === "put") {
    records.push({ audit_id: String(records.length + 1), code: "DUPLICATE" });
    answer = { outcome: "refused", reason: "DUPLICATE" };
  }
  const last = request.op === "bye" ? () => process.exit(0) : () => {};
  process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n", last);
}
