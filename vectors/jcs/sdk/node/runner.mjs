// Frames for the JavaScript canonicalisers. Run as `node runner.mjs LIBRARY`.
//
// The pipeline that is judged is the one an author would write: the bytes become a string (where bytes that are not
// UTF-8 become U+FFFD), the string goes to JSON.parse (where the last of two equal names wins), the value to the library.
import { readSync, writeSync } from 'node:fs'

const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  return Object.keys(value).sort().reduce((result, key) => {
    result[key] = sorted(value[key])
    return result
  }, {})
}

const libraries = {
  canonicalize: async () => (await import('canonicalize')).default,
  'json-canonicalize': async () => (await import('json-canonicalize')).canonicalize,
  naive: async () => (value) => JSON.stringify(sorted(value))
}

// JSON.parse throws SyntaxError, the libraries throw plain Error on a value they do not take. Anything else is not a
// refusal (RangeError is an exhausted stack, TypeError a bug): the process ends, and that is seen.
const isRefusal = (error) => error instanceof SyntaxError || error.constructor === Error

const answer = (canonicalise, document) => {
  let status = 'C'
  let body
  try {
    body = Buffer.from(canonicalise(JSON.parse(document.toString('utf8'))))
  } catch (error) {
    if (!isRefusal(error)) throw error
    status = 'R'
    body = Buffer.from(String(error.message))
  }
  const header = Buffer.alloc(5)
  header.writeUInt32BE(body.length)
  header.write(status, 4)
  return [header, body]
}

const canonicalise = await libraries[process.argv[2]]()
const room = Buffer.alloc(1 << 16)
let held = Buffer.alloc(0)
for (let count; (count = readSync(0, room)) > 0;) {
  held = Buffer.concat([held, room.subarray(0, count)])
  const answers = []
  let at = 0
  for (let end; at + 4 <= held.length && (end = at + 4 + held.readUInt32BE(at)) <= held.length; at = end) {
    answers.push(...answer(canonicalise, held.subarray(at + 4, end)))
  }
  held = held.subarray(at)
  const all = Buffer.concat(answers)
  for (let done = 0; done < all.length;) done += writeSync(1, all, done)
}
