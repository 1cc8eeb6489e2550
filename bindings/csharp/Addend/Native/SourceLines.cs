using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;

namespace Addend.Native;

/// <summary>The lines that call an operator, which the library asks for. No exception may cross it: what is thrown is kept
/// until the recording is told.</summary>
/// <param name="frames">Gives them, the innermost first.</param>
internal sealed class SourceLines(Func<IReadOnlyList<StackFrame>> frames)
{
    /// <summary>The exception that ended the recording; null if none did.</summary>
    internal ExceptionDispatchInfo? Thrown { get; private set; }

    /// <summary>Those of this thread from the method that calls us on to the one that runs then: what is outside of it, such
    /// as a test runner, is outside of the model.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static SourceLines OfThisThread()
    {
        int depth = Callers(withLines: false).Count;
        return new SourceLines(() =>
        {
            List<StackFrame> callers = Callers(withLines: true);
            return callers[..Math.Max(1, callers.Count - depth + 1)];
        });
    }

    /// <summary>Adds them to what the library collects; anything but 0 ends the recording.</summary>
    internal int Add(IntPtr collected)
    {
        try
        {
            foreach (StackFrame frame in frames().Reverse())
            {
                // Without debug information there is no line.
                if (frame.GetFileName() is { } file && frame.GetFileLineNumber() is > 0 and var line)
                {
                    AddendNative.addend_frames_add(
                        collected, file, line, MethodOf(frame)?.Name ?? "", null!, -1, 0);
                }
            }
            return 0;
        }
        catch (Exception thrown)
        {
            Thrown = ExceptionDispatchInfo.Capture(thrown);
            return -1;
        }
    }

    // The innermost first, without ours at the beginning.
    private static List<StackFrame> Callers(bool withLines)
    {
        StackFrame[] all = new StackTrace(withLines).GetFrames();
        return [.. all.SkipWhile(frame => MethodOf(frame)?.Module.Assembly == typeof(SourceLines).Assembly)];
    }

    [UnconditionalSuppressMessage("Trimming", "IL2026", Justification = "A method that was trimmed away has no name in the recording.")]
    private static MethodBase? MethodOf(StackFrame frame) => frame.GetMethod();
}
