import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.addend.Addend;
import dev.addend.AddendException;
import dev.addend.Attribution;
import dev.addend.AuditLog;
import dev.addend.Cancellation;
import dev.addend.Concepts;
import dev.addend.Contribution;
import dev.addend.Decision;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Plan;
import dev.addend.Reason;
import dev.addend.Reasons;
import dev.addend.RecordOptions;
import dev.addend.Request;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Scores rows of a table over HTTP, and says for each what every column gave to the score. docs/services.md describes it;
 * ScoreService.cs is the same service in C#.
 */
public final class ScoreService {
  private static final String USAGE = "usage: ScoreService MODEL BASELINE SAMPLE [--port N] [--workers N] [--queue N]\n"
      + "           [--timeout-ms N] [--max-body BYTES] [--drain-seconds N] [--concepts FILE] [--log FILE]";

  private ScoreService() {}

  public static void main(String[] arguments) throws IOException {
    serve(arguments, PlanScorer::new);
  }

  /** The service with another scorer: djl/DjlScoreService.java has one. */
  static void serve(String[] arguments, Opener opener) throws IOException {
    // Answers leave at once, and bodies that do not come are not waited for. The server reads these before it starts.
    setUnlessGiven("sun.net.httpserver.nodelay", "true");
    setUnlessGiven("sun.net.httpserver.maxReqTime", "10");
    setUnlessGiven("sun.net.httpserver.maxRspTime", "10");
    setUnlessGiven("sun.net.httpserver.drainAmount", Integer.toString(1 << 20));
    setUnlessGiven("jdk.httpserver.maxConnections", "1024");
    final Options options;
    final Scorer scorer;
    try {
      options = new Options(arguments);
      final Keeper keeper = new Keeper(options.concepts, options.log);
      scorer = opener.open(options.files.remove(), options.files.remove(), options.files.remove(), keeper);
    } catch (IllegalArgumentException | AddendException e) {
      System.err.println("ScoreService: " + e.getMessage());
      System.exit(2);
      return;
    }
    final Service service = new Service(scorer, options);
    Runtime.getRuntime().addShutdownHook(new Thread(service::stop, "stop"));
    System.out.println("listening on http://127.0.0.1:" + service.port());
  }

  private static void setUnlessGiven(String property, String value) {
    if (System.getProperty(property) == null) {
      System.setProperty(property, value);
    }
  }

  /** The options of the command line. */
  private static final class Options {
    final Deque<Path> files = new ArrayDeque<>();
    int port = 8080;
    int workers = Runtime.getRuntime().availableProcessors();
    int queue = 16;
    int timeoutMs = 1000;
    int maxBody = 16 << 10;
    int drainSeconds = 10;
    Path concepts;  // null: no reasons
    Path log;  // null: no records

    Options(String[] arguments) {
      final Deque<String> rest = new ArrayDeque<>(List.of(arguments));
      while (!rest.isEmpty()) {
        final String argument = rest.remove();
        if (!argument.startsWith("--")) {
          files.add(Path.of(argument));
          continue;
        }
        switch (argument) {
          case "--port": port = number(argument, rest, 0); break;
          case "--workers": workers = number(argument, rest, 1); break;
          case "--queue": queue = number(argument, rest, 0); break;
          case "--timeout-ms": timeoutMs = number(argument, rest, 1); break;
          case "--max-body": maxBody = number(argument, rest, 1); break;
          case "--drain-seconds": drainSeconds = number(argument, rest, 0); break;
          case "--concepts": concepts = file(argument, rest); break;
          case "--log": log = file(argument, rest); break;
          default: throw new IllegalArgumentException("there is no option " + argument + "\n" + USAGE);
        }
      }
      if (files.size() != 3) {
        throw new IllegalArgumentException("three files are needed\n" + USAGE);
      }
    }

    private static int number(String option, Deque<String> rest, int least) {
      final String text = rest.isEmpty() ? "" : rest.remove();
      if (!text.matches("[0-9]{1,9}") || Integer.parseInt(text) < least) {
        throw new IllegalArgumentException(option + " takes a whole number of at least " + least + "\n" + USAGE);
      }
      return Integer.parseInt(text);
    }

    private static Path file(String option, Deque<String> rest) {
      if (rest.isEmpty()) {
        throw new IllegalArgumentException(option + " takes a file\n" + USAGE);
      }
      return Path.of(rest.remove());
    }
  }

  /** A row's numbers, the warnings on them, and their reasons; null where the service has no concepts. */
  static final class Answer {
    final Explanation explanation;
    final List<String> warnings;
    final Reasons reasons;

    Answer(Explanation explanation, List<String> warnings, Reasons reasons) {
      this.explanation = explanation;
      this.warnings = warnings;
      this.reasons = reasons;
    }
  }

  /** Reasons and records of what is answered. Any number of threads may share one. */
  static final class Keeper implements AutoCloseable {
    private final Concepts concepts;
    private final AuditLog log;

    /** A file that is null stands for nothing to be told, or kept. */
    Keeper(Path conceptsPath, Path logPath) {
      try {
        concepts = conceptsPath == null ? null : Concepts.read(Files.readString(conceptsPath));
      } catch (IOException e) {
        throw new IllegalArgumentException(conceptsPath + " cannot be read: " + e.getMessage(), e);
      }
      log = logPath == null ? null : new AuditLog(logPath);
    }

    /** The reasons of an attribution; null without concepts. */
    Reasons reasons(Attribution attribution) {
      return concepts == null ? null : attribution.reasons(concepts);
    }

    /** The answer that an attribution gives. Its record is on the disk when this returns. */
    Answer answer(Attribution attribution) {
      final Reasons reasons = reasons(attribution);
      if (log != null) {
        final RecordOptions alone = RecordOptions.defaults();
        log.append(attribution, reasons == null ? alone : alone.reasons(reasons.toJson()));
      }
      return new Answer(attribution.explain(0), attribution.warnings(), reasons);
    }

    @Override
    public void close() {
      if (log != null) {
        log.close();
      }
      if (concepts != null) {
        concepts.close();
      }
    }
  }

  /** The model, and all that is the same for every row. Only this and the keeper ask Addend for anything. */
  interface Scorer extends AutoCloseable {
    /** The names of the columns, in the model's order. */
    List<String> columns();

    /** The score of a row and what each column gave to it. Any number of threads may ask. */
    Answer score(float[] row, Cancellation cancellation);

    @Override
    void close();
  }

  /** A function that makes a scorer of three files. */
  @FunctionalInterface
  interface Opener {
    Scorer open(Path model, Path baseline, Path sample, Keeper keeper);
  }

  /** Rows by a plan, in one forward run and one sweep back. */
  static final class PlanScorer implements Scorer {
    // The logit of the first class minus that of the second: positive where the model takes the row for the first.
    private static final Target TARGET = Target.difference(new long[] {0, 0}, new long[] {0, 1});

    private final List<String> columns;
    private final Plan plan;
    private final Keeper keeper;

    PlanScorer(Path modelPath, Path baselinePath, Path samplePath, Keeper keeper) {
      this.keeper = keeper;
      // Requests are computed beside each other, each on the thread of its worker.
      Addend.setNumThreads(1);
      try (TensorFile sample = TensorFile.read(samplePath)) {
        final String names = sample.metadata("names").orElseThrow(
            () -> new IllegalArgumentException(samplePath + " has no names of columns in its metadata"));
        columns = new Json(names).texts();
      }
      try (Model model = Model.load(modelPath);
          TensorFile file = TensorFile.read(baselinePath);
          Tensor baseline = file.tensor();
          Tensor row = Tensor.of(baseline.toFloatArray(), 1, baseline.numel())) {
        if (baseline.numel() != columns.size()) {
          throw new IllegalArgumentException(
              baselinePath + " has " + baseline.numel() + " numbers, and there are " + columns.size() + " columns");
        }
        // The plan of all requests is made once, by a run of the model here, for which no caller waits.
        plan = model.plan(Request.of(Input.of(row).splitAlong(1).baseline(baseline).names(columns)).target(TARGET));
        // Concepts of columns that the model lacks are an error here, and not in the first answer.
        try (Attribution tried = plan.attribute(Request.of(Input.of(row)))) {
          keeper.reasons(tried);
        }
      }
    }

    @Override
    public List<String> columns() {
      return columns;
    }

    @Override
    public Answer score(float[] row, Cancellation cancellation) {
      try (Tensor tensor = Tensor.of(row, 1, row.length); Attribution attribution = attribute(tensor, cancellation)) {
        return answer(attribution);
      }
    }

    /** The answer of an attribution, for scorers that make one themselves. */
    Answer answer(Attribution attribution) {
      return keeper.answer(attribution);
    }

    /** Attributes a row that is a tensor [1, columns], for scorers that have one. */
    Attribution attribute(Tensor row, Cancellation cancellation) {
      return plan.attribute(Request.of(Input.of(row)).cancellation(cancellation));
    }

    @Override
    public void close() {
      plan.close();
      keeper.close();
    }
  }

  /** An answer that is not the one that was asked for. */
  private static final class Refusal extends Exception {
    private static final long serialVersionUID = 1;

    final int status;

    Refusal(int status, String message) {
      super(message, null, false, false);
      this.status = status;
    }
  }

  /** The server: which requests are taken, how long they may last, what is counted. */
  private static final class Service {
    private static final int CLIENT_CLOSED = 499;

    private final Scorer scorer;
    private final Options options;
    private final Metrics metrics = new Metrics();
    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(1);
    private final Semaphore places;
    private final Semaphore workers;
    private final Set<Cancellation> running = ConcurrentHashMap.newKeySet();
    private final AtomicInteger exchanges = new AtomicInteger();
    private final AtomicBoolean stopping = new AtomicBoolean();

    Service(Scorer scorer, Options options) throws IOException {
      this.scorer = scorer;
      this.options = options;
      places = new Semaphore(options.workers + options.queue);
      workers = new Semaphore(options.workers, true);
      timers.setRemoveOnCancelPolicy(true);
      server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), options.port), 128);
      server.setExecutor(threads);
      server.createContext("/", this::handle);
      server.start();
    }

    int port() {
      return server.getAddress().getPort();
    }

    /** Refuses what is new, finishes what runs, and after some seconds ends what still runs. */
    void stop() {
      stopping.set(true);
      if (!idleWithin(options.drainSeconds)) {
        running.forEach(Service::end);
        idleWithin(1);
      }
      server.stop(0);
      threads.shutdown();
      timers.shutdownNow();
      scorer.close();
      System.out.println("stopped");
    }

    /** Ends a run that may be over by now. */
    private static void end(Cancellation cancellation) {
      try {
        cancellation.cancel();
      } catch (IllegalStateException e) {
        // It was closed meanwhile: nothing runs.
      }
    }

    private boolean idleWithin(int seconds) {
      final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      while (exchanges.get() > 0) {
        if (System.nanoTime() - end >= 0) {
          return false;
        }
        try {
          Thread.sleep(5);
        } catch (InterruptedException e) {
          return false;
        }
      }
      return true;
    }

    private void handle(HttpExchange exchange) {
      // Counted before the look at `stopping`: stop() waits for whoever saw it unset.
      exchanges.incrementAndGet();
      try {
        answer(exchange);
      } finally {
        exchange.close();
        exchanges.decrementAndGet();
      }
    }

    private void answer(HttpExchange exchange) {
      final long begin = System.nanoTime();
      final String path = exchange.getRequestURI().getPath();
      int status = 200;
      String type = "application/json";
      String body;
      try {
        switch (path) {
          case "/score":
            body = Answers.of(score(exchange, begin));
            break;
          case "/health":
            requireMethod(exchange, "GET");
            body = "{\"status\":\"ok\"}";
            break;
          case "/metrics":
            requireMethod(exchange, "GET");
            type = "text/plain; version=0.0.4";
            body = metrics.text(options.workers - workers.availablePermits(), workers.getQueueLength());
            break;
          default:
            throw new Refusal(404, "404: there is POST /score, GET /health and GET /metrics");
        }
      } catch (Refusal e) {
        status = e.status;
        type = "application/json";
        body = Answers.error(e.getMessage());
      } catch (IOException e) {
        status = CLIENT_CLOSED;
        body = "";
      } catch (RuntimeException e) {
        System.err.println("ScoreService: " + e);
        status = 500;
        body = Answers.error("the service failed; its log says why");
      }
      try {
        if (status != CLIENT_CLOSED) {
          send(exchange, status, type, body);
        }
      } catch (IOException e) {
        status = CLIENT_CLOSED;
      } finally {
        if (path.equals("/score")) {
          metrics.count(status, System.nanoTime() - begin);
        }
      }
    }

    private static void requireMethod(HttpExchange exchange, String method) throws Refusal {
      if (!exchange.getRequestMethod().equals(method)) {
        exchange.getResponseHeaders().set("Allow", method);
        throw new Refusal(405, "405: there is POST /score, GET /health and GET /metrics");
      }
    }

    private void send(HttpExchange exchange, int status, String type, String body) throws IOException {
      final byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
      exchange.getResponseHeaders().set("Content-Type", type);
      if (status == 503) {
        exchange.getResponseHeaders().set("Retry-After", "1");
      }
      if (stopping.get()) {
        exchange.getResponseHeaders().set("Connection", "close");
      }
      exchange.sendResponseHeaders(status, bytes.length);
      exchange.getResponseBody().write(bytes);
    }

    private Answer score(HttpExchange exchange, long begin) throws Refusal, IOException {
      requireMethod(exchange, "POST");
      if (stopping.get()) {
        throw new Refusal(503, "the service is stopping");
      }
      final long end = begin + timeout(exchange);
      final float[] row = new Json(text(body(exchange))).row(scorer.columns());
      if (!places.tryAcquire()) {
        throw new Refusal(503, "the service is busy: " + options.workers + " requests run and " + options.queue + " wait");
      }
      try {
        if (!workers.tryAcquire(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)) {
          throw late();
        }
        try {
          return run(row, end);
        } finally {
          workers.release();
        }
      } catch (InterruptedException e) {
        throw new Refusal(503, "the service is stopping");
      } finally {
        places.release();
      }
    }

    private Answer run(float[] row, long end) throws Refusal {
      final long left = end - System.nanoTime();
      if (left <= 0) {
        throw late();
      }
      try (Cancellation cancellation = new Cancellation()) {
        final Future<?> timer = timers.schedule(() -> end(cancellation), left, TimeUnit.NANOSECONDS);
        running.add(cancellation);
        try {
          final Answer answer = scorer.score(row, cancellation);
          if (!Double.isFinite(answer.explanation.recovery()) || !Double.isFinite(answer.explanation.value())) {
            throw notFinite();
          }
          return answer;
        } catch (AddendException e) {
          if (e.code() == AddendException.Code.CANCELLED) {
            throw System.nanoTime() - end < 0 ? new Refusal(503, "the service is stopping") : late();
          }
          throw e;
        } finally {
          timer.cancel(false);
          running.remove(cancellation);
        }
      }
    }

    private static Refusal late() {
      return new Refusal(504, "the time is over");
    }

    private static Refusal notFinite() {
      return new Refusal(422, "the model gives this row no finite score");
    }

    /** Nanoseconds that a request may take: the service's limit, or less where the caller waits for less. */
    private long timeout(HttpExchange exchange) throws Refusal {
      final String asked = exchange.getRequestHeaders().getFirst("X-Timeout-Ms");
      if (asked == null) {
        return TimeUnit.MILLISECONDS.toNanos(options.timeoutMs);
      }
      if (!asked.matches("[0-9]{1,9}")) {
        throw new Refusal(400, "X-Timeout-Ms has to be a whole number of milliseconds");
      }
      return TimeUnit.MILLISECONDS.toNanos(Math.min(options.timeoutMs, Integer.parseInt(asked)));
    }

    private byte[] body(HttpExchange exchange) throws Refusal, IOException {
      final String length = exchange.getRequestHeaders().getFirst("Content-Length");
      if (length != null && (length.length() > 10 || Long.parseLong(length) > options.maxBody)) {
        throw tooLarge();
      }
      final InputStream stream = exchange.getRequestBody();
      final byte[] body = stream.readNBytes(options.maxBody + 1);
      if (body.length > options.maxBody) {
        throw tooLarge();
      }
      if (length != null && body.length < Long.parseLong(length)) {
        throw new IOException("the body ended early");
      }
      return body;
    }

    private Refusal tooLarge() {
      return new Refusal(413, "a body has at most " + options.maxBody + " bytes");
    }

    private static String text(byte[] body) throws Refusal {
      try {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
      } catch (CharacterCodingException e) {
        throw new Refusal(400, "the body is not JSON: it is not UTF-8");
      }
    }
  }

  /** The counters, in the format that Prometheus reads. */
  private static final class Metrics {
    private static final String[] LIMITS =
        {"0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "+Inf"};
    private static final double[] SECONDS = Stream.of(LIMITS).mapToDouble(
        limit -> limit.equals("+Inf") ? Double.POSITIVE_INFINITY : Double.parseDouble(limit)).toArray();

    private final Map<Integer, AtomicLong> statuses = new ConcurrentHashMap<>();
    private final AtomicLongArray buckets = new AtomicLongArray(SECONDS.length);
    private final AtomicLong nanoseconds = new AtomicLong();

    void count(int status, long took) {
      int bucket = 0;
      while (took > SECONDS[bucket] * 1e9) {
        bucket++;
      }
      buckets.incrementAndGet(bucket);
      nanoseconds.addAndGet(took);
      statuses.computeIfAbsent(status, s -> new AtomicLong()).incrementAndGet();
    }

    String text(int running, int waiting) throws IOException {
      final StringBuilder text = new StringBuilder(2048);
      head(text, "score_requests_total", "counter",
          "Requests for scores by HTTP status; 499: the caller closed the connection.");
      new TreeMap<>(statuses).forEach((status, count) ->
          text.append("score_requests_total{status=\"").append(status).append("\"} ").append(count).append('\n'));
      head(text, "score_request_seconds", "histogram", "Time from the head of a request to its answer.");
      long sum = 0;
      for (int bucket = 0; bucket < buckets.length(); bucket++) {
        sum += buckets.get(bucket);
        text.append("score_request_seconds_bucket{le=\"")
            .append(LIMITS[bucket]).append("\"} ").append(sum).append('\n');
      }
      text.append("score_request_seconds_sum ").append(nanoseconds.get() / 1e9).append('\n');
      text.append("score_request_seconds_count ").append(sum).append('\n');
      gauge(text, "score_running", "Requests that the model runs for.", running);
      gauge(text, "score_waiting", "Requests that wait for a worker.", waiting);
      gauge(text, "process_resident_memory_bytes", "Resident memory.", residentBytes());
      return text.toString();
    }

    private static void gauge(StringBuilder text, String name, String help, long value) {
      head(text, name, "gauge", help);
      text.append(name).append(' ').append(value).append('\n');
    }

    private static void head(StringBuilder text, String name, String type, String help) {
      text.append("# HELP ").append(name).append(' ').append(help).append('\n');
      text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
    }

    private static long residentBytes() throws IOException {
      for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
        if (line.startsWith("VmRSS:")) {
          return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
        }
      }
      return 0;
    }
  }

  /** The bodies of answers. */
  private static final class Answers {
    static String of(Answer answer) {
      final Explanation explanation = answer.explanation;
      final StringBuilder json = new StringBuilder(2048);
      json.append("{\"target\":").append(quoted(explanation.target()));
      number(json, "score", explanation.value());
      number(json, "reference", explanation.reference());
      number(json, "leftover", explanation.leftover());
      number(json, "recovery_error", explanation.recoveryError());
      json.append(",\"contributions\":[");
      String separator = "";
      for (Contribution contribution : explanation.top(Integer.MAX_VALUE)) {
        json.append(separator).append("{\"name\":").append(quoted(contribution.name()));
        number(json, "value", contribution.value());
        json.append('}');
        separator = ",";
      }
      json.append(']');
      // Notes are for whoever reads the numbers or tells the reasons, which are for the person.
      Stream<String> notes = answer.warnings.stream();
      if (answer.reasons != null) {
        final Decision decision = answer.reasons.decisions().get(0);
        reasons(json, decision);
        notes = Stream.of(decision.notes(), answer.reasons.warnings(), answer.warnings).flatMap(List::stream).distinct();
      }
      json.append(",\"notes\":[").append(notes.map(Answers::quoted).collect(Collectors.joining(",")));
      return json.append("]}").toString();
    }

    private static void reasons(StringBuilder json, Decision decision) {
      json.append(",\"outcome\":").append(quoted(decision.outcome())).append(",\"reasons\":[");
      String separator = "";
      for (Reason reason : decision.reasons()) {
        json.append(separator).append("{\"code\":").append(quoted(reason.code()));
        json.append(",\"text\":").append(quoted(reason.text()));
        number(json, "contribution", reason.contribution());
        json.append('}');
        separator = ",";
      }
      json.append(']');
    }

    static String error(String message) {
      return "{\"error\":" + quoted(message) + "}";
    }

    private static void number(StringBuilder json, String key, double value) {
      json.append(",\"").append(key).append("\":").append(value);
    }

    private static String quoted(String text) {
      final StringBuilder quoted = new StringBuilder("\"");
      for (int i = 0; i < text.length(); i++) {
        final char c = text.charAt(i);
        if (c == '"' || c == '\\') {
          quoted.append('\\').append(c);
        } else if (c < ' ' || Character.isSurrogate(c)) {
          quoted.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
        } else {
          quoted.append(c);
        }
      }
      return quoted.append('"').toString();
    }
  }

  /** Reads the one kind of JSON that a body may be, because the JDK has no reader of JSON. */
  private static final class Json {
    private static final Pattern NUMBER = Pattern.compile("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?");

    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    /** {"features": {NAME: NUMBER, ...}} with every column exactly once, in any order. */
    float[] row(List<String> columns) throws Refusal {
      final float[] row = new float[columns.size()];
      final boolean[] given = new boolean[columns.size()];
      expect('{');
      final String field = string();
      if (!field.equals("features")) {
        throw new Refusal(400, Answers.quoted(field) + " is no field of a request, which is {\"features\": {NAME: NUMBER, ...}}");
      }
      expect(':');
      expect('{');
      while (next() != '}') {
        final String name = string();
        final int column = columns.indexOf(name);
        if (column < 0) {
          throw new Refusal(400, "there is no feature " + Answers.quoted(name) + "; the model takes these "
              + columns.size() + ": " + String.join(", ", columns));
        }
        if (given[column]) {
          throw new Refusal(400, "feature " + Answers.quoted(name) + " is given twice");
        }
        given[column] = true;
        expect(':');
        row[column] = number(name);
        if (next() != '}') {
          expect(',');
          if (next() == '}') {
            throw broken("a name is missing");
          }
        }
      }
      expect('}');
      expect('}');
      next();
      if (at < text.length()) {
        throw broken("something follows it");
      }
      int missing = 0;
      String first = null;
      for (int column = 0; column < given.length; column++) {
        if (!given[column]) {
          missing++;
          first = first == null ? columns.get(column) : first;
        }
      }
      if (missing > 0) {
        throw new Refusal(400, "feature " + Answers.quoted(first) + " is missing: " + (columns.size() - missing)
            + " of " + columns.size() + " are given");
      }
      return row;
    }

    /** [TEXT, ...], as metadata of tensor files have it. */
    List<String> texts() {
      try {
        final List<String> texts = new ArrayList<>();
        expect('[');
        while (next() != ']') {
          texts.add(string());
          if (next() != ']') {
            expect(',');
          }
        }
        return texts;
      } catch (Refusal e) {
        throw new IllegalArgumentException(e.getMessage());
      }
    }

    private float number(String name) throws Refusal {
      next();
      final Matcher matcher = NUMBER.matcher(text).region(at, text.length());
      if (!matcher.lookingAt()) {
        throw new Refusal(400, "feature " + Answers.quoted(name) + " has to be a finite number");
      }
      at = matcher.end();
      final float value = Float.parseFloat(matcher.group());
      if (!Float.isFinite(value)) {
        throw new Refusal(400, "feature " + Answers.quoted(name) + " has to be a finite number in single precision");
      }
      return value;
    }

    private String string() throws Refusal {
      expect('"');
      final StringBuilder string = new StringBuilder();
      while (true) {
        final char c = character();
        if (c == '"') {
          return string.toString();
        }
        string.append(c == '\\' ? escaped() : c);
      }
    }

    private char escaped() throws Refusal {
      final char c = character();
      switch (c) {
        case 'b': return '\b';
        case 'f': return '\f';
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case '"':
        case '\\':
        case '/':
          return c;
        case 'u':
          if (at + 4 > text.length() || !text.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
            throw broken("\\u needs four hexadecimal digits");
          }
          at += 4;
          return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        default:
          throw broken("there is no escape \\" + c);
      }
    }

    private char character() throws Refusal {
      if (at >= text.length()) {
        throw broken("it ends too early");
      }
      final char c = text.charAt(at++);
      if (c < ' ') {
        throw broken("there is a control character in a text");
      }
      return c;
    }

    private char next() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
        at++;
      }
      return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char c) throws Refusal {
      if (next() != c || at >= text.length()) {
        throw broken(at >= text.length() ? "it ends too early" : "'" + c + "' is expected");
      }
      at++;
    }

    private Refusal broken(String what) {
      return new Refusal(400, "the body is not JSON of the form {\"features\": {NAME: NUMBER, ...}}: " + what
          + " (at character " + at + ")");
    }
  }
}
