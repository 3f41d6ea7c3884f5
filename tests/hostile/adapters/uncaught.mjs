// Dies of an uncaught exception, on the first call.
import { createInterface } from "node:readline";

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.op === "call") throw new Error("cannot read properties of undefined");
  const answer =
    request.op === "hello"
      ? {
          ok: {
            protocol: 1,
            challenge: request.challenge,
            implementation: { name: "uncaught", version: "1", language: "javascript" },
            claims: [{ contract: "toy", version: "0.1.0", not_claimed: {} }],
            limits: { workers: 4 },
          },
        }
      : { outcome: "ok" };
  process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n");
}
