// A sound mesh-delivery in another language and style, written from docs/methods/mesh-delivery.md: it checks the last
// field first, and names the field of a refusal as a JSON pointer, or not at all.
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";

const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const refuse = (reason, pointer) => {
  throw Object.assign(new Error(reason), { reason, data: pointer === undefined ? undefined : { field: pointer } });
};

// JSON to its RFC 8785 form in one pass; anything else than I-JSON ends it.
function canonical(text) {
  let at = 0;
  const fail = () => refuse("META_INVALID", "/meta");
  const blank = () => { while (" \t\n\r".includes(text[at] ?? "x")) at++; };
  const string = () => {
    const found = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
    found.lastIndex = at;
    const literal = found.exec(text)?.[0] ?? fail();
    at += literal.length;
    const value = JSON.parse(literal);
    return value.isWellFormed() ? value : fail();
  };
  const value = (depth) => {
    if (depth > 200) fail();
    blank();
    const first = text[at];
    if (first === '"') return JSON.stringify(string());
    if (first === "[" || first === "{") {
      const end = first === "[" ? "]" : "}", parts = new Map();
      at++; blank();
      if (text[at] === end) { at++; return first + end; }
      for (;;) {
        let name = parts.size;
        if (first === "{") {
          blank(); name = string(); blank();
          if (text[at++] !== ":" || parts.has(name)) fail();
        }
        parts.set(name, value(depth + 1)); blank();
        if (text[at] === end) break;
        if (text[at++] !== ",") fail();
      }
      at++;
      if (first === "[") return `[${[...parts.values()].join(",")}]`;
      // Without a comparison, sort goes by UTF-16 code units, as RFC 8785 asks for.
      return `{${[...parts.keys()].sort().map((name) => `${JSON.stringify(name)}:${parts.get(name)}`).join(",")}}`;
    }
    for (const word of ["true", "false", "null"]) if (text.startsWith(word, at)) { at += word.length; return word; }
    const found = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
    found.lastIndex = at;
    const literal = found.exec(text)?.[0] ?? fail(), number = Number(literal);
    at += literal.length;
    if (!Number.isFinite(number) || (/^-?[0-9]+$/.test(String(number)) && !Number.isSafeInteger(number))) fail();
    return JSON.stringify(number);
  };
  const found = value(0);
  blank();
  return at === text.length ? found : fail();
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
function replyOf(id) {
  if (id.includes("\0")) refuse("NUL_IN_FIELD", "/reply_to");
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id) && id.length === 36) return id.toLowerCase();
  if (!/^[0-7][0-9a-hjkmnp-tv-z]{25}$/i.test(id)) refuse("REFERENCE_INVALID");
  const bits = [...id.toUpperCase()].reduce((sum, digit) => sum * 32n + BigInt(CROCKFORD.indexOf(digit)), 0n);
  return bits.toString(16).padStart(32, "0").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const BYTES = /^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$/;
const isText = (value) => typeof value === "string";
const isBytes = (value) => isText(value) && BYTES.test(value) && !value.includes("\n");
const SHAPE = {
  envelope_version: (value) => Number.isSafeInteger(value) && value > 0,
  destination_kind: isText,
  destination_ref: (value) => isText(value) && value !== "",
  body: isBytes,
  reply_to: (value) => value === undefined || value === null || isText(value),
  priority: (value) => value === undefined || isText(value),
  meta: (value) => value === undefined || value === null || isBytes(value),
};

function fingerprint(request) {
  if (typeof request !== "object" || request === null || Array.isArray(request)) refuse("REQUEST_MALFORMED");
  for (const name of Object.keys(request)) if (!Object.hasOwn(SHAPE, name)) refuse("REQUEST_MALFORMED", name);
  for (const [name, fits] of Object.entries(SHAPE)) if (!fits(request[name])) refuse("REQUEST_MALFORMED", "");
  const { envelope_version, destination_kind, destination_ref, reply_to, priority = "next", meta, body } = request;
  let canon = "";
  if (meta !== undefined && meta !== null) {
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(meta, "base64url"));
    } catch {
      refuse("META_INVALID", "/meta");
    }
    canon = canonical(text);
    if (canon === "{}" || canon === "null") canon = "";
    else if (canon[0] !== "{") refuse("META_INVALID");
  }
  if (!["now", "next", "low"].includes(priority)) refuse("UNKNOWN_VALUE", "/priority");
  const reply = reply_to ? replyOf(reply_to) : "";
  if (destination_ref.includes("\0")) refuse("NUL_IN_FIELD", "/destination_ref");
  let reference = destination_ref;
  if (destination_kind === "dm") {
    if (!/^[0-9a-f]+$/i.test(reference) || reference.length !== 64) refuse("REFERENCE_INVALID", "$.destination_ref");
    reference = reference.toLowerCase();
  } else if (!["topic", "queue"].includes(destination_kind)) refuse("UNKNOWN_VALUE", "/destination_kind");
  const hash = sha256(Buffer.from(body, "base64url"));
  return sha256([envelope_version, destination_kind, reference, reply, priority, canon, hash].join("\0"));
}

const implementation = { name: "foreign", version: "1", language: "javascript" };
const claims = [{ contract: "mesh-delivery", version: "0.2.0", not_claimed: { broker: "computes fingerprints alone", daemon: "the same" } }];
for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, challenge, args } = JSON.parse(line);
  let answer = { outcome: "ok" };
  if (op === "hello") answer = { ok: { protocol: 1, challenge, implementation, claims, limits: { workers: 8 } } };
  else if (op === "call") {
    try {
      answer = { outcome: "accepted", effect: "new", value: { fingerprint: fingerprint(args) } };
    } catch (error) {
      if (!error.reason) throw error;
      answer = { outcome: "refused", reason: error.reason, data: error.data };
    }
  }
  process.stdout.write(JSON.stringify({ id, ...answer }) + "\n", op === "bye" ? () => process.exit(0) : undefined);
}
