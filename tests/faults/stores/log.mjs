// An append-only log in Node: a line for every put, a checksum before its JSON.
// node log.mjs VARIANT FOLDER
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";

const [variant, folder] = process.argv.slice(2);
const file = path.join(folder, "facts.log");
const check = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);
const say = (text) => fs.writeSync(1, text + "\n");

const magic = Buffer.from("facts log 1\n");
const log = fs.openSync(file, "a");
const names = fs.openSync(folder, "r");
fs.fsyncSync(names);
fs.closeSync(names);
let data = fs.readFileSync(file);
if (data.length < magic.length && magic.subarray(0, data.length).equals(data)) {
  // All ended while it was made.
  fs.ftruncateSync(log, 0);
  fs.writeSync(log, magic);
  fs.fsyncSync(log);
  data = magic;
}
if (!data.subarray(0, magic.length).equals(magic)) throw new Error("facts.log is no log of facts");
const facts = {};
let end = magic.length;
for (let next; (next = data.indexOf(10, end)) >= 0; end = next + 1) {
  const line = data.subarray(end, next).toString("latin1");
  const body = Buffer.from(line.slice(17), "latin1").toString("utf8");
  if (line.slice(0, 17) !== check(body) + " ") break;
  Object.assign(facts, JSON.parse(body));
}
if (end < data.length) {
  fs.ftruncateSync(log, end);
  fs.fsyncSync(log);
}

function put(name, value) {
  const added = { [name + ".left"]: value, [name + ".right"]: value };
  const body = JSON.stringify(added);
  let rest = Buffer.from(`${check(body)} ${body}\n`);
  while (rest.length) rest = rest.subarray(fs.writeSync(log, rest));
  if (variant !== "no_fsync") fs.fsyncSync(log);
  Object.assign(facts, added);
}

say("READY");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const words = line.trim().split(/\s+/);
  if (words.length === 1 && words[0] === "DUMP") {
    say(JSON.stringify(facts));
  } else if (words.length === 3 && words[0] === "PUT") {
    try {
      put(words[1], words[2]);
    } catch (error) {
      say("ERROR " + error.message);
      process.exit(1);
    }
    say("OK");
  } else {
    say("REFUSED expected PUT name value or DUMP");
  }
}
