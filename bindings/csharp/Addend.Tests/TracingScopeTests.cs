namespace Addend.Tests;

public sealed class TracingScopeTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Decomposes_a_model_that_C_sharp_runs()
    {
        Tensor x = Tensor.From(new[] { 1.0, -2.0, 3.0 });
        Tensor weight = Tensor.From(new[] { 2.0, 2.0, 2.0 });
        var request = new Request(new Input(x) { Split = Split.Along(0), Baseline = 0.0 })
        {
            Parameters = new Dictionary<string, Tensor> { ["scale.weight"] = weight },
        };
        using var tracing = new TracingScope(request);
        tracing.SetModule("scale");
        Tensor doubled = Operators.Call("aten::mul", x, weight).Tensor();
        // A branch on what was computed.
        Tensor y = doubled.ToArray<double>()[0] > 0
            ? Operators.Call("aten::relu", doubled).Tensor()
            : doubled;
        tracing.AddOutput("y", y);
        Results results = tracing.End();
        Assert.Equal(["y"], results.Names);
        Composition composition = results.Composition("y");
        CompositionTests.Expect([2, 0, 0, 0, 0, 0, 0, 0, 6], composition.Components());
        CompositionTests.Expect([2, 0, 6], composition.Value());
        Assert.Contains("scale.weight", results.Report.Json);
    }

    [Fact]
    public void Modules_mean_what_they_returned()
    {
        Tensor x = Tensor.From(new[] { 1.0, -2.0, 3.0 });
        var request = new Request(new Input(x) { Split = Split.Along(0), Baseline = 0.0 })
        {
            Probes = ["pair:0", "pair"],
        };
        using var tracing = new TracingScope(request);
        Tensor doubled = Operators.Call("aten::mul", x, 2.0).Tensor();
        Tensor tripled = Operators.Call("aten::mul", x, 3.0).Tensor();
        tracing.AddModuleOutputs("pair", tripled, doubled);
        tracing.AddModuleOutputs("none");
        tracing.AddOutput("y", Operators.Call("aten::relu", doubled).Tensor());
        Results results = tracing.End();
        CompositionTests.Expect([3, -6, 9], results.Composition("pair:0").Value());
        // The other one is read.
        CompositionTests.Expect([2, -4, 6], results.Composition("pair").Value());
    }

    [Fact]
    public void Notes_tell_the_lines_and_the_reference_is_verified()
    {
        Tensor x = Tensor.From(new[] { 1.0, -2.0, 3.0 });
        using var tracing = new TracingScope(new Request(new Input(x) { Split = Split.Along(0), Baseline = 0.0 }));
        Tensor above = Operators.Call("aten::gt", x, 1.5).Tensor();
        Tensor product = Operators.Call("aten::mul", x, above).Tensor();
        Tensor y = Operators.Call("aten::add", product, 2.0).Tensor();
        tracing.AddOutput("y", y);
        Tensor baseline = tracing.Baseline(0);
        Assert.Equal(new[] { 0.0, 0.0, 0.0 }, baseline.ToArray<double>());
        tracing.AddOnBaseline("y", Operators.Call("aten::add", baseline, 3.0).Tensor());
        Report report = tracing.End().Report;
        Assert.Contains("TracingScopeTests.cs:", string.Join(" ", report.Notes));
        Assert.Equal("no", report.ReferenceIsModelOnBaseline);
        Samples.Close(1.0 / 3, report.ReferenceError, 1e-12);
    }

    [Fact]
    public void A_thread_has_one_at_a_time()
    {
        Tensor x = Tensor.From(new[] { 1.0 });
        var request = new Request(new Input(x) { Split = Split.Along(0) });
        using (new TracingScope(request))
        {
            Assert.Throws<InvalidOperationException>(() => new TracingScope(request));
        }
        using var next = new TracingScope(request);
    }

    [Fact]
    public void Outputs_have_to_be_what_was_computed()
    {
        Tensor x = Tensor.From(new[] { 1.0 });
        Tensor other = Tensor.From(new[] { 2.0 });
        using var tracing = new TracingScope(new Request(new Input(x) { Split = Split.Along(0) }));
        Assert.Throws<KeyNotFoundException>(() => tracing.AddOutput("y", other));
    }
}
