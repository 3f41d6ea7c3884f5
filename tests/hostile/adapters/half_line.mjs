// Writes half of its answer to hello, and goes.
process.stdin.once("data", () => {
  process.stdout.write('{"id":"1","ok":{"protocol":1,"challenge":"', () => process.exit(0));
});
