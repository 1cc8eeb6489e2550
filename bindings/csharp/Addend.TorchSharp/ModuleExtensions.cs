using ScriptModule = global::TorchSharp.torch.jit.ScriptModule<global::TorchSharp.torch.Tensor, global::TorchSharp.torch.Tensor>;
using TensorModule = global::TorchSharp.torch.nn.Module<global::TorchSharp.torch.Tensor, global::TorchSharp.torch.Tensor>;
using TorchModule = global::TorchSharp.torch.nn.Module;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp;

/// <summary>
/// Explains TorchSharp modules as they run, on this thread: reports and attributions name the modules by their paths and
/// the parameters and buffers by their names.
/// <code>
/// using Results results = module.Decompose(x, Split.Along(1), baseline: 0.0);
/// Console.WriteLine(results.Explain());
/// </code>
/// Modules are heard through their hooks, which <c>call</c> runs and <c>forward</c> does not; what a module computes whose
/// <c>forward</c> is called by itself belongs to the module around it. A module must not run on other threads meanwhile.
/// </summary>
public static class ModuleExtensions
{
    /// <summary>Decomposes what a module makes of one tensor.</summary>
    /// <param name="module">The module, which runs once.</param>
    /// <param name="x">The tensor: contiguous, on memory of its own.</param>
    /// <param name="split">How it is divided into components.</param>
    /// <param name="baseline">What means "nothing"; null: zero.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <returns>The composition of the output, and the report.</returns>
    public static Results Decompose(
        this TensorModule module, TorchTensor x, Split split, Baseline? baseline = null, Context? context = null)
    {
        using var scope = new Scope();
        return scope.Keep(Decompose(module, Asked(module, x, split, baseline), () => module.call(x), context));
    }

    /// <summary>Decomposes what a TorchScript module, loaded by <c>torch.jit.load</c>, makes of one tensor.</summary>
    /// <param name="module">The module, which runs once.</param>
    /// <param name="x">The tensor: contiguous, on memory of its own.</param>
    /// <param name="split">How it is divided into components.</param>
    /// <param name="baseline">What means "nothing"; null: zero.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <returns>The composition of the output, and the report.</returns>
    public static Results Decompose(
        this ScriptModule module, TorchTensor x, Split split, Baseline? baseline = null, Context? context = null)
    {
        using var scope = new Scope();
        return scope.Keep(Decompose(module, Asked(module, x, split, baseline), () => module.call(x), context));
    }

    /// <summary>Decomposes what a module computes.</summary>
    /// <param name="module">The module whose paths and names the report has.</param>
    /// <param name="request">The live inputs, made by <see cref="TensorExtensions.ToAddend"/>, how they are split, and the
    /// probes. Parameters and buffers of the module are added.</param>
    /// <param name="run">Runs the module and gives the output: <c>() => module.call(x, y)</c>. It is called once more where
    /// the request splits a tensor inside the module.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <returns>The composition of the output, then those of the probes, and the report.</returns>
    public static Results Decompose(
        this TorchModule module, Request request, Func<TorchTensor> run, Context? context = null)
    {
        using var scope = new Scope();
        var tracing = new TracingScope(Named(module, request), context);
        Run(module, tracing, request, run);
        return scope.Keep(tracing.End());
    }

    /// <summary>Attributes one number of what a module makes of one tensor.</summary>
    /// <param name="module">The module, which runs once.</param>
    /// <param name="x">The tensor: contiguous, on memory of its own.</param>
    /// <param name="split">How it is divided into components.</param>
    /// <param name="target">The number; by default the largest element of the output.</param>
    /// <param name="baseline">What means "nothing"; null: zero.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <returns>An explanation of the number, and what each element of the tensor gave to it.</returns>
    public static Attribution Attribute(
        this TensorModule module,
        TorchTensor x,
        Split split,
        Target target = default,
        Baseline? baseline = null,
        Context? context = null)
    {
        using var scope = new Scope();
        Request request = Asked(module, x, split, baseline) with { Targets = [target] };
        return scope.Keep(Attribute(module, request, () => module.call(x), context));
    }

    /// <summary>Attributes one number of what a TorchScript module, loaded by <c>torch.jit.load</c>, makes of one
    /// tensor.</summary>
    /// <param name="module">The module, which runs once.</param>
    /// <param name="x">The tensor: contiguous, on memory of its own.</param>
    /// <param name="split">How it is divided into components.</param>
    /// <param name="target">The number; by default the largest element of the output.</param>
    /// <param name="baseline">What means "nothing"; null: zero.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <returns>An explanation of the number, and what each element of the tensor gave to it.</returns>
    public static Attribution Attribute(
        this ScriptModule module,
        TorchTensor x,
        Split split,
        Target target = default,
        Baseline? baseline = null,
        Context? context = null)
    {
        using var scope = new Scope();
        Request request = Asked(module, x, split, baseline) with { Targets = [target] };
        return scope.Keep(Attribute(module, request, () => module.call(x), context));
    }

    /// <summary>Attributes the targets of a request.</summary>
    /// <param name="module">The module whose paths and names the attribution has.</param>
    /// <param name="request">The live inputs, made by <see cref="TensorExtensions.ToAddend"/>, how they are split, and the
    /// targets. Parameters and buffers of the module are added.</param>
    /// <param name="run">Runs the module and gives the output, as in
    /// <see cref="Decompose(TorchModule, Request, Func{TorchTensor}, Context)"/>.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <returns>An explanation for each target, and a tensor for each input.</returns>
    public static Attribution Attribute(
        this TorchModule module, Request request, Func<TorchTensor> run, Context? context = null)
    {
        using var scope = new Scope();
        var attributing = new AttributionScope(Named(module, request), context);
        Run(module, attributing, request, run);
        return scope.Keep(attributing.End());
    }

    /// <summary>Records what a module computes as a program, which runs without TorchSharp.</summary>
    /// <param name="module">The module whose paths and names the program has.</param>
    /// <param name="request">The live inputs; splits are not looked at. Parameters and buffers of the module are
    /// added.</param>
    /// <param name="run">Runs the module and gives the output.</param>
    /// <returns>The program.</returns>
    public static RecordedProgram Record(this TorchModule module, Request request, Func<TorchTensor> run)
    {
        ArgumentNullException.ThrowIfNull(run);
        using var scope = new Scope();
        var recording = new RecordingScope(Named(module, request), lines: false);
        using (new ModulePaths(module, recording.SetModule, recording.AddModuleOutputs))
        {
            recording.AddOutput(run().ToAddend());
        }
        return scope.Keep(recording.End());
    }

    private static Request Asked(TorchModule module, TorchTensor x, Split split, Baseline? baseline)
    {
        ArgumentNullException.ThrowIfNull(module);
        return new Request(new Input(x.ToAddend()) { Split = split, Baseline = baseline });
    }

    private static void Run(TorchModule module, LiveScope scope, Request request, Func<TorchTensor> run)
    {
        ArgumentNullException.ThrowIfNull(run);
        using var paths = new ModulePaths(module, scope.SetModule, scope.AddModuleOutputs);
        scope.AddOutput("output", run().ToAddend());
        if (request.Inside.Count > 0)
        {
            scope.RunAgain();
            scope.AddOutput("output", run().ToAddend());
        }
    }

    private static Request Named(TorchModule module, Request request)
    {
        ArgumentNullException.ThrowIfNull(module);
        ArgumentNullException.ThrowIfNull(request);
        return request with
        {
            Parameters = With(request.Parameters, module.named_parameters().Select(one => (one.name, (TorchTensor)one.parameter))),
            Buffers = With(request.Buffers, module.named_buffers().Select(one => (one.name, one.buffer))),
        };
    }

    // Entries of the request take precedence. Sparse and quantized tensors are skipped: they have no memory by which
    // they could be recognized.
    private static Dictionary<string, Tensor> With(
        IReadOnlyDictionary<string, Tensor> given, IEnumerable<(string Name, TorchTensor Tensor)> more)
    {
        var all = new Dictionary<string, Tensor>(given);
        foreach ((string name, TorchTensor tensor) in more)
        {
            if (all.ContainsKey(name))
            {
                continue;
            }
            try
            {
                all.Add(name, tensor.ToAddend());
            }
            catch (NotSupportedException)
            {
            }
        }
        return all;
    }
}
