// The published number stream, written from its description: what a Node programmer would write, on one thread.
//
//     node bench/es6_node.mjs LINES PATTERNS
//
// PATTERNS is a file with the listed bit patterns in hexadecimal, one a line: the 168 chosen and the 2000 in series.
// Prints one JSON object: lines, octets, sha256, and the seconds that making and hashing them took, start-up left out.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const total = Number(process.argv[2]);
const listed = readFileSync(process.argv[3], "ascii").split("\n").filter(Boolean);

const started = process.hrtime.bigint();
const digest = createHash("sha256");
let lines = 0;
let octets = 0;
let pending = [];

function flush() {
  const text = pending.join("");
  digest.update(text);
  octets += text.length;
  pending = [];
}

function emit(bits, value) {
  pending.push(`${bits.toString(16)},${value}\n`);
  lines += 1;
  if (pending.length === 4096) flush();
}

const cell = Buffer.alloc(8);
for (const pattern of listed) {
  if (lines === total) break;
  cell.writeBigUInt64BE(BigInt("0x" + pattern));
  emit(cell.readBigUInt64BE(), cell.readDoubleBE());
}
let block = Buffer.alloc(32);
while (lines < total) {
  block = createHash("sha256").update(block).digest();
  for (let at = 0; at < 32 && lines < total; at += 8) {
    const value = block.readDoubleLE(at);
    if (value !== 0 && Number.isFinite(value)) emit(block.readBigUInt64LE(at), value);
  }
}
flush();
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
console.log(JSON.stringify({ lines, octets, sha256: digest.digest("hex"), seconds }));
