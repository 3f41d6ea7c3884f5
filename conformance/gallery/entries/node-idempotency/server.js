// @node-idempotency/nestjs as its README shows it: the module with the Redis adapter, and one decorated handler.
// Plain JavaScript, so the decorators are called by hand.
require("reflect-metadata");
const { Controller, Get, Module, Post, Req, Res } = require("@nestjs/common");
const { NestFactory } = require("@nestjs/core");
const { Idempotent, NodeIdempotencyModule } = require("@node-idempotency/nestjs");

const KEPT = ["content-type", "location", "etag", "link", "set-cookie"];

class OrdersController {
  health() {
    return "ok";
  }

  async create(req, res) {
    const told = await fetch(process.env.SINK_URL, { method: "POST", body: req.rawBody ?? Buffer.alloc(0) });
    const text = await told.text();
    if (told.headers.has("holdfast-throw")) throw new Error("the handler throws");
    res.status(told.status);
    for (const name of KEPT) if (told.headers.has(name)) res.set(name, told.headers.get(name));
    return text;
  }
}

function decorate(decorators, name) {
  const property = Object.getOwnPropertyDescriptor(OrdersController.prototype, name);
  for (const decorator of decorators) decorator(OrdersController.prototype, name, property);
}

decorate([Get("/health")], "health");
for (const [index, parameter] of [Req(), Res({ passthrough: true })].entries())
  parameter(OrdersController.prototype, "create", index);
decorate([Idempotent({ enforceIdempotency: true }), Post(["/orders", "/refunds"])], "create");
Controller()(OrdersController);

class AppModule {}
Module({
  controllers: [OrdersController],
  imports: [
    NodeIdempotencyModule.forRootAsync({
      storage: { adapter: "redis", options: { url: process.env.STORE_URL } },
    }),
  ],
})(AppModule);

NestFactory.create(AppModule, { rawBody: true, logger: ["error"] }).then((app) => {
  // All media types are parsed, so that all are fingerprinted.
  app.useBodyParser("json", { limit: "20mb" });
  app.useBodyParser("text", { type: "text/*", limit: "20mb" });
  app.useBodyParser("raw", { type: () => true, limit: "20mb" });
  return app.listen(Number(process.env.PORT), "127.0.0.1");
});
