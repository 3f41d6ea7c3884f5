import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import org.apache.camel.Exchange;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.platform.http.vertx.VertxPlatformHttpServer;
import org.apache.camel.component.platform.http.vertx.VertxPlatformHttpServerConfiguration;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.camel.spi.IdempotentRepository;
import org.apache.camel.processor.idempotent.jdbc.JdbcMessageIdRepository;
import org.h2.jdbcx.JdbcDataSource;

public class Server {
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    static void effect(Exchange exchange) throws Exception {
        byte[] body = exchange.getMessage().getBody(byte[].class);
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("SINK_URL")))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body == null ? new byte[0] : body)).build();
        HttpResponse<byte[]> told = CLIENT.send(request, HttpResponse.BodyHandlers.ofByteArray());
        if (told.headers().firstValue("holdfast-throw").isPresent()) {
            throw new IllegalStateException("the handler throws");
        }
        exchange.getMessage().removeHeaders("*");
        for (String name : List.of("Content-Type", "Location", "ETag", "Link", "Set-Cookie")) {
            told.headers().firstValue(name).ifPresent(value -> exchange.getMessage().setHeader(name, value));
        }
        exchange.getMessage().setHeader(Exchange.HTTP_RESPONSE_CODE, told.statusCode());
        exchange.getMessage().setBody(told.body());
    }

    public static void main(String[] args) throws Exception {
        DefaultCamelContext context = new DefaultCamelContext();
        VertxPlatformHttpServerConfiguration http = new VertxPlatformHttpServerConfiguration();
        http.setBindHost("127.0.0.1");
        http.setBindPort(Integer.parseInt(System.getenv("PORT")));
        context.addService(new VertxPlatformHttpServer(http));
        JdbcDataSource store = new JdbcDataSource();
        store.setUrl(System.getenv("STORE_URL"));
        store.setUser("sa");
        IdempotentRepository repo = new JdbcMessageIdRepository(store, "orders");
        context.addRoutes(new RouteBuilder() {
            public void configure() {
                from("platform-http:/health").setBody(constant("ok"));
                from("platform-http:/orders?httpMethodRestrict=POST")
                    .idempotentConsumer(header("Idempotency-Key")).idempotentRepository(repo).skipDuplicate(false)
                    .removeOnFailure(System.getenv("SAFE") == null)
                    .filter(exchangeProperty(Exchange.DUPLICATE_MESSAGE).isEqualTo(true))
                        .removeHeaders("*").setHeader(Exchange.HTTP_RESPONSE_CODE, constant(409))
                        .setBody(constant("duplicate")).stop()
                    .end()
                    .process(Server::effect);
            }
        });
        context.start();
        Thread.currentThread().join();
    }
}
