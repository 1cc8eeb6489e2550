using System.Globalization;

namespace Addend.Conformance;

/// <summary>The objects that a request describes.</summary>
internal static class Asked
{
    private static (string Name, DType? DType, Model Model)? s_last;

    /// <summary>Prepares what a request asks for, to be executed any number of times on any thread. Compositions go
    /// into the dictionary.</summary>
    internal static Func<Results> Prepare(
        string verb, Message request, Dictionary<string, Composition> compositions, Scope scope)
    {
        Context? context = ContextOf(request);
        if (verb == "call")
        {
            string op = request["op"];
            Argument[] arguments = Arguments(request, compositions);
            return () => Operators.Call(context, op, arguments);
        }
        Request asked = ModelRequest(request);
        Model model = ModelOf(request, asked, scope);
        if (verb == "run")
        {
            return () => model.Run(asked);
        }
        var cancelled = new CancellationToken(request.Has("cancel"));
        return () => model.Decompose(asked, context, cancelled);
    }

    internal static Attribution Attribute(Message request, Scope scope)
    {
        Request asked = ModelRequest(request) with
        {
            Targets = [.. request.Lines("targets").Select(target => (Target)target)],
            Memory = request.Has("memory_limit") ? long.Parse(request["memory_limit"], CultureInfo.InvariantCulture) : 0,
        };
        return ModelOf(request, asked, scope).Attribute(
            asked, ContextOf(request), new CancellationToken(request.Has("cancel")));
    }

    /// <summary>null: no context is passed.</summary>
    private static Context? ContextOf(Message request)
    {
        if (!request.Has("policy") && !request.Has("stop_after"))
        {
            return null;
        }
        var policy = new Policy();
        foreach (string[] choice in request.Fields("policy", 2))
        {
            policy = policy.With(choice[0], choice[1]);
        }
        IProgress<RunProgress>? progress = request.Integer("stop_after") is { } count ? new Stop(count) : null;
        return new Context(new ContextOptions { Policy = policy, Progress = progress });
    }

    /// <summary>The arguments of a call; its compositions go into a dictionary too.</summary>
    internal static Argument[] Arguments(Message request, Dictionary<string, Composition> compositions)
    {
        var lists = new Stack<(string Name, List<Argument> Elements)>([("", [])]);
        foreach (string[] entry in request.Fields("args", 3))
        {
            (string kind, string name) = (entry[0], entry[1]);
            if (kind == "list")
            {
                lists.Push((name, []));
                continue;
            }
            Argument value = Value(kind, entry[2]);
            lists.Peek().Elements.Add(name.Length == 0 ? value : Argument.Named(name, value));

            Argument Value(string kind, string text)
            {
                if (kind == "end")
                {
                    (name, List<Argument> elements) = lists.Pop();
                    return elements.ToArray();
                }
                return Single(kind, text, request, compositions);
            }
        }
        return [.. lists.Pop().Elements];
    }

    private static Argument Single(
        string kind, string text, Message request, Dictionary<string, Composition> compositions)
    {
        switch (kind)
        {
            case "composition":
                if (!compositions.TryGetValue(text, out Composition? composition))
                {
                    compositions[text] = composition = CompositionOf(text, request);
                }
                return composition;
            case "tensor":
                return request.Tensor(text);
            case "i64":
                return Message.Integers(text)[0];
            case "i64s":
                return Message.Integers(text);
            case "f64":
                return Message.Number(text);
            case "bool":
                return text == "1";
            case "str":
                return request[text];
            case "dtype":
                return Message.DTypeOf(text);
            case "none":
                return Argument.None;
            default:
                throw new ProtocolException($"there is no kind of argument {kind}");
        }
    }

    internal static Composition CompositionOf(string key, Message request)
    {
        Tensor? baseline = request.Find(key + ".baseline");
        return request[key + ".make"] switch
        {
            "tensors" => Composition.FromParts(
                request.Tensor(key + ".components"), request.Find(key + ".reference"), request.Find(key + ".leftover")),
            "diagonal" => Composition.Diagonal(
                request.Tensor(key + ".value"),
                Message.Integers(request[key + ".dims"]),
                baseline,
                request.Integer(key + ".offset") ?? 0,
                request.Integer(key + ".numc")),
            "labels" => Composition.FromLabels(
                request.Tensor(key + ".value"), request.Tensor(key + ".labels"), baseline, request.Integer(key + ".numc")),
            string other => throw new ProtocolException($"compositions are not made by {other}"),
        };
    }

    /// <summary>The model, or a program that is recorded of it, saved and loaded.</summary>
    private static Model ModelOf(Message request, Request asked, Scope scope)
    {
        Model model = ModelOf(request, scope);
        if (!request.Has("program"))
        {
            return model;
        }
        string folder = Directory.CreateTempSubdirectory("addend").FullName;
        try
        {
            model.Record(asked).Save(folder);
            return RecordedProgram.Load(folder).ToModel();
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    /// <summary>The model of the last request stays: the next one is often about the same.</summary>
    /// <param name="scope">Of the request; what is kept leaves it.</param>
    internal static Model ModelOf(Message request, Scope scope)
    {
        DType? dtype = request.Has("model_dtype") ? Message.DTypeOf(request["model_dtype"]) : null;
        if (!request.Has("model"))
        {
            return Model.Load(request.Bytes("model"), dtype);
        }
        if (s_last is not { } last || last.Name != request["model"] || last.DType != dtype)
        {
            Forget();
            s_last = last = (request["model"], dtype, scope.Keep(Model.Load(request["model"], dtype)));
        }
        return last.Model;
    }

    internal static void Forget()
    {
        s_last?.Model.Dispose();
        s_last = null;
    }

    internal static Request ModelRequest(Message request)
    {
        string[][] entries = request.Fields("inputs", 2);
        bool named = Array.Exists(entries, entry => entry[0].Length > 0);
        Request asked = named
            ? new Request(entries.ToDictionary(entry => entry[0], entry => InputOf(entry[1], request)))
            : new Request(Array.ConvertAll(entries, entry => InputOf(entry[1], request)));
        return asked with
        {
            Probes = request.Lines("probes"),
            Everything = request.Has("everything"),
            Direction = request.Has("direction")
                ? Enum.Parse<Direction>(request["direction"], ignoreCase: true)
                : Direction.Auto,
        };
    }

    private static Input InputOf(string key, Message request)
    {
        Baseline? baseline = request.Find(key + ".baseline") is { } tensor ? tensor : default(Baseline);
        if (request.Has(key + ".baseline_number"))
        {
            baseline = Message.Number(request[key + ".baseline_number"]);
        }
        return new Input(request.Tensor(key + ".value"))
        {
            Split = request[key + ".split"] switch
            {
                "plain" => Split.None,
                "dims" => Split.Along(Message.Integers(request[key + ".dims"])),
                "labels" => Split.Labels(request.Tensor(key + ".labels")),
                "parts" => Split.Parts(request.Tensor(key + ".parts")),
                string other => throw new ProtocolException($"inputs are not split by {other}"),
            },
            Baseline = baseline,
            FirstComponent = request.Integer(key + ".first"),
            Names = request.Lines(key + ".names"),
        };
    }

    /// <summary>Ends a run when it hears of its progress for the n-th time.</summary>
    private sealed class Stop(long count) : IProgress<RunProgress>
    {
        private long _left = count;

        public void Report(RunProgress value)
        {
            if (Interlocked.Decrement(ref _left) <= 0)
            {
                throw new OperationCanceledException("the run has gone far enough");
            }
        }
    }
}
