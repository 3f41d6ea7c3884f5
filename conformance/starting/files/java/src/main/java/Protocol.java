import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** The adapter protocol of holdfast over standard input and output. What to fill in is in Adapter.java. */
final class Protocol {
  private static final int LONGEST = 1 << 20;
  private static final long HELD_MS = 20_000;
  private static final long POLL_MS = 2;
  static final ObjectMapper JSON = mapper();

  private Protocol() {}

  /** The method is not there yet. It has to be listed in NOT_YET. */
  static final class NotYet extends RuntimeException {}

  /** The operation fails here, because a failpoint says so. */
  static final class Aborted extends IOException {
    Aborted(String point) {
      super("aborted at " + point);
    }
  }

  /** The arguments do not fit, and the method has a reason for that. */
  static final class Malformed extends RuntimeException {
    Malformed(String reason) {
      super(reason);
    }
  }

  /** A folder for the store, a frozen clock and the config. */
  abstract static class Session {
    Path workdir;
    /** Nothing is stored. Otherwise open what an earlier process left in the workdir. */
    boolean isFresh;
    /** Without it nothing is configured, so refuse everything that needs the store. */
    boolean hasSurface;
    Map<String, String> config = new HashMap<>();
    /** RFC 3339, in UTC. Never ask the machine or the database for the time. */
    String now;
    private String point = "";
    private String fault = "";

    abstract void opened() throws IOException;

    abstract void closed() throws IOException;

    abstract Map<String, Object> call(String method, JsonNode args) throws IOException;

    /** Note a failpoint of the next operation. */
    void arm(String armed, String how) {
      point = armed;
      fault = how;
    }

    /** Stop here if that was asked for. Call it where the method's page places the point. */
    void failpoint(String here) throws IOException {
      if (!point.equals(here)) {
        return;
      }
      point = "";
      if (!fault.equals("hold")) {
        throw new Aborted(here);
      }
      Path folder = Files.createDirectories(workdir.resolve("hold"));
      Files.write(folder.resolve(here + ".reached"), new byte[0]);
      long ends = System.currentTimeMillis() + HELD_MS;
      while (System.currentTimeMillis() < ends && !Files.exists(folder.resolve(here + ".release"))) {
        try {
          Thread.sleep(POLL_MS);
        } catch (InterruptedException error) {
          throw new IOException(error);
        }
      }
    }
  }

  /** The operation took effect now, or, if it is not new, has a durable earlier result. */
  static Map<String, Object> accepted(Map<String, ?> value, boolean isNew) {
    return of("outcome", "accepted", "effect", isNew ? "new" : "prior", "value", value);
  }

  /** The operation was refused, for one of the reasons of its method. */
  static Map<String, Object> refused(String reason) {
    return of("outcome", "refused", "reason", reason);
  }

  /** An observation or a provocation was done; null where there is nothing to tell. */
  static Map<String, Object> ok(Map<String, ?> value) {
    return value == null ? of("outcome", "ok") : of("outcome", "ok", "value", value);
  }

  private static Map<String, Object> fault(Exception error) {
    return of("outcome", "fault", "detail", error.getClass().getSimpleName() + ": " + error.getMessage());
  }

  /** Arguments in their type. Empty `malformed`: the method has no reason for those that do not fit. */
  static <T> T decoded(JsonNode args, Class<T> type, String malformed) throws IOException {
    try {
      return JSON.treeToValue(args, type);
    } catch (JsonProcessingException error) {
      if (malformed.isEmpty()) {
        throw error;
      }
      throw new Malformed(malformed);
    }
  }

  /** Answer requests until `bye`. */
  static void serve(Supplier<? extends Session> kind, String contract, String version, String name, Set<String> notYet)
      throws IOException {
    FileOutputStream answers = new FileOutputStream(FileDescriptor.out);
    // Standard output is for answers alone: what a library prints goes to standard error.
    System.setOut(System.err);
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Session session = null;
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      JsonNode request = JSON.readTree(line);
      String op = request.path("op").asText();
      Map<String, Object> answer;
      try {
        switch (op) {
          case "hello" -> answer = hello(request, contract, version, name, notYet);
          case "open" -> {
            session = kind.get();
            session.workdir = Path.of(request.path("workdir").asText());
            session.isFresh = request.path("state").asText().equals("fresh");
            session.hasSurface = request.path("surface").asText().equals("ready");
            session.now = request.path("clock").asText();
            for (Map.Entry<String, JsonNode> each : (Iterable<Map.Entry<String, JsonNode>>) () -> request.path("config").fields()) {
              session.config.put(each.getKey(), each.getValue().asText());
            }
            session.opened();
            answer = ok(null);
          }
          case "clock" -> {
            if (session != null) {
              session.now = request.path("now").asText();
            }
            answer = ok(null);
          }
          case "close", "bye" -> {
            Session closing = session;
            session = null;
            if (closing != null) {
              closing.closed();
            }
            answer = ok(null);
          }
          case "call" -> {
            String method = request.path("method").asText();
            if (notYet.contains(method)) {
              throw new NotYet();
            }
            if (session == null) {
              throw new IOException("no session is open");
            }
            answer = session.call(method, request.path("args"));
          }
          default -> throw new IOException("unknown op " + op);
        }
      } catch (NotYet error) {
        answer = of("outcome", "unsupported", "capability", request.path("method").asText());
      } catch (Malformed error) {
        answer = refused(error.getMessage());
      } catch (Exception error) {
        error.printStackTrace();
        answer = fault(error);
      }
      byte[] text = written(request, answer);
      if (text.length > LONGEST) {
        text = written(request, fault(new IOException("the answer is longer than a line may be")));
      }
      answers.write(text);
      answers.flush();
      if (op.equals("bye")) {
        return;
      }
    }
  }

  private static byte[] written(JsonNode request, Map<String, Object> answer) throws IOException {
    Map<String, Object> whole = new LinkedHashMap<>(answer);
    whole.put("id", request.path("id").asText());
    return (JSON.writeValueAsString(whole) + "\n").getBytes(StandardCharsets.UTF_8);
  }

  private static Map<String, Object> hello(
      JsonNode request, String contract, String version, String name, Set<String> notYet) {
    Map<String, Object> missing = new LinkedHashMap<>();
    notYet.forEach(each -> missing.put(each, "not there yet"));
    return of(
        "ok",
        of(
            "protocol", 1,
            "challenge", request.path("challenge").asText(),
            "implementation", of("name", name, "version", "0.1.0", "language", "java"),
            "claims", new Object[] {of("contract", contract, "version", version, "not_claimed", missing)},
            "limits", of("workers", 16)));
  }

  private static Map<String, Object> of(Object... pairs) {
    Map<String, Object> made = new LinkedHashMap<>();
    for (int at = 0; at < pairs.length; at += 2) {
      made.put((String) pairs[at], pairs[at + 1]);
    }
    return made;
  }

  private static ObjectMapper mapper() {
    ObjectMapper made = new ObjectMapper();
    // A text is not a number, a number is no text, and what is unknown is wrong.
    made.enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    for (LogicalType type : LogicalType.values()) {
      for (CoercionInputShape shape : CoercionInputShape.values()) {
        if (shape != CoercionInputShape.EmptyArray && shape != CoercionInputShape.EmptyObject) {
          made.coercionConfigFor(type).setCoercion(shape, CoercionAction.Fail);
        }
      }
    }
    return made;
  }
}
