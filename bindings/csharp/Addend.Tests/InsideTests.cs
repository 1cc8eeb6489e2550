namespace Addend.Tests;

/// <summary>Splits that start inside a model, beside what plain PyTorch has computed of its second half.</summary>
public sealed class InsideTests : IDisposable
{
    private const string Heads = "aten::contiguous";

    private readonly Scope _scope = new();
    private readonly Model _model = Samples.Conformance("heads", DType.Float64);
    private readonly Tensor _table = Given("table");
    private readonly Tensor _baseline = Given("baseline");

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Is_the_second_half_of_the_model()
    {
        Request asked = Asked(Inside with { Names = ["left"] });
        Results results = _model.Decompose(asked with { Probes = [Heads] });
        Composition output = results.Composition();
        Assert.Equal(2, output.Numc);
        Expect(Expected("output"), output.Value());
        Expect(Expected("reference"), output.Reference());
        Expect(Expected("components"), output.Components());
        Expect(new double[8], output.Leftover());
        Expect(Expected("heads"), results.Tensor(1));
        Assert.Equal(["left", "position 1"], results.Explain("0,1").Contributions.Select(one => one.Name));
        // Inputs by name; a plain run and a recording use only the arguments and ignore the split inside.
        var named = new Request(new Dictionary<string, Input> { ["table"] = _table }) { Inside = [Inside] };
        Expect(Expected("components"), _model.Decompose(named).Composition().Components());
        Expect(Expected("output"), _model.Run(named).Tensor());
        Expect(Expected("components"), _model.Record(named).ToModel().Decompose(named).Composition().Components());
    }

    [Fact]
    public void Is_attributed_element_by_element()
    {
        double[] elements = Expected("elements"); // [2, 4, 2, 3]
        Attribution rows = _model.Attribute(Asked(Inside) with { EachExample = true, Targets = ["1"] });
        Assert.Equal([4L, 2L, 3L], rows.Inside().Shape);
        Expect(elements[24..48], rows.Inside(Heads));
        Assert.Equal(ResultKind.None, rows.ToResults().Kind(1));
        Assert.Throws<ArgumentException>(() => rows.Input("table"));
        Assert.Throws<ArgumentOutOfRangeException>(() => rows.Inside(1));
        Assert.Throws<ArgumentOutOfRangeException>(() => rows.Input(1));
        Assert.Throws<ArgumentOutOfRangeException>(() => rows.Inside(-1));
        Assert.Throws<KeyNotFoundException>(() => rows.Inside("#0"));
        Attribution one = _model.Attribute(Asked(Inside) with { Targets = ["2,1"] });
        Assert.Equal([1L, 4L, 2L, 3L], one.Inside().Shape);
        double[] own = new double[24];
        Array.Copy(elements, 24 + 12, own, 12, 6);
        Expect(own, one.Inside());
        Samples.Close(Expected("components")[8 + 4 + 1], one.Explain().Contributions[1].Value, 1e-6);
    }

    [Fact]
    public void Splits_are_those_of_the_tensor_inside()
    {
        double[] elements = Expected("elements");
        var neurons = new Inside(Heads) { Split = Split.Along(-2, -1), Baseline = _baseline };
        double[] six = _model.Decompose(Asked(neurons)).Composition().Components().ToArray<double>();
        Tensor labels = Tensor.From(new long[] { 0, 1, 2, 3, 4, 5 }, 1, 2, 3);
        Inside labelled = neurons with { Split = Split.Labels(labels), FirstComponent = 1 };
        double[] seven = _model.Decompose(Asked(labelled)).Composition().Components().ToArray<double>();
        Assert.Equal(7 * 8, seven.Length);
        for (int k = 0; k < 6 * 8; k++)
        {
            Samples.Close(elements[((k % 2) * 24) + ((k / 2 % 4) * 6) + (k / 8)], six[k], 1e-6);
            Samples.Close(six[k], seven[8 + k], 1e-12);
        }
    }

    [Fact]
    public void Tells_what_does_not_fit()
    {
        Refused("nothing inside the model is called nowhere", Asked(Inside with { Selector = "nowhere" }));
        Refused("does not call aten::conv2d", Asked(Inside with { Selector = "aten::conv2d" }));
        Refused("split along dimensions or by labels", Asked(Inside with { Split = Split.None }));
        Refused("split along dimensions or by labels", Asked(Inside with { Split = Split.Parts(_table) }));
        Refused("of shape f64[4, 2, 3] has no dimension 3", Asked(Inside with { Split = Split.Along(3) }));
        Refused("a baseline of shape f64[4, 6]", Asked(Inside with { Baseline = _table }));
        Refused(
            "the arguments are plain",
            new Request(new Input(_table) { Split = Split.Along(1) }) { Inside = [Inside] });
        Refused("already", Asked(Inside, Inside));
        Request two = Asked(Inside, new Inside("aten::softmax") { Split = Split.Along(0) });
        Assert.Contains(
            "depends on another split", Assert.Throws<InvalidOperationException>(() => _model.Decompose(two)).Message);
        Assert.Contains(
            "is inside the model", Assert.Throws<ArgumentException>(() => _model.Shapley(Asked(Inside))).Message);
        Assert.Throws<ArgumentNullException>(() => _model.Decompose(Asked(new Inside(null!))));
        Assert.Throws<ArgumentNullException>(() => _model.Decompose(Asked([null!])));
    }

    private Inside Inside => new(Heads) { Split = Split.Along(1), Baseline = _baseline };

    private static double[] Expected(string name) => Samples.Conformance("heads", name).To(DType.Float64).ToArray<double>();

    private static Tensor Given(string name) => Samples.Conformance("heads", name).To(DType.Float64);

    private static void Expect(double[] expected, Tensor found)
    {
        double[] actual = found.ToArray<double>();
        Assert.Equal(expected.Length, actual.Length);
        for (int k = 0; k < expected.Length; k++)
        {
            Samples.Close(expected[k], actual[k], 1e-6);
        }
    }

    private Request Asked(params Inside[] inside) => new(_table) { Inside = inside };

    private void Refused(string message, Request request)
    {
        Request targeted = request with { Targets = ["0,0"] };
        Assert.Contains(message, Assert.Throws<ArgumentException>(() => _model.Decompose(targeted)).Message);
        Assert.Contains(message, Assert.Throws<ArgumentException>(() => _model.Attribute(targeted)).Message);
    }
}
