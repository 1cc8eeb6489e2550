using Addend.Native;

namespace Addend;

/// <summary>
/// Records every operator that this thread calls until it ends, whoever calls it, and decomposes what was computed: a
/// model written with <see cref="Operators.Call(string, Argument[])"/> on plain tensors, with C#'s own control flow.
/// <code>
/// using var tracing = new TracingScope(new Request(new Input(x) { Split = Split.Along(-1) }));
/// using Results h = Operators.Call("aten::relu", x);
/// tracing.AddOutput("h", h.Tensor());
/// using Results results = tracing.End();
/// </code>
/// It belongs to the thread that begins it.
/// </summary>
public sealed class TracingScope : AddendObject
{
    /// <summary>Begins to record.</summary>
    /// <param name="request">The inputs are the live tensors, known by their memory: contiguous, each on memory of its
    /// own.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <exception cref="InvalidOperationException">This thread is traced already.</exception>
    public TracingScope(Request request, Context? context = null)
        : base(Begin(request, context, SourceLines.OfThisThread()))
    {
    }

    private TraceHandle Handle => (TraceHandle)OwnedHandle;

    /// <summary>Says where in the model the thread is now, for reports, probes and policy.</summary>
    /// <param name="modulePath">The path, as <c>encoder.layers.3</c>; empty outside.</param>
    public void SetModule(string modulePath) =>
        AddendNative.addend_trace_set_module(Handle, Text.Checked(modulePath, nameof(modulePath)));

    /// <summary>Asks for the composition of a live tensor, which is known by its memory.</summary>
    /// <param name="name">What the result is called.</param>
    /// <param name="tensor">What a recorded operator gave.</param>
    /// <exception cref="KeyNotFoundException">No recorded operator gave that memory.</exception>
    public void AddOutput(string name, Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        AddendNative.addend_trace_add_output(Handle, Text.Checked(name, nameof(name)), tensor.Handle);
    }

    /// <summary>Stops recording and decomposes the outputs.</summary>
    /// <returns>The outputs in order, then the probes.</returns>
    public Results End()
    {
        AddendNative.addend_trace_end(Handle, out ResultsHandle results);
        return new Results(Callbacks.Finished(results));
    }

    /// <summary>What the model would be given as the baseline of an input. Ends the recording, so that the model can be run
    /// there and <see cref="AddOnBaseline"/> be told what it gave; the report then says how far the reference is from
    /// that.</summary>
    /// <param name="input">The number of the input.</param>
    /// <returns>The baseline.</returns>
    public Tensor Baseline(int input)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(input);
        AddendNative.addend_trace_baseline(Handle, (nuint)input, out TensorHandle baseline);
        return new Tensor(baseline);
    }

    /// <summary>Tells what the model gave on the baseline.</summary>
    /// <param name="name">Of an output that is named already.</param>
    /// <param name="tensor">What the model gave there for it.</param>
    /// <exception cref="KeyNotFoundException">No output has that name.</exception>
    public void AddOnBaseline(string name, Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        AddendNative.addend_trace_add_on_baseline(Handle, Text.Checked(name, nameof(name)), tensor.Handle);
    }

    private static TraceHandle Begin(Request request, Context? context, SourceLines lines)
    {
        ArgumentNullException.ThrowIfNull(request);
        if (request.Inside.Count > 0 && request.Inside[0] is { } inside)
        {
            throw new ArgumentException(
                $"{inside.Selector} is inside the model, which has to run once more to be found; a scope sees one run: " +
                "decompose a Model, or split the scope's inputs",
                nameof(request));
        }

        using RequestHandle asked = request.Build(CancellationHandle.Null);
        AddendNative.addend_trace_begin(Context.HandleOf(context), asked, out TraceHandle trace);
        Callbacks.SetFrames(trace, lines);
        return trace;
    }
}
