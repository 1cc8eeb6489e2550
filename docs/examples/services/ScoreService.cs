// Scores rows of a table over HTTP, and says for each what every column gave to the score. docs/services.md describes it;
// ScoreService.java is the same service in Java.
using System.Buffers;
using System.Collections.Concurrent;
using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Text;
using System.Text.Json;
using System.Threading.RateLimiting;
using Addend;

const string Usage = """
    usage: ScoreService MODEL BASELINE SAMPLE [--port N] [--workers N] [--queue N]
               [--timeout-ms N] [--max-body BYTES] [--drain-seconds N] [--concepts FILE] [--log FILE]
    """;

Options options;
Scorer scorer;
try
{
    options = new Options(args);
    var keeper = new Keeper(options.Concepts, options.Log);
    scorer = new Scorer(options.Files[0], options.Files[1], options.Files[2], keeper);
}
catch (Exception e) when (e is ArgumentException or IOException or InvalidOperationException or AddendException)
{
    Console.Error.WriteLine($"ScoreService: {e.Message}\n{Usage}");
    return 2;
}

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel =>
{
    kestrel.Listen(IPAddress.Loopback, options.Port);
    kestrel.AddServerHeader = false;
    kestrel.Limits.MaxRequestBodySize = options.MaxBody;
    kestrel.Limits.MaxConcurrentConnections = 1024;
    kestrel.Limits.RequestHeadersTimeout = TimeSpan.FromSeconds(10);
});
// SIGTERM ends the application: it refuses what is new, finishes what runs, and after this time ends what still runs.
builder.Services.Configure<HostOptions>(
    host => host.ShutdownTimeout = TimeSpan.FromSeconds(options.DrainSeconds));

WebApplication app = builder.Build();
using var service = new Service(scorer, options, app.Lifetime.ApplicationStopping);
app.UseStatusCodePages("application/json", "{{\"error\":\"{0}: there is POST /score, GET /health and GET /metrics\"}}");
app.MapPost("/score", service.Score);
app.MapGet("/health", () => TypedResults.Text("{\"status\":\"ok\"}", "application/json"));
app.MapGet("/metrics", () => TypedResults.Text(service.Metrics(), "text/plain; version=0.0.4"));

try
{
    await app.StartAsync();
}
catch (IOException e)
{
    Console.Error.WriteLine($"ScoreService: {e.Message}");
    return 2;
}
Console.WriteLine($"listening on {app.Urls.First()}");
await app.WaitForShutdownAsync();
scorer.Dispose();
Console.WriteLine("stopped");
return 0;

/// <summary>The options of the command line.</summary>
internal sealed class Options
{
    private readonly Dictionary<string, int> _numbers = new()
    {
        ["--port"] = 8080,
        ["--workers"] = Environment.ProcessorCount,
        ["--queue"] = 16,
        ["--timeout-ms"] = 1000,
        ["--max-body"] = 16 << 10,
        ["--drain-seconds"] = 10,
    };

    private readonly Dictionary<string, string?> _files = new() { ["--concepts"] = null, ["--log"] = null };

    internal Options(string[] arguments)
    {
        for (int k = 0; k < arguments.Length; k++)
        {
            string argument = arguments[k];
            if (!argument.StartsWith("--", StringComparison.Ordinal))
            {
                Files.Add(argument);
                continue;
            }
            if (_files.ContainsKey(argument))
            {
                _files[argument] = ++k < arguments.Length
                    ? arguments[k]
                    : throw new ArgumentException($"{argument} takes a file");
                continue;
            }
            if (!_numbers.ContainsKey(argument))
            {
                throw new ArgumentException($"there is no option {argument}");
            }
            int least = argument is "--port" or "--queue" or "--drain-seconds" ? 0 : 1;
            string text = ++k < arguments.Length ? arguments[k] : "";
            if (!int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out int number) || number < least)
            {
                throw new ArgumentException($"{argument} takes a whole number of at least {least}");
            }
            _numbers[argument] = number;
        }
        if (Files.Count != 3)
        {
            throw new ArgumentException("three files are needed");
        }
    }

    internal List<string> Files { get; } = [];

    internal int Port => _numbers["--port"];

    internal int Workers => _numbers["--workers"];

    internal int Queue => _numbers["--queue"];

    internal int TimeoutMs => _numbers["--timeout-ms"];

    internal int MaxBody => _numbers["--max-body"];

    internal int DrainSeconds => _numbers["--drain-seconds"];

    /// <summary>The description of concepts; null: no reasons.</summary>
    internal string? Concepts => _files["--concepts"];

    /// <summary>The log of decisions; null: no records.</summary>
    internal string? Log => _files["--log"];
}

/// <summary>A row's numbers, the warnings on them, and their reasons; null where the service has no concepts.</summary>
internal sealed record Answer(Explanation Explanation, IReadOnlyList<string> Warnings, Reasons? Reasons);

/// <summary>Reasons and records of what is answered; a file that is null stands for nothing to be told, or kept.
/// </summary>
internal sealed class Keeper(string? conceptsPath, string? logPath) : IDisposable
{
    private readonly Concepts? _concepts = conceptsPath is null ? null : Concepts.Read(File.ReadAllText(conceptsPath));

    private readonly AuditLog? _log = logPath is null ? null : new AuditLog(logPath);

    /// <summary>The reasons of an attribution; null without concepts.</summary>
    internal Reasons? Reasons(Attribution attribution) => _concepts is null ? null : attribution.Reasons(_concepts);

    /// <summary>The answer that an attribution gives. Its record is on the disk when this returns.</summary>
    internal Answer Keep(Attribution attribution)
    {
        Reasons? reasons = Reasons(attribution);
        _log?.Append(attribution, new RecordOptions { Reasons = reasons?.ToJson() });
        return new Answer(attribution.Explain(), attribution.Warnings, reasons);
    }

    public void Dispose()
    {
        _log?.Dispose();
        _concepts?.Dispose();
    }
}

/// <summary>The model, and all that is the same for every row. Only this and the keeper ask Addend for anything.</summary>
internal sealed class Scorer : IDisposable
{
    // The logit of the first class minus that of the second: positive where the model takes the row for the first.
    private static readonly Target Margin = Target.At(0, 0).Minus(Target.At(0, 1));

    private readonly Plan _plan;
    private readonly Keeper _keeper;

    internal Scorer(string modelPath, string baselinePath, string samplePath, Keeper keeper)
    {
        _keeper = keeper;
        // Requests are computed beside each other, each on the thread of its worker.
        AddendLibrary.SetThreads(1);
        using Model model = Model.Load(modelPath);
        using TensorFile file = TensorFile.Load(baselinePath);
        using Tensor baseline = file.First();
        using (TensorFile sample = TensorFile.Load(samplePath))
        {
            string names = sample.Metadata("names")
                ?? throw new ArgumentException($"{samplePath} has no names of columns in its metadata");
            Columns = [.. JsonDocument.Parse(names).RootElement.EnumerateArray().Select(name => name.GetString()!)];
        }
        if (baseline.Count != Columns.Count)
        {
            throw new ArgumentException(
                $"{baselinePath} has {baseline.Count} numbers, and there are {Columns.Count} columns");
        }
        // The plan of all requests is made once, by a run of the model here, for which no caller waits.
        using Tensor row = Tensor.From(baseline.ToArray<float>(), 1, baseline.Count);
        _plan = model.Plan(
            new Request(new Input(row) { Split = Split.Along(1), Baseline = baseline, Names = Columns })
            {
                Targets = [Margin],
            });
        // Concepts of columns that the model lacks are an error here, and not in the first answer.
        using Attribution tried = _plan.Attribute(new Request(new Input(row)));
        keeper.Reasons(tried);
    }

    internal IReadOnlyList<string> Columns { get; }

    /// <summary>The score of a row and what each column gave to it, by one forward run and one sweep back.</summary>
    internal Answer Score(float[] row, CancellationToken cancellation)
    {
        using Tensor tensor = Tensor.From(row, 1, row.Length);
        using Attribution attribution = _plan.Attribute(new Request(new Input(tensor)), cancellation);
        return _keeper.Keep(attribution);
    }

    public void Dispose()
    {
        _plan.Dispose();
        _keeper.Dispose();
    }
}

/// <summary>An answer that is not the one that was asked for.</summary>
internal sealed class Refusal(int status, string message) : Exception(message)
{
    internal int Status => status;
}

/// <summary>Which requests are taken, how long they may last, what is counted.</summary>
internal sealed class Service(Scorer scorer, Options options, CancellationToken stopping) : IDisposable
{
    private const int ClientClosed = 499;

    private readonly Dictionary<string, int> _columns =
        scorer.Columns.Select((name, column) => (name, column)).ToDictionary(one => one.name, one => one.column);

    private readonly ConcurrencyLimiter _workers = new(new ConcurrencyLimiterOptions
    {
        PermitLimit = options.Workers,
        QueueLimit = options.Queue,
        QueueProcessingOrder = QueueProcessingOrder.OldestFirst,
    });

    private readonly Counts _counts = new();

    public void Dispose() => _workers.Dispose();

    internal string Metrics() => _counts.Text(
        options.Workers - _workers.GetStatistics()!.CurrentAvailablePermits,
        _workers.GetStatistics()!.CurrentQueuedCount);

    internal async Task Score(HttpContext context)
    {
        long begin = Stopwatch.GetTimestamp();
        int status = 200;
        var body = new ArrayBufferWriter<byte>(4096);
        try
        {
            Answers.Write(body, await Explain(context, begin));
        }
        catch (Refusal e)
        {
            status = e.Status;
            Answers.WriteError(body, e.Message);
        }
        catch (BadHttpRequestException e) when (e.StatusCode == 413)
        {
            status = 413;
            Answers.WriteError(body, $"a body has at most {options.MaxBody} bytes");
        }
        catch (BadHttpRequestException e) when (e.StatusCode == 408)
        {
            status = 408;
            Answers.WriteError(body, "the body does not come");
        }
        catch (Exception e) when (e is IOException or OperationCanceledException)
        {
            // Errors of the connection, such as a body that ends early.
            status = ClientClosed;
        }
        catch (Exception e)
        {
            await Console.Error.WriteLineAsync($"ScoreService: {e}");
            status = 500;
            Answers.WriteError(body, "the service failed; its log says why");
        }
        try
        {
            if (status == ClientClosed)
            {
                context.Abort();
                return;
            }
            context.Response.StatusCode = status;
            context.Response.ContentType = "application/json";
            context.Response.ContentLength = body.WrittenCount;
            if (status == 503)
            {
                context.Response.Headers.RetryAfter = "1";
            }
            await context.Response.Body.WriteAsync(body.WrittenMemory, context.RequestAborted);
        }
        catch (Exception e) when (e is IOException or OperationCanceledException)
        {
            status = ClientClosed;
        }
        finally
        {
            _counts.Add(status, Stopwatch.GetElapsedTime(begin));
        }
    }

    private async Task<Answer> Explain(HttpContext context, long begin)
    {
        if (stopping.IsCancellationRequested)
        {
            throw new Refusal(503, "the service is stopping");
        }
        // Ends the run when the time is over, and when the caller closes the connection.
        using var ending = CancellationTokenSource.CreateLinkedTokenSource(context.RequestAborted);
        TimeSpan timeout = Timeout(context.Request);
        ending.CancelAfter(timeout);
        float[] row = await ReadRow(context.Request);
        try
        {
            using RateLimitLease lease = await _workers.AcquireAsync(1, ending.Token);
            if (!lease.IsAcquired)
            {
                throw new Refusal(
                    503, $"the service is busy: {options.Workers} requests run and {options.Queue} wait");
            }
            // Timers are late by milliseconds.
            if (Stopwatch.GetElapsedTime(begin) >= timeout)
            {
                throw Late();
            }
            Answer answer = scorer.Score(row, ending.Token);
            return double.IsFinite(answer.Explanation.Recovery) && double.IsFinite(answer.Explanation.Value)
                ? answer
                : throw new Refusal(422, "the model gives this row no finite score");
        }
        catch (OperationCanceledException) when (!context.RequestAborted.IsCancellationRequested)
        {
            throw Late();
        }
    }

    private static Refusal Late() => new(504, "the time is over");

    // The service's limit, or less where the caller waits for less.
    private TimeSpan Timeout(HttpRequest request)
    {
        if (!request.Headers.TryGetValue("X-Timeout-Ms", out var asked))
        {
            return TimeSpan.FromMilliseconds(options.TimeoutMs);
        }
        return int.TryParse(asked, NumberStyles.None, CultureInfo.InvariantCulture, out int milliseconds)
            ? TimeSpan.FromMilliseconds(Math.Min(options.TimeoutMs, milliseconds))
            : throw new Refusal(400, "X-Timeout-Ms has to be a whole number of milliseconds");
    }

    private async Task<float[]> ReadRow(HttpRequest request)
    {
        try
        {
            using JsonDocument document = await JsonDocument.ParseAsync(
                request.Body, new JsonDocumentOptions { MaxDepth = 8 }, request.HttpContext.RequestAborted);
            return Row(document.RootElement);
        }
        catch (Exception e) when (e is JsonException or InvalidOperationException)
        {
            // An invalid operation is to read a text that is not UTF-8.
            throw new Refusal(400, $"the body is not JSON of the form {Form}: {e.Message}");
        }
    }

    private const string Form = "{\"features\": {NAME: NUMBER, ...}}";

    // {"features": {NAME: NUMBER, ...}} with every column exactly once, in any order.
    private float[] Row(JsonElement body)
    {
        if (body.ValueKind != JsonValueKind.Object || !body.TryGetProperty("features", out JsonElement features)
            || features.ValueKind != JsonValueKind.Object || body.EnumerateObject().Count() != 1)
        {
            throw new Refusal(400, $"the body is not JSON of the form {Form}");
        }
        var row = new float[_columns.Count];
        var given = new bool[_columns.Count];
        foreach (JsonProperty feature in features.EnumerateObject())
        {
            if (!_columns.TryGetValue(feature.Name, out int column))
            {
                throw new Refusal(400, $"there is no feature {Quoted(feature.Name)}; the model takes these "
                    + $"{_columns.Count}: {string.Join(", ", scorer.Columns)}");
            }
            if (given[column])
            {
                throw new Refusal(400, $"feature {Quoted(feature.Name)} is given twice");
            }
            given[column] = true;
            if (feature.Value.ValueKind != JsonValueKind.Number)
            {
                throw new Refusal(400, $"feature {Quoted(feature.Name)} has to be a finite number");
            }
            if (!feature.Value.TryGetSingle(out row[column]) || !float.IsFinite(row[column]))
            {
                throw new Refusal(400, $"feature {Quoted(feature.Name)} has to be a finite number in single precision");
            }
        }
        int missing = Array.IndexOf(given, false);
        return missing < 0
            ? row
            : throw new Refusal(400, $"feature {Quoted(scorer.Columns[missing])} is missing: "
                + $"{given.Count(one => one)} of {given.Length} are given");
    }

    private static string Quoted(string text) => $"\"{JsonEncodedText.Encode(text)}\"";
}

/// <summary>The counters, in the format that Prometheus reads.</summary>
internal sealed class Counts
{
    private static readonly double[] Seconds =
        [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

    private readonly ConcurrentDictionary<int, StrongBox> _statuses = new();
    private readonly long[] _buckets = new long[Seconds.Length + 1];
    private long _ticks;

    internal void Add(int status, TimeSpan took)
    {
        int bucket = Array.FindIndex(Seconds, seconds => took.TotalSeconds <= seconds);
        Interlocked.Increment(ref _buckets[bucket < 0 ? Seconds.Length : bucket]);
        Interlocked.Add(ref _ticks, took.Ticks);
        Interlocked.Increment(ref _statuses.GetOrAdd(status, _ => new StrongBox()).Value);
    }

    internal string Text(long running, long waiting)
    {
        var text = new StringBuilder();
        Head(text, "score_requests_total", "counter",
            "Requests for scores by HTTP status; 499: the caller closed the connection.");
        foreach ((int status, StrongBox count) in _statuses.OrderBy(one => one.Key))
        {
            text.Append(CultureInfo.InvariantCulture, $"score_requests_total{{status=\"{status}\"}} {count.Value}\n");
        }
        Head(text, "score_request_seconds", "histogram", "Time from the head of a request to its answer.");
        long sum = 0;
        for (int bucket = 0; bucket < _buckets.Length; bucket++)
        {
            sum += Interlocked.Read(ref _buckets[bucket]);
            string limit = bucket < Seconds.Length ? Seconds[bucket].ToString(CultureInfo.InvariantCulture) : "+Inf";
            text.Append(CultureInfo.InvariantCulture, $"score_request_seconds_bucket{{le=\"{limit}\"}} {sum}\n");
        }
        double seconds = Interlocked.Read(ref _ticks) / (double)TimeSpan.TicksPerSecond;
        text.Append(CultureInfo.InvariantCulture, $"score_request_seconds_sum {seconds}\n");
        text.Append(CultureInfo.InvariantCulture, $"score_request_seconds_count {sum}\n");
        Gauge(text, "score_running", "Requests that the model runs for.", running);
        Gauge(text, "score_waiting", "Requests that wait for a worker.", waiting);
        Gauge(text, "process_resident_memory_bytes", "Resident memory.", Environment.WorkingSet);
        return text.ToString();
    }

    private static void Gauge(StringBuilder text, string name, string help, long value)
    {
        Head(text, name, "gauge", help);
        text.Append(CultureInfo.InvariantCulture, $"{name} {value}\n");
    }

    private static void Head(StringBuilder text, string name, string type, string help) =>
        text.Append(CultureInfo.InvariantCulture, $"# HELP {name} {help}\n# TYPE {name} {type}\n");

    private sealed class StrongBox
    {
        internal long Value;
    }
}

/// <summary>The bodies of answers.</summary>
internal static class Answers
{
    internal static void Write(IBufferWriter<byte> body, Answer answer)
    {
        Explanation explanation = answer.Explanation;
        using var json = new Utf8JsonWriter(body);
        json.WriteStartObject();
        json.WriteString("target", explanation.Target);
        json.WriteNumber("score", explanation.Value);
        json.WriteNumber("reference", explanation.Reference);
        json.WriteNumber("leftover", explanation.Leftover);
        json.WriteNumber("recovery_error", explanation.RecoveryError);
        json.WriteStartArray("contributions");
        foreach (Contribution contribution in explanation.Ranking)
        {
            json.WriteStartObject();
            json.WriteString("name", contribution.Name);
            json.WriteNumber("value", contribution.Value);
            json.WriteEndObject();
        }
        json.WriteEndArray();
        // Notes are for whoever reads the numbers or tells the reasons, which are for the person.
        IEnumerable<string> notes = answer.Warnings;
        if (answer.Reasons is not null)
        {
            Decision decision = answer.Reasons.Decisions[0];
            Write(json, decision);
            notes = decision.Notes.Concat(answer.Reasons.Warnings).Concat(answer.Warnings).Distinct();
        }
        json.WriteStartArray("notes");
        foreach (string note in notes)
        {
            json.WriteStringValue(note);
        }
        json.WriteEndArray();
        json.WriteEndObject();
    }

    private static void Write(Utf8JsonWriter json, Decision decision)
    {
        json.WriteString("outcome", decision.Outcome);
        json.WriteStartArray("reasons");
        foreach (Reason reason in decision.Reasons)
        {
            json.WriteStartObject();
            json.WriteString("code", reason.Code);
            json.WriteString("text", reason.Text);
            json.WriteNumber("contribution", reason.Contribution);
            json.WriteEndObject();
        }
        json.WriteEndArray();
    }

    internal static void WriteError(ArrayBufferWriter<byte> body, string message)
    {
        body.ResetWrittenCount();
        using var json = new Utf8JsonWriter(body);
        json.WriteStartObject();
        json.WriteString("error", message);
        json.WriteEndObject();
    }
}
