// Executes the requests of the conformance suite through the C# face; see PROTOCOL.md.
using System.Diagnostics;
using System.Globalization;
using System.Runtime.InteropServices;
using Addend;
using Addend.Conformance;

using Stream input = new BufferedStream(Console.OpenStandardInput());
using Stream output = new BufferedStream(Console.OpenStandardOutput());
Console.SetOut(Console.Error);
var testee = new Testee();
string verb = "";
while (verb != "bye" && Message.Read(input) is { } blob)
{
    verb = testee.Answer(blob, output);
}
return 0;

internal sealed class Testee
{
    private const long Kept = 2; // handles: the request and the answer
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(20);

    private string _device = "cpu";

    /// <summary>Answers one request, gives its verb, and disposes what was made for it.</summary>
    internal string Answer(byte[] blob, Stream output)
    {
        using var scope = new Scope();
        Message request = Message.Decode(blob, _device);
        var answer = new Message();
        try
        {
            Execute(request["verb"], request, answer, scope);
            answer.Put("code", "OK");
        }
        catch (Exception error)
        {
            answer = Failure(error);
        }
        answer.Put("id", request["id"]);
        answer.Write(output);
        return request["verb"];
    }

    private static Message Failure(Exception error)
    {
        var answer = new Message();
        answer.Put("code", CodeOf(error));
        answer.Put("message", error.Message.Replace("\0", "\\0", StringComparison.Ordinal));
        OperatorPosition? position = (error as AddendException ?? error.InnerException as AddendException)?.Position;
        (string Key, string? Value)[] payload = [("op", position?.Op), ("module_path", position?.ModulePath)];
        answer.Put("payload", string.Join('\n', payload.Where(p => p.Value is not null).Select(p => $"{p.Key}\t{p.Value}")));
        return answer;
    }

    private static string CodeOf(Exception error) => error switch
    {
        _ when error.Data[AddendException.CodeKey] is ErrorCode code => CodeNamed(code),
        ProtocolException => "PROTOCOL",
        OperationCanceledException => "CANCELLED",
        FileNotFoundException or DirectoryNotFoundException => "NOT_FOUND",
        _ => "INVALID_ARGUMENT",
    };

    private static string CodeNamed(ErrorCode code) => code switch
    {
        ErrorCode.InvalidArgument => "INVALID_ARGUMENT",
        ErrorCode.NotFound => "NOT_FOUND",
        ErrorCode.ResourceExhausted => "RESOURCE_EXHAUSTED",
        ErrorCode.FailedPrecondition => "FAILED_PRECONDITION",
        ErrorCode.OutOfRange => "OUT_OF_RANGE",
        _ => code.ToString().ToUpperInvariant(),
    };

    private void Execute(string verb, Message request, Message answer, Scope scope)
    {
        switch (verb)
        {
            case "hello":
                Hello(request, answer);
                break;
            case "call" or "run" or "decompose":
                var compositions = new Dictionary<string, Composition>();
                Results results = Asked.Prepare(verb, request, compositions, scope)();
                Put([results], request, answer);
                foreach ((string key, Composition composition) in compositions.Where(_ => request.Has("echo")))
                {
                    PutParts(composition, key, "components reference leftover", answer);
                }
                if (verb == "decompose")
                {
                    PutReport(results.Report, answer);
                    PutExplanations(results, request, answer);
                }
                break;
            case "attribute":
                Attribution attribution = Asked.Attribute(request, scope);
                for (int target = 0; target < attribution.Count; target++)
                {
                    PutExplanation(
                        attribution.Explain(target),
                        string.Create(CultureInfo.InvariantCulture, $"attribution.{target}"),
                        answer);
                }
                break;
            case "shapley":
                Composition shapley = request.Has("op")
                    ? Operators.Shapley(request["op"], Asked.Arguments(request, []))
                    : Asked.ModelOf(request, scope).Shapley(Asked.ModelRequest(request));
                answer.Put("results", "composition\t\t0");
                PutParts(shapley, "0", Parts(request), answer);
                break;
            case "threads":
                Func<Results> asked = Asked.Prepare(request["inner_verb"], request, [], scope);
                IEnumerable<Task<Results>> runs = Enumerable.Range(0, (int)(request.Integer("count") ?? 1)).Select(
                    _ => Task.Factory.StartNew(asked, default, TaskCreationOptions.LongRunning, TaskScheduler.Default));
                Put(Task.WhenAll(runs).GetAwaiter().GetResult(), request, answer);
                break;
            case "lifecycle":
                Lifecycle(request, answer);
                break;
            case "stats":
                Asked.Forget();
                answer.Put("live", (Live(Kept) - Kept).ToString(CultureInfo.InvariantCulture));
                break;
            case "memory":
                Memory(request, answer);
                break;
            case "read":
                TensorFile file = TensorFile.Load(request.Bytes("file"), "file");
                answer.Put("names", string.Join('\n', file.Names));
                foreach (string name in file.Names)
                {
                    answer.Put("file." + name, file[name]);
                }
                break;
            case "operators":
                answer.Put("operators", string.Join('\n', Operators.All.Select(op => $"{op.Name}\t{op.Kind}")));
                break;
            case "bye":
                break;
            default:
                throw new ProtocolException($"there is no verb {verb}");
        }
    }

    private void Hello(Message request, Message answer)
    {
        _device = request.Has("device") ? request["device"] : "cpu";
        if (request.Integer("threads") is { } threads)
        {
            AddendLibrary.SetThreads((int)threads);
        }
        Tensor.Scalar(0.0).To(device: _device); // fails where there is no such device
        answer.Put("suite", "1");
        answer.Put("language", "csharp");
        answer.Put("library_version", AddendLibrary.Version);
        answer.Put("abi_version", AddendLibrary.AbiVersion.ToString(CultureInfo.InvariantCulture));
        answer.Put("libtorch_version", AddendLibrary.LibTorchVersion);
        answer.Put("device", _device);
        answer.Put("devices", _device == "cpu" ? "cpu" : "cpu " + _device);
        answer.Put("dtypes", "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128");
        // Models compute on the CPU.
        answer.Put("features", (_device == "cpu" ? "models attribution directions distributions limits programs " : "")
            + "shapley explain threads lifecycle share stop read operators float16 bfloat16 complex");
        answer.Put("about", "runtime\t" + RuntimeInformation.FrameworkDescription);
    }

    private static void Put(Results[] runs, Message request, Message answer)
    {
        var entries = new List<string>();
        foreach (Results results in runs)
        {
            IReadOnlyList<string?> names = results.Names;
            for (int index = 0; index < results.Count; index++)
            {
                string key = entries.Count.ToString(CultureInfo.InvariantCulture);
                ResultKind kind = results.Kind(index);
                switch (kind)
                {
                    case ResultKind.Composition:
                        PutParts(results.Composition(index), key, Parts(request), answer);
                        break;
                    case ResultKind.Tensor:
                        answer.Put(key, results.Tensor(index));
                        break;
                    case ResultKind.Number:
                        key = Message.Text(results.Number(index));
                        break;
                    default:
                        key = "";
                        break;
                }
#pragma warning disable CA1308 // The words of the protocol are in lower case.
                entries.Add($"{kind.ToString().ToLowerInvariant()}\t{names[index]}\t{key}");
#pragma warning restore CA1308
            }
        }
        answer.Put("results", string.Join('\n', entries));
    }

    private static string Parts(Message request) =>
        request.Has("parts") ? request["parts"] : "components reference leftover value";

    private static void PutParts(Composition composition, string key, string parts, Message answer)
    {
        foreach (string part in parts.Split(' '))
        {
            answer.Put($"{key}.{part}", part switch
            {
                "components" => composition.Components(),
                "reference" => composition.Reference(),
                "leftover" => composition.Leftover(),
                "residual" => composition.Residual(),
                "recovery" => composition.Recovery(),
                "value" => composition.Value(),
                _ => throw new ProtocolException($"compositions have no {part}"),
            });
        }
    }

    private static void PutReport(Report report, Message answer)
    {
        (string Key, double Number)[] numbers =
        [
            ("operators", report.Operators),
            ("nodes", report.Nodes),
            ("worst_recovery_error", report.WorstRecoveryError),
            ("worst_bracket", report.WorstBracket),
            ("failures", report.Failures),
            ("absorbed", report.Absorbed),
            ("absorbed_failures", report.AbsorbedFailures),
            ("path_ruled", report.PathRuled),
            ("stand_in_references", report.StandInReferences),
            ("unattributed", report.Unattributed),
        ];
        answer.Put("report", string.Join('\n', numbers.Select(n => $"{n.Key}\t{Message.Text(n.Number)}")));
        answer.Put("notes", string.Join('\n', report.Notes));
    }

    private static void PutExplanations(Results results, Message request, Message answer)
    {
        int position = 0;
        foreach (string[] asked in request.Fields("explain", 2))
        {
            Explanation explanation = results.Explain(asked[1], asked[0].Length > 0 ? asked[0] : null);
            string key = string.Create(CultureInfo.InvariantCulture, $"explanation.{position++}");
            PutExplanation(explanation, key, answer);
        }
    }

    private static void PutExplanation(Explanation explanation, string key, Message answer)
    {
        answer.Put(key + ".target", explanation.Target);
        double[] numbers =
            [explanation.Value, explanation.Reference, explanation.Leftover, explanation.Recovery, explanation.RecoveryError];
        answer.Put(key + ".numbers", Tensor.From(numbers));
        answer.Put(key + ".contributions", Tensor.From(explanation.Contributions.Select(c => c.Value).ToArray()));
        answer.Put(key + ".ranked", Tensor.From(explanation.Ranking.Select(c => c.Component).ToArray()));
        answer.Put(key + ".names", string.Join('\n', explanation.Contributions.Select(c => c.Name)));
    }

    private static void Lifecycle(Message request, Message answer)
    {
        Asked.Forget();
        if (Live(Kept) != Kept)
        {
            throw new InvalidOperationException($"{Live(Kept) - Kept} handles of earlier requests are alive");
        }
        var objects = new Dictionary<string, Composition>();
        var open = new HashSet<string>();
        var codes = new List<string>();
        foreach (string line in request.Lines("steps"))
        {
            try
            {
                codes.Add(Step(line.Split('\t'), request, objects, open));
            }
            catch (Exception error)
            {
                codes.Add(CodeOf(error));
            }
        }
        answer.Put("codes", string.Join('\n', codes));
    }

    private static string Step(
        string[] step, Message request, Dictionary<string, Composition> objects, HashSet<string> open)
    {
        using var scope = new Scope();
        switch (step[0])
        {
            case "make":
                objects[step[1]] = scope.Keep(Asked.CompositionOf(step[1], request));
                open.Add(step[1]);
                break;
            case "call":
                objects[step[1]] = scope.Keep(Operators.Call(step[2], objects[step[3]]).Composition());
                open.Add(step[1]);
                break;
            case "read":
                objects[step[1]].Components();
                break;
            case "release":
                objects[step[1]].Dispose();
                open.Remove(step[1]);
                break;
            case "release_elsewhere":
                var thread = new Thread(objects[step[1]].Dispose);
                thread.Start();
                thread.Join();
                open.Remove(step[1]);
                break;
            case "live":
                return (Live(Kept + open.Count) - Kept).ToString(CultureInfo.InvariantCulture);
            default:
                throw new ProtocolException($"there is no step {step[0]}");
        }
        return "OK";
    }

    /// <summary>How many handles of the library are alive. Where they are more than expected, the garbage collector runs
    /// until they are not, or for as long as a leak takes to be believed.</summary>
    private static long Live(long expected)
    {
        for (var waited = Stopwatch.StartNew(); Live() > expected && waited.Elapsed < s_patience;)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(1);
        }
        return Live();
    }

    /// <summary>How many handles are alive. The face does not tell; the library that it has loaded does.</summary>
    private static unsafe long Live()
    {
        string folder = Environment.GetEnvironmentVariable("ADDEND_LIBRARY_PATH") ?? "";
        IntPtr library = NativeLibrary.Load(Path.Combine(folder, "libaddend.so.1"));
        const int AnyKind = 0;
        return ((delegate* unmanaged[Cdecl]<int, long>)NativeLibrary.GetExport(library, "addend_debug_live"))(AnyKind);
    }

    private static void Memory(Message request, Message answer)
    {
        switch (request.Tensor("data").DType)
        {
            case DType.Float64:
                Share<double>();
                break;
            case DType.Float32:
                Share<float>();
                break;
            case DType.Int64:
                Share<long>();
                break;
            case DType.Int32:
                Share<int>();
                break;
            case DType.Bool:
                Share<bool>();
                break;
            case DType other:
                throw new ProtocolException($"memory of {other} is not shared");
        }

        void Share<T>()
            where T : unmanaged
        {
            using Tensor data = request.Tensor("data");
            T[] array = data.ToArray<T>();
            Tensor shared = Tensor.Wrap(array, [.. data.Shape]);
            Tensor copied = Tensor.From(array, [.. data.Shape]);
            request.Tensor("after").CopyTo<T>(array);
            answer.Put("shared", Message.Shaped(shared, data.Shape));
            answer.Put("copied", Message.Shaped(copied, data.Shape));
        }
    }
}
