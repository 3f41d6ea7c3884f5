// What most adapters need: lines of JSON in and out, the frozen clock, failpoints, and the schemas of arguments.
//
// It is yours: change it as you like, or do without it. It needs Node alone; with `npm install` it checks arguments by
// methods.json (ajv).

import { Console } from "node:console";
import { existsSync, mkdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

// Standard output is for answers alone: what is logged from here on goes to standard error.
globalThis.console = new Console(process.stderr);

const HELD_MS = 20_000;
const POLL_MS = 2;
const MOST = 1 << 20;

/** The method is not there yet. It has to be listed in NOT_YET, so that `hello` says so. */
export class NotYet extends Error {}

/** The operation fails here, because a failpoint says so: refuse it, or answer indeterminate after the commit. */
export class Aborted extends Error {}

/** One session: a folder for its store, a frozen clock, and the config. A method is a method of the same name. */
export class Session {
  #armed = null;

  constructor(request) {
    this.workdir = request.workdir;
    // `fresh` begins with nothing stored, `existing` finds what an earlier process left in the workdir.
    this.isFresh = request.state === "fresh";
    // Without a surface nothing is configured: refuse everything that needs the store.
    this.hasSurface = request.surface === "ready";
    /** @type {Record<string, string>} */
    this.config = request.config;
    // RFC 3339, in UTC. Never ask the machine or the database for the time.
    this.now = request.clock;
  }

  /** Make or open the store. What it throws is answered `fault`. */
  async opened() {}

  /** Give back what the session holds. The process may go on with another session. */
  async closed() {}

  /** Note a failpoint of the next operation, for a provocation such as hold_at. */
  arm(point, fault) {
    this.#armed = { point, fault };
  }

  /** Stop here if that was asked for. Throws Aborted. Call it where the method's page places the point. */
  async failpoint(point) {
    const armed = this.#armed;
    if (armed?.point !== point) return;
    this.#armed = null;
    if (armed.fault !== "hold") throw new Aborted(point);
    const folder = join(this.workdir, "hold");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${point}.reached`), "");
    const ends = Date.now() + HELD_MS;
    while (Date.now() < ends && !existsSync(join(folder, `${point}.release`))) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

/** An operation took effect now, or, if it is not new, has a durable earlier result. */
export const accepted = (value, { isNew = true } = {}) => ({
  outcome: "accepted",
  effect: isNew ? "new" : "prior",
  value,
});

/** An operation was refused, for one of the reasons of its method. */
export const refused = (reason, data, detail) => ({
  outcome: "refused",
  reason,
  ...(data ? { data } : {}),
  ...(detail ? { detail } : {}),
});

/** An observation or a provocation was done. */
export const ok = (value) => (value === undefined ? { outcome: "ok" } : { outcome: "ok", value });

/** Nobody knows whether the operation took effect. Never guess. */
export const indeterminate = (detail = "") => ({ outcome: "indeterminate", detail });

/** An internal error: neither accepted nor refused. */
export const fault = (detail) => ({ outcome: "fault", detail });

async function methodsOf() {
  const read = JSON.parse(readFileSync(new URL("methods.json", import.meta.url), "utf8"));
  let validator = () => null;
  try {
    const { default: Ajv } = await import("ajv/dist/2020.js");
    const ajv = new Ajv({ strict: false, validateFormats: false });
    validator = (schema) => ajv.compile(schema);
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    console.error("ajv is not installed (npm install): arguments are not checked");
  }
  return new Map(Object.entries(read).map(([name, entry]) => [name, { ...entry, fits: validator(entry.args) }]));
}

/**
 * Answer requests until `bye`.
 * @param {typeof Session} kind
 * @param {{contract: string, version: string, name: string, notYet: Record<string, string>, workers?: number}} said
 */
export async function serve(kind, { contract, version, name, notYet, workers = 16 }) {
  const methods = await methodsOf();
  for (const method of methods.keys()) {
    if (!(method in notYet) && typeof kind.prototype[method] !== "function") {
      throw new Error(`${kind.name} has no method ${method}: write it, or list it in NOT_YET`);
    }
  }
  let session = null;

  async function called(method, args) {
    if (session === null) return fault("no session is open");
    if (method in notYet) throw new NotYet(method);
    const known = methods.get(method);
    if (known === undefined) return fault(`unknown method ${method}`);
    if (known.fits && !known.fits(args)) {
      const { instancePath, message } = known.fits.errors[0];
      const problem = `${instancePath || "arguments"} ${message}`;
      return known.reasons.includes("REQUEST_MALFORMED")
        ? refused("REQUEST_MALFORMED", undefined, problem)
        : fault(problem);
    }
    try {
      return await session[method](args);
    } finally {
      // A failpoint is for the next operation alone.
      if (known.group === "operation") session.arm(null, null);
    }
  }

  async function answer(request) {
    switch (request.op) {
      case "hello":
        return {
          ok: {
            protocol: 1,
            challenge: request.challenge,
            implementation: { name, version: "0.1.0", language: "javascript" },
            claims: [{ contract, version, not_claimed: notYet }],
            limits: { workers },
          },
        };
      case "open":
        if (request.config.timezone) process.env.TZ = request.config.timezone;
        session = new kind(request);
        await session.opened();
        return ok();
      case "clock":
        if (session) session.now = request.now;
        return ok();
      case "close":
      case "bye": {
        const closing = session;
        session = null;
        await closing?.closed();
        return ok();
      }
      default:
        return called(request.method, request.args);
    }
  }

  for await (const line of linesOf(process.stdin)) {
    const request = JSON.parse(line);
    let answered;
    try {
      answered = await answer(request);
    } catch (error) {
      if (!(error instanceof NotYet)) console.error(error);
      answered =
        error instanceof NotYet ? { outcome: "unsupported", capability: request.method } : fault(String(error));
    }
    let text;
    try {
      text = JSON.stringify({ id: request.id, ...answered });
    } catch (error) {
      // A BigInt, above all.
      console.error(error);
      text = JSON.stringify({ id: request.id, ...fault(`the answer is no JSON: ${error}`) });
    }
    if (Buffer.byteLength(text) >= MOST) {
      text = JSON.stringify({ id: request.id, ...fault("the answer is longer than a line may be") });
    }
    writeAll(`${text}\n`);
    if (request.op === "bye") process.exit(0);
  }
}

/** Lines end with a line feed and with nothing else: node:readline also ends one at U+2028, which JSON may hold. */
async function* linesOf(stream) {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield rest.subarray(0, end).toString("utf8");
      rest = rest.subarray(end + 1);
    }
  }
}

/** All of it, before anything else is done: an answer that waits in a buffer is no answer. */
function writeAll(text) {
  let left = Buffer.from(text);
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
