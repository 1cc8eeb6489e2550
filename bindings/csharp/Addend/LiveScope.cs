using Addend.Native;

namespace Addend;

/// <summary>A scope in which every LibTorch operator that this thread calls is recorded, whoever calls it:
/// <see cref="Operators.Call(string, Argument[])"/>, or a native library that computes with the same LibTorch. It is
/// the base of <see cref="TracingScope"/> and <see cref="AttributionScope"/>. Inputs, parameters, buffers and outputs
/// are live tensors, known by their memory. A scope belongs to the thread that begins it: it must not be held across an
/// <c>await</c>.</summary>
public abstract class LiveScope : ModuleScope
{
    private protected delegate void Begins(ContextHandle context, RequestHandle request, out TraceHandle trace);

    private protected LiveScope(Begins begins, Request request, Context? context)
        : base(Begin(begins, request, context, SourceLines.OfThisThread()))
    {
    }

    /// <summary>Names a live tensor, which is known by its memory, as an output.</summary>
    /// <param name="name">What the output is called.</param>
    /// <param name="tensor">What a recorded operator gave.</param>
    /// <exception cref="KeyNotFoundException">No recorded operator gave that memory.</exception>
    public void AddOutput(string name, Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        AddendNative.addend_trace_add_output(Handle, Text.Checked(name, nameof(name)), tensor.Handle);
    }

    /// <summary>Adds a line to the notes of the report: what was done to the model, for example.</summary>
    /// <param name="note">The line.</param>
    public void AddNote(string note) => AddendNative.addend_trace_add_note(Handle, Text.Checked(note, nameof(note)));

    /// <summary>Begins the second run of the model, where the request splits a tensor <see cref="Request.Inside"/> the
    /// model. The first run has found that tensor, and its outputs were named. The model now runs once more with the same
    /// numbers, and its outputs are named again.</summary>
    /// <exception cref="ArgumentException">Nothing inside has the name of the split.</exception>
    /// <exception cref="InvalidOperationException">Nothing inside is split.</exception>
    public void RunAgain()
    {
        AddendNative.addend_trace_again(Handle);
        Callbacks.Finished();
    }

    /// <summary>The baseline of an input, as the model would be given it. Ends the recording, so that the model can be
    /// run on it and its outputs passed to <see cref="AddOnBaseline"/>; the report then says how far the reference is
    /// from them.</summary>
    /// <param name="input">The number of the input.</param>
    /// <returns>The baseline.</returns>
    public Tensor Baseline(int input)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(input);
        AddendNative.addend_trace_baseline(Handle, (nuint)input, out TensorHandle baseline);
        return new Tensor(Callbacks.Finished(baseline));
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

    private static TraceHandle Begin(Begins begins, Request request, Context? context, SourceLines lines)
    {
        ArgumentNullException.ThrowIfNull(request);
        using RequestHandle asked = request.Build(CancellationHandle.Null);
        Callbacks.Begin();
        begins(Context.HandleOf(context), asked, out TraceHandle trace);
        Callbacks.SetFrames(trace, lines);
        return Callbacks.Finished(trace);
    }
}
