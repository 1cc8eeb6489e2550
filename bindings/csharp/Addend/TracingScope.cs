using Addend.Native;

namespace Addend;

/// <summary>
/// Records every operator that this thread calls until it ends, whoever calls it, and decomposes what was computed: a
/// model of a native library, or one written with <see cref="Operators.Call(string, Argument[])"/> on plain tensors, with
/// C#'s own control flow.
/// <code>
/// using var tracing = new TracingScope(new Request(new Input(x) { Split = Split.Along(-1) }));
/// using Results h = Operators.Call("aten::relu", x);
/// tracing.AddOutput("h", h.Tensor());
/// using Results results = tracing.End();
/// </code>
/// It belongs to the thread that begins it.
/// </summary>
public sealed class TracingScope : LiveScope
{
    /// <summary>Begins to record.</summary>
    /// <param name="request">The inputs are the live tensors, known by their memory: contiguous, each on memory of its
    /// own.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <exception cref="InvalidOperationException">This thread is traced already.</exception>
    public TracingScope(Request request, Context? context = null)
        : base(AddendNative.addend_trace_begin, request, context)
    {
    }

    /// <summary>Stops recording and decomposes the outputs.</summary>
    /// <returns>The outputs in order, then the probes.</returns>
    /// <exception cref="InvalidOperationException">The request splits a tensor inside the model, which has to run
    /// again: see <see cref="LiveScope.RunAgain"/>.</exception>
    public Results End()
    {
        AddendNative.addend_trace_end(Handle, out ResultsHandle results);
        return new Results(Callbacks.Finished(results));
    }
}
