using System.Reflection;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Text.Json;
using System.Xml.Linq;

namespace Addend.Tests;

public sealed class ModelTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Components_sum_to_what_the_baseline_changes()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        float[] plain = model.Run(eight).Tensor().ToArray<float>();
        float[] nothing = model.Run(new Input(Tensor.From(new float[64], 1, 1, 8, 8))).Tensor().ToArray<float>();

        Results results = model.Decompose(eight);
        Composition logits = results.Composition("output");
        Assert.Equal(64, logits.Numc);
        Assert.Equal([1L, 10L], logits.Shape);
        Assert.Equal(plain, logits.Value().ToArray<float>());
        Assert.Equal(nothing, logits.Reference().ToArray<float>());
        float[] components = logits.Components().ToArray<float>();
        float[] leftover = logits.Leftover().ToArray<float>();
        for (int k = 0; k < 10; k++)
        {
            double sum = Enumerable.Range(0, 64).Sum(pixel => (double)components[(pixel * 10) + k]);
            Samples.Close(plain[k] - nothing[k], sum + leftover[k], 1e-4);
            Samples.Close(0, leftover[k], 1e-4);
        }
    }

    [Fact]
    public void Explains_its_largest_output()
    {
        Results results = Samples.Digits().Decompose(Samples.Eight());
        Explanation explanation = results.Explain();
        Assert.Equal("[0, 8]", explanation.Target);
        Assert.Equal(64, explanation.Contributions.Count);
        Assert.Equal(
            explanation.Contributions.OrderByDescending(c => Math.Abs(c.Value)).Take(3).Select(c => c.Component),
            explanation.Top(3).Select(c => c.Component));
        double contributed = explanation.Contributions.Sum(c => c.Value);
        Samples.Close(explanation.Recovery, contributed + explanation.Reference + explanation.Leftover, 1e-5);
        Samples.Close(explanation.RecoveryError, explanation.Recovery - explanation.Value, 1e-12);
        Samples.Close(0, explanation.RecoveryError, 1e-4);
        Assert.Equal(explanation.Contributions, results.Explain("8", "output").Contributions);
        Assert.Throws<KeyNotFoundException>(() => results.Explain("top1", "no such output"));
    }

    [Fact]
    public void Results_are_told_in_lines()
    {
        Results results = Samples.Digits().Decompose(Samples.Eight());
        Assert.Equal("output: 64 components of [1, 10]", results.ToString().Split('\n')[0]);
        Assert.Equal("output: [1, 10]", Samples.Digits().Run(Samples.Eight()).ToString());
        Assert.StartsWith($"{results.Report.Operators} operators, worst recovery error ", results.Report.ToString());
        Explanation explanation = results.Explain();
        Assert.Matches(@"^\[0, 8\]: value \S+ = reference \S+ \+ 64 contributions \S+ \+ leftover \S+$", explanation.ToString());
        Assert.Matches(@"^row 7, column 3: \S+$", explanation.Ranking[0].ToString());
        // No type of a result is told by the name of its type, or as a list of its members.
        foreach (Type type in new[]
        {
            typeof(AttributedOperator), typeof(Attribution), typeof(AuditReport), typeof(Composition), typeof(Contribution),
            typeof(Decision), typeof(Explanation), typeof(Finding), typeof(Interactions), typeof(OperatorInfo),
            typeof(ProgramOutput), typeof(Reason), typeof(Reasons), typeof(Report), typeof(Requirement), typeof(Results),
            typeof(Tensor), typeof(TraceCheck),
        })
        {
            MethodInfo told = type.GetMethod("ToString", Type.EmptyTypes)!;
            Assert.Equal(type, told.DeclaringType);
            Assert.Null(told.GetCustomAttribute<CompilerGeneratedAttribute>());
        }
    }

    [Fact]
    public void Takes_baselines_by_a_word_and_verifies_references()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        double mean = eight.Value.ToArray<float>().Average(pixel => (double)pixel);
        Input byWord = new(eight.Value) { Split = Split.Along(2, 3), Baseline = "mean" };
        Input byNumber = new(eight.Value) { Split = Split.Along(2, 3), Baseline = mean };
        Results words = model.Decompose(new Request(byWord) { VerifyReference = true });
        Results numbers = model.Decompose(new Request(byNumber));
        float[] expected = numbers.Composition("output").Reference().ToArray<float>();
        Samples.Close(expected, words.Composition("output").Reference().ToArray<float>(), 1e-4);
        Assert.True(words.Report.ReferenceError < 1e-5);
        Assert.True(double.IsNaN(numbers.Report.ReferenceError));
        Assert.Equal("yes", words.Report.ReferenceIsModelOnBaseline);
        Assert.Equal(string.Empty, words.Report.ReferenceReason);
        Assert.True(words.Report.Conditioning >= 1);
        Assert.True(words.Report.LeftoverShare < 0.01);
        Input grey = new(eight.Value) { Split = Split.Along(2, 3), Baseline = "grey" };
        ArgumentException error = Samples.Refuses(() => model.Decompose(new Request(grey)));
        Assert.Contains("there is no such word", error.Message);
    }

    [Fact]
    public void The_digest_of_a_file_is_that_of_its_bytes()
    {
        string expected = Convert.ToHexString(SHA256.HashData(File.ReadAllBytes(Samples.DigitsPath)));
        Assert.Equal(expected, Model.Sha256(Samples.DigitsPath), ignoreCase: true);
        Assert.Throws<FileNotFoundException>(() => Model.Sha256("/nowhere"));
        Assert.Throws<ArgumentNullException>(() => Model.Sha256(null!));
    }

    [Fact]
    public void Keeps_references_and_stays_within_memory()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Composition expected = model.Decompose(eight).Composition("output");
        for (int run = 0; run < 3; run++)
        {
            Composition kept = model.Decompose(new Request(eight) { KeepReferences = true }).Composition("output");
            Assert.Equal(expected.Reference().ToArray<float>(), kept.Reference().ToArray<float>());
            Assert.Equal(expected.Components().ToArray<float>(), kept.Components().ToArray<float>());
        }
        model.ForgetReferences();
        Composition groups = model.Decompose(new Request(eight) { Memory = 1 << 20 }).Composition("output");
        Samples.Close(expected.Components().ToArray<float>(), groups.Components().ToArray<float>(), 1e-4);
        ArgumentException error = Samples.Refuses(() => model.Decompose(new Request(eight) { Memory = 100 }));
        Assert.Contains("allow more memory", error.Message);
        Samples.Refuses(() => model.Decompose(new Request(eight) { Memory = -1 }));
    }

    [Fact]
    public void Both_directions_give_the_same()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Results forward = model.Decompose(new Request(eight) { Direction = Direction.Forward });
        Assert.False(forward.Report.Backward);
        foreach (Direction direction in Enum.GetValues<Direction>())
        {
            Results found = model.Decompose(new Request(eight) { Direction = direction });
            Assert.True(direction != Direction.Backward || found.Report.Backward);
            float[] expected = forward.Composition("output").Components().ToArray<float>();
            Samples.Close(expected, found.Composition("output").Components().ToArray<float>(), 1e-4);
        }
        Samples.Refuses(() => model.Decompose(new Request(eight) { Direction = (Direction)7 }));
    }

    [Fact]
    public void Explanations_are_JSON_and_pages_too()
    {
        Results results = Samples.Digits().Decompose(Samples.Eight());
        using JsonDocument json = JsonDocument.Parse(results.Explain().ToJson());
        Assert.Equal(JsonValueKind.Object, json.RootElement.ValueKind);
        Assert.Contains("</html>", results.Explain("8").ToHtml());
        Assert.Equal("svg", XDocument.Parse(results.Explain("8").ToSvg()).Root!.Name.LocalName);
        Assert.Throws<InvalidOperationException>(() => new Explanation("[8]", [], [], 0, 0, 0, 0, 0, 1, 0).ToHtml());
        Assert.Throws<InvalidOperationException>(() => new Explanation("[8]", [], [], 0, 0, 0, 0, 0, 1, 0).ToSvg());
    }

    [Fact]
    public void Inputs_go_by_name()
    {
        Model model = Samples.Digits();
        string name = Assert.Single(model.InputNames);
        Input eight = Samples.Eight() with { Names = ["corner", "näxt"] };
        var inputs = new Dictionary<string, Input> { [name] = eight };
        Explanation explanation = model.Decompose(inputs).Explain();
        Assert.Equal(["corner", "näxt"], explanation.Contributions.Take(2).Select(c => c.Name));

        var wrong = new Dictionary<string, Input> { ["no such input"] = eight };
        ArgumentException error = Samples.Refuses(() => model.Decompose(wrong));
        Assert.Contains("no such input", error.Message);
        Assert.Throws<ArgumentNullException>(() => new Request(new Dictionary<string, Input> { [name] = null! }));
    }

    [Fact]
    public void Probes_are_found_by_name()
    {
        Results results = Samples.Digits().Decompose(new Request(Samples.Eight()) { Probes = ["aten::relu:0"] });
        Assert.Equal(["output", "aten::relu:0"], results.Names);
        Composition inner = results.Composition("aten::relu:0");
        Assert.Equal(64, inner.Numc);
        Assert.All(inner.Value().ToArray<float>(), value => Assert.True(value >= 0));
        Assert.Throws<KeyNotFoundException>(() => results.Composition("aten::gelu"));
    }

    [Fact]
    public void Reports_count_and_measure()
    {
        Results results = Samples.Digits().Decompose(new Request(Samples.Eight()) { Everything = true });
        Report report = results.Report;
        Assert.True(report.Operators >= 10);
        Assert.True(report.Nodes > 0);
        Assert.Equal(0, report.Failures);
        Assert.InRange(report.WorstRecoveryError, 0, 1e-3);
        Assert.True(report.Sweep > TimeSpan.Zero);
        using JsonDocument json = JsonDocument.Parse(report.Json);
        Assert.Equal(JsonValueKind.Object, json.RootElement.ValueKind);
    }

    [Fact]
    public void Results_say_what_is_not_there()
    {
        Results results = Samples.Digits().Decompose(Samples.Eight());
        Assert.Equal(1, results.Count);
        Assert.Equal(ErrorCode.OutOfRange, Samples.CodeOf(Assert.Throws<ArgumentOutOfRangeException>(() => results.Composition(1))));
        Assert.Throws<ArgumentOutOfRangeException>(() => results.Tensor(-1));
        Samples.Refuses(() => results.Number());
        Assert.Equal(ResultKind.None, results.Kind(7));
    }

    [Fact]
    public void A_tracing_failure_names_the_operator_and_where_the_model_calls_it()
    {
        // Rounding alone is more than this allows.
        using var strict = new Context(new Policy { Tolerance = 1e-30 });
        AddendException thrown = Assert.Throws<AddendException>(() => Samples.Digits().Decompose(Samples.Eight(), strict));
        Assert.Equal(ErrorCode.Internal, thrown.Code);
        Assert.Equal(ErrorCode.Internal, Samples.CodeOf(thrown));
        OperatorPosition position = thrown.Position!;
        Assert.StartsWith("aten::", position.Op);
        Assert.NotNull(position.Index);
        Assert.EndsWith(".py", position.File);
        Assert.True(position.Line > 0);
        Assert.Contains(position.Op, thrown.Message);
    }

    [Fact]
    public void Shapley_values_are_complete()
    {
        Model model = Samples.Table();
        Input row = Samples.Row(groups: 6);
        using var faithful = new Context(new Policy { Preset = Preset.Faithful });
        Explanation fast = model.Decompose(row, faithful).Explain("0,0");
        Explanation exact = model.Shapley(new Request(row)).Explain("0,0");
        Assert.Equal(6, exact.Contributions.Count);
        Samples.Close(
            exact.Value - exact.Reference, exact.Contributions.Sum(c => c.Value), 1e-4);
        Samples.Close(fast.Value, exact.Value, 1e-5);
        Samples.Close(fast.Reference, exact.Reference, 1e-5);
    }

    [Fact]
    public void Copies_have_another_dtype_or_device()
    {
        Model model = Samples.Digits();
        Tensor image = Samples.Eight().Value;
        Assert.Equal(DType.Float64, model.To(DType.Float64).Run(image.To(DType.Float64)).Tensor().DType);
        Assert.Equal(DType.Float32, model.To(device: "cpu").Run(image).Tensor().DType);
        Samples.Refuses(() => model.To(device: "nowhere:7"));
    }

    [Fact]
    public void Results_may_be_chosen()
    {
        Model model = Samples.Digits();
        Assert.Equal(["output"], model.Decompose(new Request(Samples.Eight()) { Outputs = ["output"] }).Names);
        Samples.Refuses(() => model.Decompose(new Request(Samples.Eight()) { Outputs = ["output.3"] }));
    }

    [Fact]
    public void Models_from_bytes_are_converted()
    {
        byte[] content = File.ReadAllBytes(Samples.DigitsPath);
        Model model = Model.Load(content, DType.Float64);
        Input eight = Samples.Eight();
        Tensor image = eight.Value.To(DType.Float64);
        Composition logits = model.Decompose(eight with { Value = image }).Composition();
        Assert.Equal(DType.Float64, logits.DType);
        Samples.Close(0, model.Decompose(eight with { Value = image }).Explain().RecoveryError, 1e-12);
    }

    [Fact]
    public void Damaged_models_are_refused()
    {
        Assert.Throws<FileNotFoundException>(() => Model.Load("no/such/model.pt"));
        Assert.Throws<ArgumentException>(() => Model.Load("no\0model.pt"));
        Samples.Refuses(() => Model.Load(Samples.DigitsSamplePath));
        byte[] content = File.ReadAllBytes(Samples.DigitsPath);
        for (int length = 0; length < content.Length; length += 9973)
        {
            Samples.Refuses(() => Model.Load(content.AsSpan(0, length)));
        }
    }

    [Fact]
    public void Refuses_inputs_that_do_not_fit()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Tensor row = Tensor.From(new float[5]);
        void Refuses(Input input) => Samples.Refuses(() => model.Decompose(input));
        Refuses(new Input(row) { Split = Split.Along(0) });
        Refuses(eight with { Split = Split.Along(9) });
        Refuses(eight with { Split = Split.Labels(row) });
        Refuses(eight with { Split = Split.Parts(row) });
        Refuses(eight with { Baseline = row });
        Samples.Refuses(() => model.Decompose(new Request()));
        Samples.Refuses(() => model.Decompose(new Request(eight) { Probes = ["no.such.module"] }));
        Assert.Throws<ArgumentNullException>(() => model.Decompose((Request)null!));
        Assert.Throws<ArgumentNullException>(() => model.Decompose((Input)null!));
        Assert.Throws<ArgumentNullException>(() => model.Decompose(new Input(null!)));
        // It still works.
        Assert.Equal("[0, 8]", model.Decompose(eight).Explain().Target);
    }

    [Fact]
    public void Disposed_models_say_so()
    {
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Results results = model.Decompose(eight);
        Composition logits = results.Composition();
        model.Dispose();
        Assert.Throws<ObjectDisposedException>(() => model.Decompose(eight));
        Assert.Throws<ObjectDisposedException>(() => model.InputNames);
        Assert.Equal("[0, 8]", results.Explain().Target);
        results.Dispose();
        Assert.Throws<ObjectDisposedException>(() => results.Explain());
        Assert.Throws<ObjectDisposedException>(() => results.Report);
        Assert.Equal(64, logits.Numc);
        eight.Value.Dispose();
        Assert.Throws<ObjectDisposedException>(() => Samples.Digits().Run(eight));
    }
}
