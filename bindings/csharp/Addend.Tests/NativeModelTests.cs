namespace Addend.Tests;

/// <summary>A model that runs in another native library over the same LibTorch is decomposed and attributed as it
/// runs.</summary>
public sealed class NativeModelTests : IDisposable
{
    private static readonly float[] Numbers = [0.5f, -1, 2, 0.25f];

    private readonly Scope _scope = new();
    private readonly NativeModel _model = new();
    private readonly NativeTensor _x = NativeTensor.Of(Numbers, 1, 4);

    public void Dispose()
    {
        _x.Dispose();
        _model.Dispose();
        _scope.Dispose();
    }

    [Fact]
    public void Native_models_are_decomposed_with_their_modules()
    {
        using var tracing = new TracingScope(Asked() with { Probes = ["encoder.1"] });
        Tensor y = Run(tracing.SetModule);
        tracing.AddOutput("y", y);
        Results results = tracing.End();

        Assert.Equal(["y", "encoder.1"], results.Names);
        Assert.Equal(y.ToArray<float>(), results.Composition("y").Value().ToArray<float>());
        Explanation explanation = results.Explain();
        Assert.Equal(4, explanation.Contributions.Count);
        Assert.All(explanation.Contributions, contribution => Assert.NotEqual(0, contribution.Value));
        Samples.Close(explanation.Value, explanation.Recovery, 1e-6);
        // The network bends, but what it does on the baseline it tells itself.
        using NativeTensor zeros = NativeTensor.Of(new float[4], 1, 4);
        using NativeTensor onBaseline = _model.Forward(zeros);
        float[] there = Tensor.FromLibTorch(onBaseline.Handle).ToArray<float>();
        Samples.Close(there, results.Composition("y").Reference().ToArray<float>(), 1e-6);

        foreach (string module in new[] { "encoder.0", "encoder.1", "norm", "head" })
        {
            Assert.Contains($"\"module_path\":\"{module}\"", results.Report.Json);
        }
        foreach (string name in new[] { "encoder.0.weight", "encoder.1.bias", "norm.running_mean", "head.weight" })
        {
            Assert.Contains(name, results.Report.Json);
        }
    }

    [Fact]
    public void Native_models_are_attributed_with_their_modules()
    {
        Explanation decomposed;
        using (var tracing = new TracingScope(Asked()))
        {
            tracing.AddOutput("y", Run(tracing.SetModule));
            decomposed = tracing.End().Explain("0,2");
        }
        using var scope = new AttributionScope(Asked() with { Targets = ["0,2", "0,2-0,1"], Operators = true });
        scope.AddOutput("y", Run(scope.SetModule));
        scope.AddNote("runs in a library of its own");
        Attribution attribution = scope.End();

        Assert.Equal(2, attribution.Count);
        Assert.Equal([2L, 1L, 4L], attribution.Input("x").Shape);
        float[] elements = attribution.Input("x").ToArray<float>();
        for (int element = 0; element < 4; element++)
        {
            Samples.Close(decomposed.Contributions[element].Value, elements[element], 1e-6);
        }
        Assert.Equal("[0, 2] minus [0, 1]", attribution.Explain(1).Target);
        Assert.Equal(
            ["encoder.0", "encoder.1", "head", "norm"],
            attribution.Operators.Select(one => one.Module).Where(path => path.Length > 0).Distinct().Order());
        Assert.Contains("runs in a library of its own", attribution.ToResults().Report.Notes);
    }

    [Fact]
    public void Splits_start_inside_native_models()
    {
        Request request = Named(new Dictionary<string, Input> { ["x"] = Tensor.FromLibTorch(_x.Handle) }) with
        {
            Inside = [new Inside("encoder.0") { Split = Split.Along(-1) }],
            Targets = ["0,2"],
        };
        using var scope = new AttributionScope(request);
        scope.AddOutput("y", Run(scope.SetModule));
        scope.RunAgain();
        scope.AddOutput("y", Run(scope.SetModule));
        Attribution attribution = scope.End();
        Assert.Equal([1L, 1L, 6L], attribution.Inside("encoder.0").Shape);
        Assert.Equal(6, attribution.Explain().Contributions.Count);

        using var forgotten = new TracingScope(request);
        forgotten.AddOutput("y", Run(forgotten.SetModule));
        Assert.Contains("has to run again", Assert.Throws<InvalidOperationException>(forgotten.End).Message);
    }

    [Fact]
    public void Native_models_become_programs_with_their_modules()
    {
        RecordedProgram program;
        using (var recording = new RecordingScope(Asked(), lines: false))
        {
            recording.AddOutput(Run(recording.SetModule));
            program = recording.End();
        }
        string code = program.Code();
        Assert.Contains("encoder.0", code);
        using NativeTensor other = NativeTensor.Of([1, 2, 3, 4], 1, 4);
        using NativeTensor expected = _model.Forward(other);
        Tensor replayed = program.Replay(Tensor.FromLibTorch(other.Handle)).Tensor();
        Assert.Equal(Tensor.FromLibTorch(expected.Handle).ToArray<float>(), replayed.ToArray<float>());
    }

    [Fact]
    public void What_a_hook_throws_reaches_the_caller() =>
        Assert.Equal("encoder.0", Assert.Throws<TimeoutException>(() => Run(path => throw new TimeoutException(path))).Message);

    [Fact]
    public void What_progress_throws_while_native_models_run_reaches_the_caller()
    {
        var reporter = new Reporter();
        using var context = new Context(new ContextOptions { Progress = reporter });
        using (var scope = new AttributionScope(Asked() with { Targets = ["0,2"] }, context))
        {
            reporter.Fails = true;
            // The native library has an exception of its own for the operator that was ended.
            Assert.Throws<InvalidOperationException>(() => Run(scope.SetModule));
            Assert.Equal("enough", Assert.Throws<TimeoutException>(scope.End).Message);
            reporter.Fails = false;
        }
        // A scope that is disposed without End leaves nothing pending for the next run.
        using (var forgotten = new TracingScope(Asked(), context))
        {
            reporter.Fails = true;
            Assert.Throws<InvalidOperationException>(() => Run(forgotten.SetModule));
        }
        Assert.Equal("[0, 8]", Samples.Digits().Decompose(Samples.Eight()).Explain().Target);
        using (var forgotten = new TracingScope(Asked()))
        {
            Run(forgotten.SetModule).Dispose();
        }
    }

    private sealed class Reporter : IProgress<RunProgress>
    {
        internal bool Fails { get; set; }

        public void Report(RunProgress value)
        {
            if (Fails)
            {
                throw new TimeoutException("enough");
            }
        }
    }

    [Fact]
    public void Tensors_go_to_native_libraries_and_come_back()
    {
        Tensor columns = Operators.Call("aten::t", Tensor.From(new float[,] { { 1, -2, 3 }, { 4, -5, 6 } })).Tensor();
        IntPtr given = columns.ToLibTorch();
        using NativeTensor rectified = NativeTensor.Made(NativeModel.Relu(given));
        Tensor.ReleaseLibTorch(given);
        Tensor back = Tensor.FromLibTorch(rectified.Handle);
        Assert.Equal([3L, 2L], back.Shape);
        Assert.Equal([1, 4, 0, 0, 3, 6], back.ToArray<float>());
        Tensor.ReleaseLibTorch(IntPtr.Zero);
        Assert.Throws<ArgumentException>(() => Tensor.FromLibTorch(IntPtr.Zero));
    }

    private Request Asked() => Named(new Dictionary<string, Input>
    {
        ["x"] = new Input(Tensor.FromLibTorch(_x.Handle)) { Split = Split.Along(-1), Baseline = 0.0 },
    });

    private Request Named(Dictionary<string, Input> inputs)
    {
        Dictionary<string, Tensor> Known(bool learned) => _model.Tensors().Where(tensor => tensor.Learned == learned)
            .ToDictionary(tensor => tensor.Name, tensor => Tensor.FromLibTorch(tensor.Tensor));
        return new Request(inputs) { Parameters = Known(learned: true), Buffers = Known(learned: false) };
    }

    private Tensor Run(Action<string> entered)
    {
        _model.Entered = entered;
        using NativeTensor made = _model.Forward(_x);
        _model.Entered = null;
        return Tensor.FromLibTorch(made.Handle);
    }
}
