using Addend.Native;

namespace Addend;

/// <summary>
/// Records every operator that this thread calls until it ends, whoever calls it, as a program: a model written with
/// <see cref="Operators.Call(string, Argument[])"/> on plain tensors, with C#'s own control flow. Each operator stands under
/// the lines that called it, as far as debug information tells them.
/// <code>
/// using var recording = new RecordingScope(new Request(x));
/// using Results h = Operators.Call("aten::relu", x);
/// recording.AddOutput(h.Tensor());
/// using RecordedProgram program = recording.End();
/// </code>
/// It belongs to the thread that begins it.
/// </summary>
public sealed class RecordingScope : ModuleScope
{
    private readonly SourceLines? _lines;

    /// <summary>Begins to record.</summary>
    /// <param name="request">The inputs are the live tensors, known by their memory: contiguous, each on memory of its own.
    /// They become those of the program, <see cref="Request.Parameters"/> are known by their names, and tensors that come
    /// from elsewhere are constants. How inputs are split is not looked at.</param>
    /// <param name="lines">Whether every operator knows the lines that called it, which takes a walk over the
    /// stack for each.</param>
    /// <exception cref="InvalidOperationException">This thread is traced already.</exception>
    public RecordingScope(Request request, bool lines = true)
        : this(request, lines ? SourceLines.OfThisThread() : null)
    {
    }

    internal RecordingScope(Request request, SourceLines? lines)
        : base(Begin(request, lines)) => _lines = lines;

    /// <summary>Makes a live tensor, which is known by its memory, the program's next output.</summary>
    /// <param name="tensor">What a recorded operator gave.</param>
    public void AddOutput(Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        AddendNative.addend_trace_add_output(Handle, "output", tensor.Handle);
    }

    /// <summary>Stops recording.</summary>
    /// <returns>The program.</returns>
    /// <exception cref="ArgumentException">No output was named.</exception>
    /// <exception cref="NotSupportedException">Something cannot be recorded.</exception>
    public RecordedProgram End()
    {
        try
        {
            AddendNative.addend_trace_end_program(Handle, out ProgramHandle program);
            return new RecordedProgram(program);
        }
        catch (AddendException error) when (error.Code == ErrorCode.Unknown && _lines?.Thrown is not null)
        {
            _lines.Thrown.Throw();
            throw;
        }
    }

    private static TraceHandle Begin(Request request, SourceLines? lines)
    {
        ArgumentNullException.ThrowIfNull(request);
        using RequestHandle asked = request.Build(CancellationHandle.Null);
        return Callbacks.Record(asked, lines);
    }
}
