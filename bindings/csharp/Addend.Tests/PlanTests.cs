namespace Addend.Tests;

/// <summary>Plans: what an attribution without one gives, bit for bit, or a refusal that says why.</summary>
public sealed class PlanTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly Model _model = Samples.Conformance("awkward", DType.Float64);

    public void Dispose()
    {
        _model.Dispose();
        _scope.Dispose();
    }

    [Fact]
    public void Gives_the_same_bits()
    {
        using Plan plan = _model.Plan(Asked(Scaled(1)));
        foreach (double factor in new[] { 1, 0.5, 2 })
        {
            Attribution expected = _model.Attribute(Asked(Scaled(factor)));
            Attribution found = plan.Attribute(Asked(Scaled(factor)));
            Assert.Equal(Parts(expected), Parts(found));
            Assert.Equal(expected.Input().ToArray<double>(), found.Input().ToArray<double>());
            Assert.Equal(expected.Explain().Value, found.Explain().Value);
            Assert.Equal(Parts(expected), Parts(plan.Attribute(Tensor.From(Scaled(factor), 2, 6))));
        }
    }

    [Fact]
    public void Writes_into_the_callers_memory()
    {
        double[] row = Scaled(1);
        Tensor input = Tensor.Wrap(row, [2, 6]);
        Request request = Asked(input);
        using Plan plan = _model.Plan(request);
        double[] contributions = new double[6];
        double[] sums = new double[3];
        Tensor parts = Tensor.Wrap(contributions, [1, 6]);
        Tensor more = Tensor.Wrap(sums, [1, 3]);
        foreach (double factor in new[] { 1, 0.5 })
        {
            Scaled(factor).CopyTo(row, 0);
            plan.AttributeInto(request, parts, more);
            Explanation expected = _model.Attribute(Asked(Scaled(factor))).Explain();
            Assert.Equal(expected.Contributions.Select(one => one.Value), contributions);
            Assert.Equal([expected.Value, expected.Reference, expected.Leftover], sums);
        }
        Samples.Refuses(() =>
        {
            plan.AttributeInto(request, more);
            return null;
        });
    }

    [Fact]
    public void Refuses_other_sizes_branches_and_numbers()
    {
        using Plan plan = _model.Plan(Asked(Scaled(1)));
        Assert.Contains(
            "the plan is for",
            Samples.Refuses(() => plan.Attribute(Asked(Tensor.From(new double[18], [3, 6])))).Message,
            StringComparison.Ordinal);
        InvalidOperationException branch =
            Assert.Throws<InvalidOperationException>(() => plan.Attribute(Asked(Table("other_branch"))));
        Assert.Contains("does not hold for this input", branch.Message, StringComparison.Ordinal);
        Samples.Refuses(() => plan.Attribute(Asked(Scaled(double.NaN))));
    }

    [Fact]
    public void Threads_share_one()
    {
        using Plan plan = _model.Plan(Asked(Scaled(1)));
        double[] expected = Parts(_model.Attribute(Asked(Scaled(0.5))));
        Parallel.For(0, 40, _ =>
        {
            using Attribution found = plan.Attribute(Asked(Scaled(0.5)));
            Assert.Equal(expected, Parts(found));
        });
    }

    [Fact]
    public void What_log_throws_reaches_the_caller()
    {
        bool fails = false;
        var nested = new List<Exception?>();
        using var context = new Context(new ContextOptions
        {
            Progress = new Reporter(() =>
            {
                // A listener may ask the library for something itself, which does not throw what another listener threw.
                if (fails)
                {
                    nested.Add(Record.Exception(() => Operators.Call("aten::relu", Tensor.From(new[] { 1.0 })).Dispose()));
                }
            }),
            Log = (_, _) =>
            {
                if (fails)
                {
                    throw new IOException("disk full");
                }
            },
        });
        Tensor x = Tensor.From(new[] { 1.0, 2.0, 4.0 });
        var request = new Request(new Input(x) { Split = Split.Along(0), Baseline = 0.0 }) { Targets = ["0"] };
        using var scope = new AttributionScope(request, context);
        // LibTorch warns in each run of a mask of bytes. (For a single new value newer ones refuse it.)
        Tensor mask = Tensor.From(new byte[] { 0, 1, 1 });
        Tensor y = Operators.Call("aten::index_put", x, new[] { mask }, Tensor.From(new[] { 3.0, 5.0 })).Tensor();
        scope.AddOutput("y", y);
        using Plan plan = scope.EndPlan();
        double[] contributions = new double[3];
        fails = true;
        Assert.Equal("disk full", Assert.Throws<IOException>(() => plan.Attribute(request)).Message);
        Assert.Equal(
            "disk full",
            Assert.Throws<IOException>(() => plan.AttributeInto(request, Tensor.Wrap(contributions, [1, 3]))).Message);
        fails = false;
        Assert.NotEmpty(nested);
        Assert.All(nested, Assert.Null);
        // A run that a callback ended leaves nothing pending for the next one.
        plan.AttributeInto(request, Tensor.Wrap(contributions, [1, 3]));
        Assert.Equal([1, 0, 0], contributions);
    }

    private sealed class Reporter(Action report) : IProgress<RunProgress>
    {
        public void Report(RunProgress value) => report();
    }

    private static double[] Table(string name) => Samples.Conformance("awkward", name).To(DType.Float64).ToArray<double>();

    private static double[] Scaled(double factor) => [.. Table("same_branch").Select(x => x * factor)];

    private static Request Asked(double[] row) => Asked(Tensor.From(row, [2, 6]));

    private static Request Asked(Tensor row) =>
        new(new Input(row) { Split = Split.Along(1), Baseline = 0.25 }) { Targets = ["0,1"] };

    private static double[] Parts(Attribution attribution) =>
        [.. attribution.Explain().Contributions.Select(one => one.Value)];
}
