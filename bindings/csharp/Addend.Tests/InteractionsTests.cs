namespace Addend.Tests;

/// <summary>Interactions and several baselines, against attributions that are asked for one by one.</summary>
public sealed class InteractionsTests : IDisposable
{
    private const string Tens = """
        {"format": "addend.concepts", "version": 1, "concepts": [
        {"name": "Tens", "components": ["column 1*"]}, {"name": "Rest", "components": ["column 2*"]}]}
        """;

    private readonly Scope _scope = new();
    private readonly Model _model = Model.Load(Samples.TablePath, DType.Float64);

    public void Dispose()
    {
        _model.Dispose();
        _scope.Dispose();
    }

    [Fact]
    public void Rows_add_up_and_entries_are_differences()
    {
        double[] row = Row(0);
        Interactions found = _model.Interactions(Asked(row, 0.0), Concepts.Read(Tens));
        IReadOnlyList<Contribution> whole = Explained(row, 0.0).Contributions;
        double[] without = [.. row.Select((x, column) => column == 1 || (column >= 10 && column < 20) ? 0 : x)];
        IReadOnlyList<Contribution> other = Explained(without, 0.0).Contributions;
        double rest = 0;
        foreach (int column in Enumerable.Range(20, 10).Append(2))
        {
            rest += whole[column].Value - other[column].Value;
        }
        Assert.Equal("Tens", found.Names[0]);
        Assert.Equal(2 + 30 - 11 - 11, found.Names.Count);
        Samples.Close(rest, found.Matrix[1][0], 1e-9);
        for (int group = 0; group < found.Names.Count; group++)
        {
            Samples.Close(found.Contributions[group], found.Matrix[group].Sum(), 1e-12);
        }
        Assert.InRange(found.Asymmetry, 0, 1);
        Assert.StartsWith($"Tens {found.Contributions[0]:G4}, ", found.ToString(), StringComparison.Ordinal);
        Assert.Contains("\"format\":\"addend.interactions\"", found.ToJson(), StringComparison.Ordinal);
        Assert.Contains("addend.interactions", found.ToHtml(), StringComparison.Ordinal);
    }

    [Fact]
    public void Several_baselines_give_means()
    {
        Tensor both = Samples.Rows(1, 2).To(DType.Float64);
        Explanation mean = Explained(Row(0), Baseline.Several(both));
        Explanation one = Explained(Row(0), Samples.Rows(1, 1).To(DType.Float64));
        Explanation other = Explained(Row(0), Samples.Rows(2, 1).To(DType.Float64));
        Assert.Equal(2, mean.NumBaselines);
        Assert.Equal(1, one.NumBaselines);
        Assert.True(double.IsNaN(one.StandardErrors[0]));
        Samples.Close((one.Reference + other.Reference) / 2, mean.Reference, 1e-9);
        for (int column = 0; column < 30; column++)
        {
            double a = one.Contributions[column].Value;
            double b = other.Contributions[column].Value;
            Samples.Close((a + b) / 2, mean.Contributions[column].Value, 1e-9);
            Samples.Close(Math.Abs(a - b) / 2, mean.StandardErrors[column], 1e-9);
            if (a != 0 && b != 0)
            {
                Assert.Equal(a * b > 0 ? 1 : 0.5, mean.SameSign[column]);
            }
        }
        Assert.ThrowsAny<ArgumentException>(() => _model.Decompose(Asked(Row(0), Baseline.Several(both))));
    }

    [Fact]
    public void What_log_throws_reaches_the_caller()
    {
        using var context = new Context(new ContextOptions { Log = (_, _) => throw new IOException("disk full") });
        // Without a baseline there is a note, which the log is told.
        var asked = new Request(new Input(Tensor.From(Row(0), 1, 30)) { Split = Split.Along(1) }) { Targets = ["1"] };
        Assert.Equal("disk full", Assert.Throws<IOException>(() => _model.Interactions(asked, null, context)).Message);
        // A run that a callback ended leaves nothing pending for the next one.
        Assert.Equal(30, _model.Interactions(asked).Names.Count);
    }

    private static double[] Row(int number) => Samples.Rows(number, 1).To(DType.Float64).ToArray<double>();

    private static Request Asked(double[] row, Baseline baseline) =>
        new(new Input(Tensor.From(row, 1, 30)) { Split = Split.Along(1), Baseline = baseline }) { Targets = ["1"] };

    private Explanation Explained(double[] row, Baseline baseline) => _model.Attribute(Asked(row, baseline)).Explain(0);
}
