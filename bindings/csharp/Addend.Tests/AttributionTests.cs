using System.Text.Json;

namespace Addend.Tests;

public sealed class AttributionTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Finds_backward_what_decomposing_finds_forward()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Attribution found = model.Attribute(new Request(eight) { Targets = ["8", Target.At(0, 8).Minus(Target.At(0, 3))] });
        Results decomposed = model.Decompose(eight);
        Assert.Equal(2, found.Count);
        Assert.Equal([2L, 1L, 1L, 8L, 8L], found.Input().Shape);
        float[] elements = found.Input("image").ToArray<float>();
        for (int k = 0; k < 2; k++)
        {
            Explanation expected = decomposed.Explain(k == 0 ? "8" : "8-3");
            Explanation explanation = found.Explain(k);
            Assert.Equal(expected.Target, explanation.Target);
            Samples.Close(expected.Value, explanation.Value, 1e-5);
            for (int pixel = 0; pixel < 64; pixel++)
            {
                Contribution contribution = expected.Contributions[pixel];
                Assert.Equal(contribution.Name, explanation.Contributions[pixel].Name);
                Samples.Close(contribution.Value, explanation.Contributions[pixel].Value, 1e-5);
                Samples.Close(contribution.Value, elements[(k * 64) + pixel], 1e-5);
            }
        }
        Assert.Equal("[0, 8] minus [0, 3]", found.Explain(1).Target);
        Assert.Equal(model.Run(eight).Tensor().ToArray<float>(), found.Value().ToArray<float>());
        Assert.Equal("[0, 8]", model.Attribute(eight).Explain().Target);
    }

    [Fact]
    public void Explains_what_a_softmax_says()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Target[] targets =
            [Target.LogProbability(8), Target.Probability(), Target.Entropy(), Target.Sum(Target.At(3), Target.Entropy())];
        Attribution found = model.Attribute(new Request(eight) { Targets = [.. targets] });
        Results decomposed = model.Decompose(eight);
        double[] logits = found.Value().ToArray<float>().Select(x => (double)x).ToArray();
        double total = Math.Log(logits.Sum(Math.Exp));
        double entropy = -logits.Sum(x => Math.Exp(x - total) * (x - total));
        double[] values = [logits[8] - total, Math.Exp(logits[8] - total), entropy, logits[3] + entropy];
        for (int k = 0; k < values.Length; k++)
        {
            Explanation expected = decomposed.Explain(targets[k]);
            Samples.Close(values[k], found.Explain(k).Value, 1e-5);
            Samples.Close(found.Explain(k).Value, found.Explain(k).Recovery, 1e-4);
            Assert.Equal(expected.Target, found.Explain(k).Target);
            for (int pixel = 0; pixel < 64; pixel++)
            {
                Samples.Close(expected.Contributions[pixel].Value, found.Explain(k).Contributions[pixel].Value, 1e-5);
            }
        }
        Assert.Equal("log-probability of [0, 8]", found.Explain(0).Target);
        Assert.Equal("log_probability:0,8", Target.LogProbability(0, 8).ToString());
        Assert.Equal("probability:top1", Target.Probability().ToString());
        Assert.Equal("entropy:5", Target.Entropy(5).ToString());
        Assert.Equal("continuation:12,55,7", Target.Continuation(12, 55, 7).ToString());
        Assert.Equal("sum:3+entropy", targets[3].ToString());
    }

    [Fact]
    public void Gives_each_example_a_target_of_its_own()
    {
        Model model = Model.Load(Samples.TablePath, DType.Float64);
        Tensor rows = Samples.Rows(0, 4).To(DType.Float64);
        string[] targets = ["0", "1", "1", "0"];
        var asked = new Request(new Input(rows) { Split = Split.Along(1), Baseline = 2.0 }) { EachExample = true };
        Attribution found = model.Attribute(asked with { Targets = [.. targets.Select(target => (Target)target)] });
        Assert.Equal(4, found.Count);
        Assert.Equal([4L, 30L], found.Input().Shape);
        double[] elements = found.Input().ToArray<double>();
        for (int row = 0; row < 4; row++)
        {
            var alone = new Input(Samples.Rows(row, 1).To(DType.Float64)) { Split = Split.Along(1), Baseline = 2.0 };
            Explanation expected = model.Decompose(alone).Explain("0," + targets[row]);
            double[] own = elements[(row * 30)..((row + 1) * 30)];
            for (int column = 0; column < 30; column++)
            {
                Samples.Close(expected.Contributions[column].Value, own[column], 1e-9);
            }
            Samples.Close(expected.Value - expected.Reference, own.Sum() + found.Explain(row).Leftover, 1e-9);
        }
        Attribution every = model.Attribute(asked with { Targets = ["0", "1"], EveryTarget = true });
        Assert.Equal(8, every.Count);
        Assert.Equal([2L, 4L, 30L], every.Input().Shape);
        double[] all = every.Input().ToArray<double>();
        for (int element = 0; element < 120; element++)
        {
            int target = int.Parse(targets[element / 30], System.Globalization.CultureInfo.InvariantCulture);
            Samples.Close(elements[element], all[(target * 120) + element], 1e-12);
        }
        double[] one = model.Attribute(asked with { Targets = ["1"] }).Input().ToArray<double>();
        for (int element = 30; element < 90; element++)
        {
            Samples.Close(elements[element], one[element], 1e-12);
        }
        Assert.Throws<ArgumentException>(() => model.Attribute(asked with { Targets = ["0", "1"] }));
    }

    [Fact]
    public void Explains_inner_tensors_and_operators()
    {
        Model model = Samples.Table();
        Input row = Samples.Row(groups: 30);
        var asked = new Request(row) { At = "aten::relu:0", Targets = ["0,3"], Operators = true };
        Attribution inner = model.Attribute(asked);
        Explanation expected = model.Decompose(new Request(row) { Probes = ["aten::relu:0"] }).Explain("0,3", "aten::relu:0");
        Assert.Equal(expected.Contributions.Count, inner.Explain().Contributions.Count);
        foreach ((Contribution a, Contribution b) in expected.Contributions.Zip(inner.Explain().Contributions))
        {
            Samples.Close(a.Value, b.Value, 1e-4);
        }
        Assert.Equal("aten::relu:0", inner.ToResults().Names[0]);
        AttributedOperator first = inner.Operators[0];
        Assert.Equal(("aten::sub", 0, ""), (first.Op, first.Output, first.Module));
        Assert.StartsWith("sub.Tensor(f32[1, 30]", first.Call);
        // In a chain all of it passes through every operator.
        Samples.Close(
            expected.Value - expected.Reference, Assert.Single(first.Passed), 1e-4);
        Assert.Single(first.Leftover);
        Assert.Contains(inner.Operators, linear => linear is { Op: "aten::linear", Module: "layers.0" });
        Assert.Empty(model.Attribute(row).Operators);
    }

    [Fact]
    public void Has_a_tensor_for_each_input()
    {
        Model model = Samples.Conformance("oracle_two_inputs", DType.Float64);
        Tensor a = Tensor.From(new double[,] { { 1, 2, 3 } });
        Tensor b = Tensor.From(new double[,] { { 0.5, 4, 7 } });
        var inputs = new Dictionary<string, Input>
        {
            ["b"] = new Input(b) { Split = Split.Along(1) },
            ["a"] = new Input(a) { Split = Split.Along(1) },
        };
        Attribution both = model.Attribute(new Request(inputs) { Targets = ["0,0"] });
        // relu(3 a0 + a1) + relu(2 b0 + 3 b1), all of it positive.
        Assert.Equal([1L, 1L, 3L], both.Input("a").Shape);
        // Components of a come first, as a does among the arguments.
        Assert.Equal([3, 2, 0, 1, 12, 0], both.Explain().Contributions.Select(one => one.Value));
        CompositionTests.Expect([3, 2, 0], both.Input("a"));
        CompositionTests.Expect([1, 12, 0], both.Input(1));
        Samples.Close(18, both.Explain().Value, 1e-12);
        // Plain inputs get no attribution.
        Attribution left = model.Attribute(new Request(inputs["a"], b));
        Assert.Equal(ResultKind.None, left.ToResults().Kind(2));
        Assert.Throws<ArgumentException>(() => left.Input("b"));
        Assert.Throws<ArgumentOutOfRangeException>(() => left.Input(2));
        Assert.Throws<ArgumentOutOfRangeException>(() => left.Input(-1));
        Assert.Throws<KeyNotFoundException>(() => left.Input("c"));
    }

    [Fact]
    public void Is_data_and_a_page()
    {
        Attribution found = Samples.Digits().Attribute(Samples.Eight(), "8");
        Assert.Contains("</html>", found.ToHtml());
        using JsonDocument json = JsonDocument.Parse(found.ToJson());
        Assert.Single(json.RootElement.GetProperty("targets").EnumerateArray());
        Report report = found.ToResults().Report;
        Assert.True(report.Operators > 5);
        Assert.Contains(report.Notes, note => note.Contains("preset auto", StringComparison.Ordinal));
    }

    [Fact]
    public void Says_what_a_reader_has_to_know()
    {
        Tensor a = Tensor.From(new double[,] { { 1, 2, double.NaN } });
        Tensor b = Tensor.From(new double[,] { { 0.5, 4, 7 } });
        Attribution found = Samples.Conformance("oracle_two_inputs", DType.Float64).Attribute(
            new Request(new Input(a) { Split = Split.Along(1), Baseline = 0.0 }, b) { Targets = ["0,0"] });
        Assert.Equal(found.ToResults().Notes, found.Notes);
        Assert.Contains(found.Notes, note => note.StartsWith("preset auto", StringComparison.Ordinal));
        // The preset is a remark.
        Assert.DoesNotContain(found.Warnings, note => note.StartsWith("preset auto", StringComparison.Ordinal));
        Assert.Contains(found.Warnings, note => note.Contains("holds NaN", StringComparison.Ordinal));
        Assert.Equal(found.ToResults().Report.Warnings, found.Warnings);
        Assert.StartsWith(found.Explain().ToString(), found.ToString(), StringComparison.Ordinal);
        Assert.Contains("Warning: " + found.Warnings[0], found.ToString(), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("")]
    [InlineData("99")]
    [InlineData("0,0,0")]
    [InlineData("8-")]
    [InlineData("nonsense")]
    [InlineData("中")]
    public void Refuses_what_is_no_target(string target) =>
        Assert.Throws<ArgumentException>(() => Samples.Digits().Attribute(Samples.Eight(), target));

    [Fact]
    public void Refuses_what_it_cannot_explain()
    {
        Model model = Samples.Digits();
        var asked = new Request(Samples.Eight());
        Samples.Refuses(() => model.Attribute(asked with { At = "no.such.module" }));
        Assert.Throws<ArgumentException>(() => model.Attribute(asked with { At = "a\0b" }));
        Samples.Refuses(() => model.Attribute(asked with { EachExample = true, Targets = ["0,8"] }));
        Assert.Throws<ArgumentNullException>(() => model.Attribute((Request)null!));
        using var together = new Context(new Policy { Bias = "abs" });
        Assert.Throws<InvalidOperationException>(() => model.Attribute(asked, together));
        Attribution found = model.Attribute(asked);
        Assert.Throws<ArgumentOutOfRangeException>(() => found.Explain(1));
        Assert.Throws<ArgumentOutOfRangeException>(() => found.Explain(-1));
        found.Dispose();
        Assert.Throws<ObjectDisposedException>(() => found.Count);
        Assert.Throws<ObjectDisposedException>(() => found.Input());
        Assert.Throws<ObjectDisposedException>(found.ToJson);
    }

    [Fact]
    public void Progress_ends_the_run()
    {
        Model model = Samples.Digits();
        using var context = new Context(new ContextOptions { Progress = new Enough() });
        Assert.Throws<NotFiniteNumberException>(() => model.Attribute(Samples.Eight(), context: context));
        using var cancelling = new CancellationTokenSource();
        using var cancels = new Context(new ContextOptions { Progress = new Cancels(cancelling) });
        OperationCanceledException thrown = Assert.Throws<OperationCanceledException>(
            () => model.Attribute(Samples.Eight(), "8", cancels, cancelling.Token));
        Assert.Equal(cancelling.Token, thrown.CancellationToken);
    }

    [Fact]
    public void A_time_ends_a_run()
    {
        Model model = Samples.Digits();
        Request Within(TimeSpan time) => new(Samples.Eight()) { Targets = ["8"], Timeout = time };
        Assert.NotNull(model.Attribute(Within(TimeSpan.FromHours(1))));
        var thrown = Assert.Throws<OperationCanceledException>(() => model.Attribute(Within(TimeSpan.FromTicks(1))));
        Assert.Contains("longer than its timeout", thrown.Message, StringComparison.Ordinal);
    }

    private sealed class Enough : IProgress<RunProgress>
    {
        public void Report(RunProgress value)
        {
            if (value.Stage == "sweep")
            {
                throw new NotFiniteNumberException("enough");
            }
        }
    }

    private sealed class Cancels(CancellationTokenSource source) : IProgress<RunProgress>
    {
        public void Report(RunProgress value) => source.Cancel();
    }
}
