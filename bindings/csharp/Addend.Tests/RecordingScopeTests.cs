using System.Runtime.CompilerServices;
using System.Text.Json;
using Addend.Native;

namespace Addend.Tests;

public sealed class RecordingScopeTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly Tensor _x = Tensor.From(new[] { 1.0, -2.0, 3.0 });
    private readonly Tensor _weight = Tensor.From(new[] { 2.0, 2.0, 2.0 });

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Becomes_a_program()
    {
        using var recording = new RecordingScope(Asked());
        recording.SetModule("scale");
        Tensor y = Network(_x);
        recording.SetModule("");
        recording.AddOutput(y);
        RecordedProgram program = recording.End();
        Assert.Equal(2, program.NumOperators);
        Assert.Equal(["x"], program.NamesOf(ValueKind.Input));
        Assert.Equal(["scale.weight"], program.NamesOf(ValueKind.Parameter));
        Tensor other = Tensor.From(new[] { -4.0, 0.5, 8.0 });
        Assert.Equal([0, 1, 16], program.Replay(other).Tensor().ToArray<double>());
        Composition parts =
            program.ToModel().Decompose(new Input(other) { Split = Split.Along(0), Baseline = 0.0 }).Composition();
        CompositionTests.Expect([0, 0, 0, 0, 1, 0, 0, 0, 16], parts.Components());
    }

    [Fact]
    public void Buffers_are_told_from_parameters()
    {
        using var recording = new RecordingScope(new Request(new Dictionary<string, Input> { ["x"] = _x })
        {
            Buffers = new Dictionary<string, Tensor> { ["scale.mean"] = _weight },
        });
        recording.AddOutput(Network(_x));
        RecordedProgram program = recording.End();
        Assert.Equal(["scale.mean"], program.NamesOf(ValueKind.Buffer));
        Assert.Empty(program.NamesOf(ValueKind.Parameter));
    }

    [Fact]
    public void Operators_stand_under_the_lines_that_called_them()
    {
        using var recording = new RecordingScope(Asked());
        int line = Here() + 1;
        Tensor y = Network(_x);
        recording.AddOutput(y);
        RecordedProgram program = recording.End();
        string text = program.Code();
        Assert.Contains($"RecordingScopeTests.cs:{line}", text);
        // The lines of this method and of Network are shown, but none of Addend's own or of the test runner's.
        Assert.Contains(nameof(Operators_stand_under_the_lines_that_called_them), text);
        Assert.Contains("Network", text);
        Assert.DoesNotContain("Operators.cs", text);
        Assert.DoesNotContain("Xunit", text, StringComparison.OrdinalIgnoreCase);
        using JsonDocument code = JsonDocument.Parse(program.CodeAsJson());
        Assert.Equal(2, code.RootElement.GetProperty("calls").GetArrayLength());
    }

    [Fact]
    public void Lines_may_be_left_out()
    {
        using var recording = new RecordingScope(Asked(), lines: false);
        recording.AddOutput(Network(_x));
        string text = recording.End().Code();
        Assert.DoesNotContain("RecordingScopeTests", text);
        Assert.Contains("relu", text);
    }

    [Fact]
    public void What_the_lines_throw_reaches_the_caller()
    {
        using var recording =
            new RecordingScope(Asked(), new SourceLines(() => throw new TimeoutException("no lines today")));
        Assert.Equal(ErrorCode.Unknown, Assert.Throws<AddendException>(() => Network(_x)).Code);
        Assert.Equal("no lines today", Assert.Throws<TimeoutException>(recording.End).Message);
        // A recording that failed does not keep others from beginning.
        new RecordingScope(Asked()).Dispose();
    }

    [Fact]
    public void A_thread_has_one_at_a_time()
    {
        using (var first = new RecordingScope(Asked()))
        {
            Assert.Throws<InvalidOperationException>(() => new RecordingScope(Asked()));
            Assert.Throws<InvalidOperationException>(() => new TracingScope(Asked()));
            Assert.Throws<ArgumentNullException>(() => first.AddOutput(null!));
            Assert.Throws<ArgumentException>(first.End);
        }
        Assert.Throws<ArgumentNullException>(() => new RecordingScope(null!));
        new RecordingScope(Asked()).Dispose();
    }

    private static int Here([CallerLineNumber] int line = 0) => line;

    // Inlined it would have no frame of its own.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private Tensor Network(Tensor given)
    {
        Tensor scaled = Operators.Call("aten::mul", given, _weight).Tensor();
        return Operators.Call("aten::relu", scaled).Tensor();
    }

    private Request Asked() => new(new Dictionary<string, Input> { ["x"] = _x })
    {
        Parameters = new Dictionary<string, Tensor> { ["scale.weight"] = _weight },
    };
}
