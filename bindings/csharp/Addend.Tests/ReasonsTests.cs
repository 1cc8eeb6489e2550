namespace Addend.Tests;

public sealed class ReasonsTests : IDisposable
{
    private const string Tens = """
        {"format": "addend.concepts", "version": 1, "at_most": 30, "concepts": [
        {"name": "Tens", "components": ["column 1*"], "text": "{concept} {contribution}"},
        {"name": "Rest", "components": ["column 2*", "column 3"]}]
        """;

    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Sums_concepts_in_order_of_size()
    {
        Attribution found = Rows(4);
        Reasons reasons = found.Reasons(Concepts.Read(Tens + "}"));
        Assert.Equal(4, reasons.Decisions.Count);
        for (int row = 0; row < 4; row++)
        {
            Decision decision = reasons.Decisions[row];
            IReadOnlyList<Contribution> columns = found.Explain(row).Contributions;
            double tens = columns[1].Value;
            double rest = columns[2].Value + columns[3].Value;
            for (int column = 10; column < 20; column++)
            {
                tens += columns[column].Value;
                rest += columns[column + 10].Value;
            }
            double before = double.NegativeInfinity;
            foreach (Reason reason in decision.Reasons)
            {
                Assert.True(reason.Contribution < 0 && reason.Contribution >= before, reason.Text);
                before = reason.Contribution;
                if (reason.Concept == "Tens")
                {
                    Samples.Close(tens, reason.Contribution, 1e-9);
                    Assert.StartsWith("Tens -", reason.Text, StringComparison.Ordinal);
                }
                else if (reason.Concept == "Rest")
                {
                    Samples.Close(rest, reason.Contribution, 1e-9);
                }
            }
            Assert.Equal(decision.Reasons.Count, decision.Passing);
            Assert.Equal("reasons", decision.Outcome);
            double given = decision.Reasons.Sum(reason => reason.Contribution);
            Samples.Close(
                decision.Value,
                decision.Reference + given + decision.Others + decision.Leftover - decision.RecoveryError,
                1e-9);
            Decision alone = found.Explain(row).Reasons(Concepts.Read(Tens + "}")).Decisions[0];
            Assert.Equal(decision.Reasons, alone.Reasons);
            Assert.Equal(decision.Value, alone.Value);
        }
    }

    [Fact]
    public void Fills_nothing_up_below_the_threshold()
    {
        Decision none = Rows(1).Reasons(Concepts.Read(Tens + ", \"threshold\": 1e6}")).Decisions[0];
        Assert.Equal("no_principal_reason", none.Outcome);
        Assert.Empty(none.Reasons);
        Assert.StartsWith("no principal reason", none.Notes[0], StringComparison.Ordinal);
    }

    [Fact]
    public void Reasons_are_data_and_a_page()
    {
        Reasons reasons = Rows(1).Reasons(Concepts.Read(Tens + "}"));
        Assert.Contains("\"format\":\"addend.reasons\"", reasons.ToJson(), StringComparison.Ordinal);
        Assert.Contains("addend.reasons", reasons.ToHtml(), StringComparison.Ordinal);
        string[] lines = reasons.ToString().Split('\n');
        Decision decision = reasons.Decisions[0];
        Assert.StartsWith(decision.Name + " = ", lines[0], StringComparison.Ordinal);
        Assert.All(
            decision.Reasons.Zip(lines.Skip(1)),
            pair => Assert.EndsWith("  " + pair.First.Text, pair.Second, StringComparison.Ordinal));
        Assert.Equal(1 + decision.Reasons.Count + reasons.Warnings.Count, lines.Length);
    }

    [Fact]
    public void Refuses_descriptions_at_reading()
    {
        foreach (string wrong in new[] { "{", Tens + ", \"text\": \"{vlaue}\"}", Tens + ", \"thresold\": 1}" })
        {
            Assert.Throws<ArgumentException>(() => Concepts.Read(wrong));
        }
        Concepts other = Concepts.Read(
            """{"format": "addend.concepts", "version": 1, "concepts": [{"name": "A", "components": ["a"]}]}""");
        ArgumentException thrown = Assert.Throws<ArgumentException>(() => Rows(1).Reasons(other));
        Assert.Contains("names the component a, which does not exist", thrown.Message, StringComparison.Ordinal);
    }

    private static Attribution Rows(int count)
    {
        Model model = Model.Load(Samples.TablePath, DType.Float64);
        Tensor rows = Samples.Rows(0, count).To(DType.Float64);
        return model.Attribute(
            new Request(new Input(rows) { Split = Split.Along(1), Baseline = 0.0 }) { EachExample = true, Targets = ["1"] });
    }
}
