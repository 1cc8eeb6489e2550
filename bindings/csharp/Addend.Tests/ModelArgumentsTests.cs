namespace Addend.Tests;

/// <summary>Nested arguments, plain values and other methods, against what plain PyTorch has computed; programs in other
/// forms.</summary>
public sealed class ModelArgumentsTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly Model _model = Samples.Conformance("structured");

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Models_take_nested_arguments()
    {
        Request asked = Request.OfArguments(Arguments());
        Expect("output", _model.Run(asked));
        RecordedProgram program = _model.Record(asked);
        Expect("output", program.Replay(asked));
        Expect("output", program.ToModel().Run(asked));
        Assert.True(_model.CheckTrace(asked with { Others = [Request.OfArguments(Arguments())] }).Ok);
        Assert.Empty(_model.Requirements(asked));
        object?[] others = Arguments();
        others[3] = double.PositiveInfinity;
        ArgumentException thrown = Assert.Throws<ArgumentException>(() => program.Replay(Request.OfArguments(others)));
        Assert.Contains("inf, not 0.5", thrown.Message);
    }

    [Fact]
    public void Arguments_are_named()
    {
        object?[] given = Arguments();
        var named = new Dictionary<string, object?>
        {
            ["bias"] = Given("bias"),
            ["scale"] = 0.5f,
            ["steps"] = given[2],
            ["masks"] = given[1],
            ["pair"] = given[0],
        };
        Expect("biased", _model.Run(Request.OfNamedArguments(named)));
        named["unknown"] = true;
        Assert.Throws<ArgumentException>(() => _model.Run(Request.OfNamedArguments(named)));
    }

    [Fact]
    public void Nested_inputs_are_decomposed()
    {
        object?[] given = Arguments();
        given[2] = new List<object>
        {
            (new Input(Given("step_0")) { Split = Split.Along(1) }, 2L),
            (Given("step_1"), -1),
        };
        Composition found = _model.Decompose(Request.OfArguments(given)).Composition();
        Assert.Equal(3, found.Numc);
        // A step goes straight to its own column, twice, and is halved.
        float[] step = Given("step_0").ToArray<float>();
        float[] components = found.Components().ToArray<float>();
        for (int k = 0; k < components.Length; k++)
        {
            Samples.Close(k / 6 == k % 3 ? step[k % 6] : 0, components[k], 1e-6);
        }
        Attribution attribution = _model.Attribute(Request.OfArguments(given) with { Targets = ["1,2"] });
        Samples.Close(step[5], attribution.Input("2.0.0").ToArray<float>()[5], 1e-5);
    }

    [Fact]
    public void Other_arguments_are_refused()
    {
        object[] nonsense = [new object(), new Dictionary<int, double> { [1] = 2 }, new[] { new object() }, 'c', ulong.MaxValue];
        foreach (object one in nonsense)
        {
            Assert.Throws<ArgumentException>(() => Request.OfArguments(one));
        }
        ArgumentException rank = Assert.Throws<ArgumentException>(() => Request.OfArguments(1.5, new int[,] { { 1, 2 }, { 3, 4 } }));
        Assert.Contains("1 is an array of 2 dimensions", rank.Message, StringComparison.Ordinal);
        Assert.Contains("Tensor.From(array)", rank.Message, StringComparison.Ordinal);
        Assert.Throws<ArgumentException>(() => Request.OfArguments(new Dictionary<string, object> { ["a"] = new float[1, 1, 1] }));
        var loop = new List<object?>();
        loop.Add(loop);
        Assert.Contains("too deeply", Assert.Throws<ArgumentException>(() => Request.OfArguments(loop)).Message);
        Assert.Throws<ArgumentNullException>(() => Request.OfArguments(null!));
        Assert.Throws<ArgumentException>(() => Request.OfArguments("no\0text"));
        Assert.Throws<ArgumentException>(() => _model.Run(Request.OfArguments(1.5, null)));
        Assert.Throws<ArgumentException>(() => _model.Run(Request.OfArguments(Given("table"), "\"}")));
        object deep = 1;
        for (int k = 0; k < 200; k++)
        {
            deep = ValueTuple.Create(deep);
        }
        ArgumentException thrown = Samples.Refuses(() => _model.Run(Request.OfArguments(Given("table"), deep)));
        Assert.Contains("too deeply", thrown.Message);
    }

    [Fact]
    public void Other_methods_than_forward()
    {
        Expect("encoded", _model.Methods("encode").Run(Given("table")));
        Model both = _model.Methods("encode", "decode");
        Assert.Equal(["encode.table", "decode.states"], both.InputNames);
        var asked = new Request(Given("table"), Given("step_0"));
        RecordedProgram program = both.Record(asked);
        Results replayed = program.Replay(asked);
        Expect("encoded", replayed);
        Expect("decoded", replayed, 1);
        Assert.Throws<KeyNotFoundException>(() => _model.Methods("missing"));
        Assert.Throws<NotSupportedException>(() => program.ToModel().Methods("encode"));
        Assert.Throws<ArgumentException>(() => _model.Methods("encode,decode"));
        Samples.Throws<KeyNotFoundException>(ErrorCode.NotFound, () => _model.Methods());
        Assert.Throws<ArgumentNullException>(() => _model.Methods(null!));
    }

    [Fact]
    public void Programs_run_in_another_dtype()
    {
        RecordedProgram program = _model.Methods("encode").Record(Given("table"));
        Tensor exact = Tensor.From(Given("table").ToArray<float>().Select(number => (double)number).ToArray(), 2, 4);
        // The oracle: LibTorch with parameters converted when the file was read.
        Model converted = Samples.Conformance("structured", DType.Float64).Methods("encode");
        Tensor replayed = program.To(DType.Float64).Replay(exact).Tensor();
        Assert.Equal(converted.Run(exact).Tensor().ToArray<double>(), replayed.ToArray<double>());
        Assert.Throws<ArgumentException>(() => program.To(DType.Float64).Replay(Given("table")));
        Assert.Throws<ArgumentException>(() => program.To(DType.Int64));
        Assert.Throws<ArgumentException>(() => program.To((DType)77));
    }

    [Fact]
    public void Programs_are_exported()
    {
        string folder = Directory.CreateTempSubdirectory("addend").FullName;
        try
        {
            string path = Path.Combine(folder, "é.pt");
            _model.Methods("encode").Record(Given("table")).ExportTorchScript(path);
            Expect("encoded", Model.Load(path).Run(Given("table")));
            RecordedProgram guarded = Samples.Conformance("awkward").Record(Samples.Conformance("awkward", "table"));
            InvalidOperationException thrown =
                Assert.Throws<InvalidOperationException>(() => guarded.ExportTorchScript(path));
            Assert.Equal("aten::item", Assert.IsType<AddendException>(thrown.InnerException).Position!.Op);
            Assert.Throws<ArgumentNullException>(() => guarded.ExportTorchScript(null!));
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    [Fact]
    public void Programs_are_replayed_out_of_place()
    {
        Model writing = Samples.Conformance("awkward");
        RecordedProgram program = writing.Record(Samples.Conformance("awkward", "table"));
        Tensor other = Samples.Conformance("awkward", "same_branch");
        Assert.Equal(
            writing.Run(other).Tensor().ToArray<float>(),
            program.Replay(other, new ReplayOptions { OutOfPlace = true }).Tensor().ToArray<float>());
        Assert.True(writing.CheckTrace(new Request(other), outOfPlace: true).Ok);
    }

    [Fact]
    public void What_is_missing_is_told_before_a_run()
    {
        Requirement few = _model.Requirements(new Request())[0];
        Assert.Equal(("input", true, ""), (few.Kind, few.Error, few.Position));
        Assert.Contains("takes at least 4 inputs", few.Message);
        RecordedProgram program = _model.Methods("encode").Record(Given("table"));
        Assert.Empty(program.Requirements(new Request(Given("table"))));
        Assert.Single(program.Requirements(new Request(Given("keep")), new Context(new Policy())));
        Assert.Throws<ArgumentNullException>(() => _model.Requirements(null!));
        Assert.Throws<ArgumentNullException>(() => program.Requirements(null!));
    }

    private static Tensor Given(string name) => Samples.Conformance("structured", name);

    private static object?[] Arguments() =>
    [
        (Given("table"), Given("memory")),
        new Dictionary<string, Tensor> { ["keep"] = Given("keep"), ["drop"] = Given("drop") },
        new[] { (Given("step_0"), 2), (Given("step_1"), -1) },
        0.5,
        null,
        "each",
    ];

    private static void Expect(string name, Results results, int index = 0)
    {
        float[] expected = Given(name).ToArray<float>();
        float[] found = results.Tensor(index).ToArray<float>();
        Assert.Equal(expected.Length, found.Length);
        for (int k = 0; k < expected.Length; k++)
        {
            Samples.Close(expected[k], found[k], 1e-6);
        }
    }
}
