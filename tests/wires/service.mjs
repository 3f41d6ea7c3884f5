// A service with its keys in one process: sound, or with the bug that its argument names.
import http from "node:http";
import { createHash } from "node:crypto";
const bug = process.argv[2] ?? "";
const records = new Map();
const problem = (status, title) => ({ status, headers: { "content-type": "application/problem+json" }, body: Buffer.from(JSON.stringify({ type: "about:blank", status, title })) });
const effect = async (body, sink) => {
  const told = await fetch(sink ?? process.env.SINK_URL, { method: "POST", body });
  if (told.headers.get("holdfast-throw")) throw new Error("the handler throws");
  const headers = {};
  for (const name of ["content-type", "location", "etag", "link", "set-cookie"]) if (told.headers.get(name)) headers[name] = told.headers.get(name);
  return { status: told.status, headers, body: Buffer.from(await told.arrayBuffer()) };
};
const run = async (body, sink) => { try { return await effect(body, sink); } catch { return problem(500, "the outcome is not known"); } };
const answer = async (request, body) => {
  const lines = request.rawHeaders.filter((_, index, all) => index % 2 && all[index - 1].toLowerCase() === "idempotency-key");
  if (bug === "missing-key-executed" && !lines.length) return run(body, request.headers["holdfast-sink"]);
  if (lines.length !== 1 || !lines[0] || lines[0].length > 200 || !body.length) return problem(400, "the key or the body is malformed");
  const print = createHash("sha256").update(JSON.stringify([request.url, request.headers["content-type"]])).update(body).digest("hex");
  const key = bug === "column-cut" ? lines[0].slice(0, 190) : lines[0];
  const known = records.get(key);
  if (known && bug !== "checked-later") {
    if (known.print !== print && bug !== "any-payload" && bug !== "column-cut") return problem(422, "another payload");
    return known.answer ?? problem(409, "in progress");
  }
  const record = { print };
  if (bug !== "checked-later") records.set(key, record);
  const answer = await run(body, request.headers["holdfast-sink"]);
  const { "set-cookie": cookie, ...headers } = answer.headers;
  record.answer = { ...answer, headers };
  records.set(key, record);
  if (cookie && bug === "cookie-frees") records.delete(key);
  return answer;
};
http.createServer(async (request, response) => {
  const pieces = [];
  // A client that goes away in the middle of its body is no reason to end.
  try { for await (const piece of request) pieces.push(piece); } catch { return response.destroy(); }
  const { status, headers, body } = await answer(request, Buffer.concat(pieces));
  response.writeHead(status, { ...headers, "content-length": body.length }).end(status === 204 ? undefined : body);
}).listen(Number(process.env.PORT), "127.0.0.1");
