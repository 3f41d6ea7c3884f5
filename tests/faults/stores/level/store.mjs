// A store on LevelDB.
// node store.mjs VARIANT FOLDER
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { ClassicLevel } from "classic-level";

const [variant, folder] = process.argv.slice(2);
const say = (text) => fs.writeSync(1, text + "\n");
const db = new ClassicLevel(path.join(folder, "facts"), { compression: false });
await db.open();

say("READY");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const words = line.trim().split(/\s+/);
  if (words.length === 1 && words[0] === "DUMP") {
    say(JSON.stringify(Object.fromEntries(await db.iterator().all())));
  } else if (words.length === 3 && words[0] === "PUT") {
    const facts = ["left", "right"].map((side) => ({ type: "put", key: `${words[1]}.${side}`, value: words[2] }));
    try {
      await db.batch(facts, { sync: variant === "sync" });
    } catch (error) {
      say("ERROR " + error.message);
      process.exit(1);
    }
    say("OK");
  } else {
    say("REFUSED expected PUT name value or DUMP");
  }
}
await db.close();
