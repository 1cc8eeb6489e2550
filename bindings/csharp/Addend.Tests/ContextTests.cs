using System.Runtime.CompilerServices;
using System.Text.Json;

namespace Addend.Tests;

public sealed class ContextTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void A_policy_says_every_choice()
    {
        var context = new Context(new Policy
        {
            Preset = Preset.Fast,
            Segments = 3,
            Nonlinearity = "scaling",
            Bias = "sign",
            Freeze = Freeze.Attention | Freeze.Gate,
            ContentFirst = Freeze.Attention | Freeze.Normalizer,
            Conditions = Conditions.Baseline,
            Anchor = Anchor.Residual,
            MissingRule = MissingRule.Absorb,
            OnFailure = OnFailure.Warn,
            Check = Check.EveryOp,
            Tolerance = 1e-3,
            ["nonlinearity@aten::softmax"] = "gradient",
        });
        using JsonDocument json = JsonDocument.Parse(context.PolicyJson);
        Assert.Equal("fast", json.RootElement.GetProperty("preset").GetString());
        Assert.Equal("3", json.RootElement.GetProperty("segments").GetString());
        Assert.Equal("scaling", json.RootElement.GetProperty("nonlinearity").GetString());
        Assert.Equal("sign", json.RootElement.GetProperty("bias").GetString());
        Assert.Equal("attention+gate", json.RootElement.GetProperty("freeze").GetString());
        Assert.Equal("attention+normalizer", json.RootElement.GetProperty("content_first").GetString());
        Assert.Equal("baseline", json.RootElement.GetProperty("conditions").GetString());
        Assert.Equal("residual", json.RootElement.GetProperty("anchor").GetString());
        Assert.Equal("absorb", json.RootElement.GetProperty("missing_rule").GetString());
        Assert.Equal("warn", json.RootElement.GetProperty("on_failure").GetString());
        Assert.Equal("every_op", json.RootElement.GetProperty("check").GetString());
        Assert.Contains("aten::softmax", context.PolicyJson);
    }

    [Fact]
    public void Policies_are_text()
    {
        Policy policy = new Policy { Segments = 2, ["bias@aten::linear"] = "abs" }
            .With("preset", "fast").With("segments", "3").With("bias@aten::linear", "norm");
        using JsonDocument json = JsonDocument.Parse(new Context(policy).PolicyJson);
        Assert.Equal("fast", json.RootElement.GetProperty("preset").GetString());
        Assert.Equal("3", json.RootElement.GetProperty("segments").GetString());
        Assert.Contains("\"norm\"", json.RootElement.ToString());
        Assert.DoesNotContain("\"norm\"", new Context(new Policy { Segments = 2 }).PolicyJson);
        Assert.Throws<ArgumentNullException>(() => new Context(policy.With("bias", null!)));
    }

    [Fact]
    public void Every_choice_exists()
    {
        foreach (Policy policy in Enum.GetValues<Preset>().Select(word => new Policy { Preset = word })
            .Concat(Enum.GetValues<Anchor>().Select(word => new Policy { Anchor = word }))
            .Concat(Enum.GetValues<Freeze>().Select(word => new Policy { Freeze = word }))
            .Concat(Enum.GetValues<Freeze>().Select(word => new Policy { ContentFirst = word }))
            .Concat(Enum.GetValues<Conditions>().Select(word => new Policy { Conditions = word }))
            .Concat(Enum.GetValues<MissingRule>().Select(word => new Policy { MissingRule = word }))
            .Concat(Enum.GetValues<OnFailure>().Select(word => new Policy { OnFailure = word }))
            .Concat(Enum.GetValues<Check>().Select(word => new Policy { Check = word }))
            .Concat(Rules.Nonlinearities.Select(rule => new Policy { Nonlinearity = rule }))
            .Concat(Rules.Biases.Select(rule => new Policy { Bias = rule })))
        {
            using var context = new Context(policy);
            (string key, string value) = Assert.Single(policy.Choices());
            using JsonDocument json = JsonDocument.Parse(context.PolicyJson);
            Assert.Equal(value, json.RootElement.GetProperty(key).GetString());
        }
    }

    [Fact]
    public void Rules_of_operators_are_replaced()
    {
        Composition x = Composition.Diagonal(Tensor.From(new[] { 1.0, 2.0 }));
        using var opaque = new Context(new ContextOptions
        {
            Rules = new Dictionary<string, Principle> { ["aten::tanh"] = Principle.Opaque },
        });
        CompositionTests.Expect([0, 0], x.Tanh(opaque).Components());
        foreach (Principle principle in Enum.GetValues<Principle>())
        {
            new Context(new ContextOptions { Rules = new Dictionary<string, Principle> { ["my_ops::unknown"] = principle } })
                .Dispose();
        }
        Assert.Throws<ArgumentException>(() => new Context(new ContextOptions
        {
            Rules = new Dictionary<string, Principle> { ["no name"] = Principle.Path },
        }));
    }

    [Fact]
    public void Rules_are_members_or_text()
    {
        var policy = new Policy { Nonlinearity = "gradient", Bias = Bias.Norm(2) };
        Assert.Equal(Nonlinearity.Gradient, policy.Nonlinearity);
        Assert.Equal(new Policy { Bias = "norm(2)" }.Bias, policy.Bias);
        Assert.Null(new Policy { Bias = (string?)null }.Bias);
        Assert.Equal("hybrid_affine(0.25)", Nonlinearity.HybridAffine(0.25).ToString());
    }

    private static class Rules
    {
        internal static readonly Nonlinearity[] Nonlinearities =
        [
            Nonlinearity.Path, Nonlinearity.AbsAffine, Nonlinearity.HybridAffine(), Nonlinearity.HybridAffine(0.25),
            Nonlinearity.Scaling, Nonlinearity.Gradient, Nonlinearity.None,
        ];

        internal static readonly Bias[] Biases =
        [
            Bias.Residual, Bias.Abs, Bias.Hybrid(), Bias.HybridThreshold(0.5), Bias.Sign(0.25), Bias.SignThreshold(),
            Bias.Norm(), Bias.Norm(2),
        ];
    }

    [Fact]
    public void Wrong_choices_are_explained()
    {
        Assert.Contains("sideways", Assert.Throws<ArgumentException>(() => new Context(new Policy { Bias = "sideways" })).Message);
        Assert.Throws<ArgumentException>(() => new Context(new Policy { Segments = 0 }));
        Assert.Throws<ArgumentException>(() => new Context(new Policy { ["no_such_key"] = "1" }));
        Assert.Throws<ArgumentNullException>(() => new Context((Policy)null!));
    }

    [Fact]
    public void Progress_is_heard_on_the_thread_that_runs()
    {
        var told = new List<RunProgress>();
        int thread = Environment.CurrentManagedThreadId;
        using var context = new Context(new ContextOptions
        {
            Progress = new Reporter(step =>
            {
                Assert.Equal(thread, Environment.CurrentManagedThreadId);
                told.Add(step);
            }),
        });
        Samples.Digits().Decompose(Samples.Eight(), context);
        Assert.Contains(told, step => step.Stage == "trace");
        Assert.Contains(told, step => step.Stage == "sweep" && step.Done == step.Total);
    }

    [Fact]
    public void What_progress_throws_reaches_the_caller()
    {
        using var context = new Context(new ContextOptions
        {
            Progress = new Reporter(_ => throw new TimeoutException("enough")),
        });
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Assert.Equal("enough", Assert.Throws<TimeoutException>(() => model.Decompose(eight, context)).Message);
        // A run that a callback ended leaves nothing pending for the next one.
        Assert.Equal("[0, 8]", model.Decompose(eight).Explain().Target);
    }

    [Fact]
    public void Log_tells_what_a_reader_should_know()
    {
        var lines = new List<(MessageLevel Level, string Line)>();
        using Context context = Warning((level, line) => lines.Add((level, line)));
        using Composition x = Composition.Diagonal(Tensor.From(new[] { 1.0, 2.0 }), 0);
        using Results results = Operators.Call(context, "aten::histc", x);
        Assert.NotEmpty(lines);
        Assert.Contains(lines, entry => entry.Line.Contains("aten::histc", StringComparison.Ordinal));
        Assert.All(lines, entry => Assert.True(Enum.IsDefined(entry.Level)));
    }

    [Fact]
    public void What_log_throws_reaches_the_caller()
    {
        using Context context = Warning((_, line) => throw new IOException("disk full"));
        using Composition x = Composition.Diagonal(Tensor.From(new[] { 1.0, 2.0 }), 0);
        Assert.Equal("disk full", Assert.Throws<IOException>(() => Operators.Call(context, "aten::histc", x)).Message);
        using Results results = Operators.Call("aten::relu", x);
        Assert.Equal(1, results.Count);
    }

    [Fact]
    public void Contexts_let_go_of_their_listeners()
    {
        WeakReference reporter = Reporting(out Context context);
        TensorTests.Collect();
        Assert.True(reporter.IsAlive);
        context.Dispose();
        TensorTests.Collect();
        Assert.False(reporter.IsAlive);
    }

    [Fact]
    public void A_token_that_is_cancelled_already_stops_before_anything_runs()
    {
        using var source = new CancellationTokenSource();
        source.Cancel();
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Assert.Equal(
            source.Token,
            Assert.Throws<OperationCanceledException>(() => model.Decompose(eight, null, source.Token)).CancellationToken);
        Assert.Throws<OperationCanceledException>(() => model.Run(eight, source.Token));
        Assert.Throws<OperationCanceledException>(() => model.Shapley(new Request(eight), source.Token));
    }

    [Fact]
    public void Another_thread_ends_runs()
    {
        using var source = new CancellationTokenSource();
        using var started = new ManualResetEventSlim();
        using var cancelled = new ManualResetEventSlim();
        using var context = new Context(new ContextOptions
        {
            Progress = new Reporter(_ =>
            {
                started.Set();
                cancelled.Wait();
            }),
        });
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        var other = new Thread(() =>
        {
            started.Wait();
            source.Cancel();
            cancelled.Set();
        });
        other.Start();
        OperationCanceledException thrown =
            Assert.Throws<OperationCanceledException>(() => model.Decompose(eight, context, source.Token));
        other.Join();
        Assert.Equal(source.Token, thrown.CancellationToken);
        Assert.Equal(ErrorCode.Cancelled, Samples.CodeOf(thrown));
        using var fresh = new CancellationTokenSource();
        Assert.Equal("[0, 8]", model.Decompose(eight, null, fresh.Token).Explain().Target);
    }

    [Fact]
    public async Task A_task_that_runs_it_ends_as_cancelled()
    {
        using var source = new CancellationTokenSource();
        using var context = new Context(new ContextOptions { Progress = new Reporter(_ => source.Cancel()) });
        Model model = Samples.Digits();
        Input eight = Samples.Eight();
        Task<Results> task = Task.Run(() => model.Decompose(eight, context, source.Token), source.Token);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => task);
        Assert.True(task.IsCanceled);
    }

    [Fact]
    public void Detail_is_given_where_it_is_asked_for()
    {
        using Composition x = Composition.Diagonal(Tensor.From(new[] { 1.0, 2.0 }), 0);
        using var detailed = new Context(new ContextOptions { Detail = true });
        AddendException Cause(Context? context) => Assert.IsType<AddendException>(
            Assert.Throws<ArgumentException>(
                () => Operators.Call(context, "aten::matmul", x, Tensor.From(new double[3]))).InnerException);
        Assert.Equal("", Cause(null).Detail);
        Assert.NotEqual("", Cause(detailed).Detail);
    }

    [Fact]
    public void Cannot_be_used_after_it_was_disposed()
    {
        var context = new Context(new Policy());
        context.Dispose();
        Assert.Throws<ObjectDisposedException>(() => context.PolicyJson);
        Assert.Throws<ObjectDisposedException>(() => Samples.Digits().Decompose(Samples.Eight(), context));
    }

    // An operator without a rule, which this context lets pass with a warning.
    private static Context Warning(Action<MessageLevel, string> log) =>
        new(new ContextOptions { Policy = new Policy { MissingRule = MissingRule.Absorb }, Log = log });

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static WeakReference Reporting(out Context context)
    {
        var reporter = new Reporter(_ => { });
        context = new Context(new ContextOptions { Progress = reporter });
        return new WeakReference(reporter);
    }

    private sealed class Reporter(Action<RunProgress> report) : IProgress<RunProgress>
    {
        public void Report(RunProgress value) => report(value);
    }
}
