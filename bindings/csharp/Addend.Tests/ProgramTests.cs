using System.Text.Json;

namespace Addend.Tests;

public sealed class ProgramTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly Model _model = Samples.Table();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Replays_the_same_bits()
    {
        RecordedProgram program = _model.Record(Samples.Rows(0, 2));
        Results results = program.Replay(Samples.Rows(5, 2));
        Assert.Equal(["output"], results.Names);
        Assert.Equal(Computed(_model, Samples.Rows(5, 2)), results.Tensor().ToArray<float>());
        Assert.Equal(7, program.NumOperators);
        ProgramOutput output = Assert.Single(program.Outputs);
        Assert.Equal("output", output.Name);
        Assert.Equal(DType.Float32, output.DType);
        Assert.Equal(_model.Run(Samples.Rows(0, 2)).Tensor().Shape, output.Shape);
        Assert.Equal(["table"], program.NamesOf(ValueKind.Input));
        Assert.Equal(["mean", "deviation"], program.NamesOf(ValueKind.Buffer));
        Assert.Equal(
            ["layers.0.bias", "layers.0.weight", "layers.2.bias", "layers.2.weight", "layers.4.bias", "layers.4.weight"],
            program.NamesOf(ValueKind.Parameter).Order(StringComparer.Ordinal));
        Assert.Superset(program.NamesOf(ValueKind.Result).ToHashSet(), program.Names.ToHashSet());
        ArgumentException thrown = Assert.Throws<ArgumentException>(() => program.Replay(Samples.Rows(0, 4)));
        Assert.Contains("[4, 30]", thrown.Message);
    }

    [Fact]
    public void Gives_inner_values_by_name()
    {
        RecordedProgram program = _model.Record(Samples.Rows(0, 2));
        var asked = new Request(new Dictionary<string, Input>
        {
            ["table"] = new Input(Samples.Rows(3, 2)) { Split = Split.Along(1) },
        });
        Results results = program.Replay(asked, new ReplayOptions { Values = ["relu", "sub"] });
        Assert.Equal(["output", "relu", "sub"], results.Names);
        Composition relu = _model.Decompose(asked with { Probes = ["aten::relu:0"] }).Composition(1);
        Assert.Equal(relu.Value().ToArray<float>(), results.Tensor("relu").ToArray<float>());
        Results everything = program.Replay(asked, new ReplayOptions { EveryValue = true });
        Assert.Equal(program.Names, everything.Names.Skip(1));
        Samples.Throws<KeyNotFoundException>(
            ErrorCode.NotFound, () => program.Replay(asked, new ReplayOptions { Values = ["no such"] }));
    }

    [Fact]
    public void Learns_sizes_from_others()
    {
        var named = new Dictionary<string, Input> { ["table"] = Samples.Rows(0, 5) };
        RecordedProgram program = _model.Record(new Request(Samples.Rows(0, 1))
        {
            Others = [new Request(Samples.Rows(0, 2)), new Request(named)],
        });
        using JsonDocument summary = JsonDocument.Parse(program.SummaryJson);
        JsonElement free = Assert.Single(summary.RootElement.GetProperty("free").EnumerateArray());
        Assert.Equal("table", free.GetProperty("input").GetString());
        Assert.Equal(0, free.GetProperty("dim").GetInt32());
        Assert.Equal(Computed(_model, Samples.Rows(0, 9)), program.Replay(Samples.Rows(0, 9)).Tensor().ToArray<float>());
        // Only recording and checking take several examples.
        var several = new Request(Samples.Rows(0, 1)) { Others = [new Request(Samples.Rows(0, 2))] };
        Samples.Refuses(() => _model.Run(several));
        Samples.Refuses(() => _model.Attribute(several));
    }

    [Fact]
    public void Learns_sizes_from_one_example()
    {
        string folder = Directory.CreateTempSubdirectory("addend").FullName;
        try
        {
            string path = Path.Combine(folder, "sizes.pt");
            RecordedProgram program = _model.Record(new Request(Samples.Rows(0, 2)) { LearnSizes = true });
            program.ExportTorchScript(path);
            float[] expected = Computed(_model, Samples.Rows(0, 9));
            Assert.Equal(expected, program.Replay(Samples.Rows(0, 9)).Tensor().ToArray<float>());
            Assert.Equal(expected, Computed(Model.Load(path), Samples.Rows(0, 9)));
            ArgumentException thrown = Assert.ThrowsAny<ArgumentException>(() => program.Replay(Samples.Rows(0, 20)));
            Assert.Contains("sizes from 1 to 9 were tried", thrown.Message);
            // Without, a file stops at sizes that were not recorded.
            _model.Record(Samples.Rows(0, 2)).ExportTorchScript(path);
            Model file = Model.Load(path);
            Samples.Refuses(() => file.Run(Samples.Rows(0, 9)));
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    [Fact]
    public void Stops_where_a_number_that_left_the_tensors_is_another()
    {
        Model branching = Samples.Conformance("awkward");
        Tensor same = Samples.Conformance("awkward", "same_branch");
        Tensor other = Samples.Conformance("awkward", "other_branch");
        RecordedProgram program = branching.Record(Samples.Conformance("awkward", "table"));
        Assert.Equal(Computed(branching, same), program.Replay(same).Tensor().ToArray<float>());
        InvalidOperationException thrown = Assert.Throws<InvalidOperationException>(() => program.Replay(other));
        Assert.Equal(ErrorCode.FailedPrecondition, Samples.CodeOf(thrown));
        Assert.Equal("aten::item", Assert.IsType<AddendException>(thrown.InnerException).Position!.Op);
        Results wrong = program.Replay(other, new ReplayOptions { Guards = false });
        Assert.NotEqual(Computed(branching, other), wrong.Tensor().ToArray<float>());
    }

    [Fact]
    public void Is_checked_against_the_model()
    {
        Model branching = Samples.Conformance("awkward");
        var same = new Request(Samples.Conformance("awkward", "same_branch"));
        var asked = new Request(Samples.Conformance("awkward", "table")) { Others = [same] };
        TraceCheck right = branching.CheckTrace(asked, tolerance: 0);
        Assert.True(right.Ok);
        Assert.Equal(0, right.WorstError);
        TraceCheck check = branching.CheckTrace(
            asked with { Others = [same, new Request(Samples.Conformance("awkward", "other_branch"))] });
        Assert.False(check.Ok);
        Finding guard = Assert.Single(check.Findings, finding => finding.Kind == "guard");
        Assert.True(guard.Error);
        Assert.Equal(1, guard.InputSet);
        Assert.Contains("architectures.py", guard.Position);
        Assert.Contains("aten::item", guard.Message);

        Model nested = Samples.Conformance("nested");
        var table = new Request(Samples.Conformance("nested", "table"));
        Finding hint = Assert.Single(nested.CheckTrace(table).Findings);
        Assert.Equal(("output", false, null), (hint.Kind, hint.Error, hint.InputSet));
        Assert.Empty(nested.CheckTrace(table, strict: false).Findings);
        Assert.Throws<ArgumentException>(() => nested.CheckTrace(table, tolerance: -1));
        Assert.Throws<ArgumentOutOfRangeException>(() => nested.CheckTrace(table, tolerance: double.NaN));
    }

    [Fact]
    public void Is_kept()
    {
        using var folder = new TemporaryFolder();
        string path = Path.Combine(folder.Path, "é\U0001F600");
        _model.Record(Samples.Rows(0, 2)).Save(path);
        Assert.Equal(
            ["program.json", "weights.safetensors"],
            Directory.GetFiles(path).Select(file => Path.GetFileName(file)).Order(StringComparer.Ordinal));
        RecordedProgram program = RecordedProgram.Load(path);
        Assert.Equal(Computed(_model, Samples.Rows(3, 2)), program.Replay(Samples.Rows(3, 2)).Tensor().ToArray<float>());
    }

    [Fact]
    public void Stands_for_the_model()
    {
        Model twin = _model.Record(Samples.Rows(0, 1)).ToModel();
        Assert.Equal(_model.InputNames, twin.InputNames);
        var input = new Input(Samples.Rows(0, 1)) { Split = Split.Along(1), Baseline = 1.0 };
        Assert.Equal(
            _model.Decompose(input).Composition().Components().ToArray<float>(),
            twin.Decompose(input).Composition().Components().ToArray<float>());
        Assert.Equal(
            _model.Attribute(input, "0,1").Input().ToArray<float>(),
            twin.Attribute(input, "0,1").Input("table").ToArray<float>());
    }

    [Fact]
    public void Is_read_as_code()
    {
        RecordedProgram program = _model.Record(Samples.Rows(0, 2));
        Assert.Contains("# linear(f32[2, 30], f32[32, 30], f32[32]) -> f32[2, 32];", program.Code());
        Assert.Contains("table: f32[2, 30]", program.Code(new CodeOptions { Names = true }));
        Assert.Contains("\u001b[", program.Code(new CodeOptions { Color = true }));
        Assert.DoesNotContain("functional.py", program.Code(new CodeOptions { Exclude = ["*/torch/*"] }));
        Assert.Contains("functional.py", program.Code(new CodeOptions { Exclude = [] }));
        Assert.DoesNotContain("functional.py", program.Code(new CodeOptions { Include = ["*breast_cancer*"] }));
        var timed = new CodeOptions
        {
            Numbers =
            [
                new CallNumbers("time", [0.5, double.NaN, 1, 1, 1, 1, 1], NumberUnit.Seconds),
                new CallNumbers("memory", [2048, 1, 1, 1, 1, 1, 1], NumberUnit.Bytes),
                new CallNumbers("score \"1\"\n", [7, 2, 3, 4, 5, 6, double.NegativeInfinity]),
            ],
        };
        Assert.Contains("[time 500.0 ms | memory 2.0 KiB | score \"1\"", program.Code(timed));
        Assert.Contains("\"numbers\":[0.5,2048", program.CodeAsJson(timed));
        Assert.Throws<ArgumentException>(() => program.Code(new CodeOptions { Numbers = [new CallNumbers("few", [1])] }));
    }

    [Fact]
    public void Is_read_as_a_graph()
    {
        RecordedProgram program = _model.Record(Samples.Rows(0, 2));
        using JsonDocument graph = JsonDocument.Parse(program.GraphAsJson(new CallNumbers("score", [1, 2, 3, 4, 5, 6, 7.5])));
        var kinds = graph.RootElement.GetProperty("nodes").EnumerateArray()
            .Select(node => node.GetProperty("kind").GetString()).ToList();
        Assert.Equal((7, 6), (kinds.Count(kind => kind == "call"), kinds.Count(kind => kind == "parameter")));
        Assert.StartsWith("digraph", program.GraphAsDot());
        Assert.DoesNotContain("layers.0.weight", program.GraphAsDot());
        Assert.Contains("layers.0.weight", program.GraphAsDot(sources: true, modules: false));
        string page = program.GraphAsHtml("<script>", new CallNumbers("score", [1, 2, 3, 4, 5, 6, 7]));
        Assert.Contains("</html>", page);
        Assert.Contains("\\u003cscript>", page);
    }

    [Fact]
    public void Damaged_files_are_refused()
    {
        using var folder = new TemporaryFolder();
        _model.Record(Samples.Rows(0, 1)).Save(folder.Path);
        foreach (string name in new[] { "program.json", "weights.safetensors" })
        {
            string path = Path.Combine(folder.Path, name);
            byte[] whole = File.ReadAllBytes(path);
            foreach (int size in new[] { 0, 1, 9, whole.Length / 2, whole.Length - 2 })
            {
                File.WriteAllBytes(path, whole[..size]);
                Samples.Refuses(() => RecordedProgram.Load(folder.Path));
            }
            File.WriteAllBytes(path, whole);
        }
        RecordedProgram.Load(folder.Path);
        Assert.Throws<DirectoryNotFoundException>(() => RecordedProgram.Load(Path.Combine(folder.Path, "nothing")));
    }

    [Fact]
    public void Refuses_hostile_arguments()
    {
        Tensor row = Samples.Rows(0, 1);
        RecordedProgram program = _model.Record(row);
        Assert.Throws<ArgumentNullException>(() => RecordedProgram.Load(null!));
        Assert.Throws<ArgumentException>(() => RecordedProgram.Load("no\0folder"));
        Assert.Throws<ArgumentNullException>(() => program.Save(null!));
        Assert.Throws<ArgumentNullException>(() => program.Replay((Request)null!));
        Assert.Throws<ArgumentNullException>(() => program.Replay(row, new ReplayOptions { Values = null! }));
        Assert.Throws<ArgumentNullException>(() => program.Replay(row, new ReplayOptions { Values = ["relu", null!] }));
        Assert.Throws<ArgumentException>(() => program.Replay(row, new ReplayOptions { GuardTolerance = -1 }));
        Assert.Throws<ArgumentNullException>(() => program.Code(new CodeOptions { Include = [null!] }));
        Assert.Throws<ArgumentNullException>(() => program.GraphAsJson(null!));
        Assert.Throws<ArgumentNullException>(() => program.GraphAsJson(new CallNumbers(null!, [])));
        Assert.Throws<ArgumentNullException>(() => program.GraphAsJson(new CallNumbers("none", null!)));
        Assert.Throws<ArgumentNullException>(() => program.GraphAsHtml(null!));
        Assert.Throws<ArgumentException>(() => program.GraphAsHtml("\ud83d"));
        Assert.Throws<ArgumentNullException>(() => _model.Record((Request)null!));
        Assert.Throws<ArgumentNullException>(() => _model.Record(new Request(row) { Others = [null!] }));
        Samples.Refuses(() => _model.Record(new Request()));
        Assert.Throws<InvalidOperationException>(() => _model.Record(new Request { Others = [new Request(row)] }));
        Samples.Refuses(() => program.Replay(new Request()));
        Samples.Refuses(() => program.Replay(new Request(row, row)));
        Samples.Refuses(() => program.Replay(Tensor.From(new long[30], 1, 30)));
        var cancelled = new CancellationToken(canceled: true);
        Assert.Throws<OperationCanceledException>(() => _model.Record(row, cancelled));
        Assert.Throws<OperationCanceledException>(() => program.Replay(row, cancellationToken: cancelled));
    }

    [Fact]
    public void Disposed_programs_say_so()
    {
        Tensor row = Samples.Rows(0, 1);
        RecordedProgram program = _model.Record(row);
        Model twin = program.ToModel();
        program.Dispose();
        Assert.Throws<ObjectDisposedException>(() => program.Code());
        Assert.Throws<ObjectDisposedException>(program.ToModel);
        Assert.Throws<ObjectDisposedException>(() => program.NumOperators);
        Assert.Throws<ObjectDisposedException>(() => program.Names);
        Assert.Throws<ObjectDisposedException>(() => program.Replay(row));
        // The model that stands for the program does not need it.
        Assert.Equal(Computed(_model, row), Computed(twin, row));
    }

    private static float[] Computed(Model model, Tensor input) => model.Run(input).Tensor().ToArray<float>();

    private sealed class TemporaryFolder : IDisposable
    {
        internal string Path { get; } = Directory.CreateTempSubdirectory("addend").FullName;

        public void Dispose() => Directory.Delete(Path, recursive: true);
    }
}
