using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace Addend.Native;

/// <summary>
/// The functions that the library calls. An exception must not cross it: it is kept for the thread, on which callbacks
/// come, and thrown when the call that they belong to returns. Every call with a context, a plan or a trace therefore ends
/// with <see cref="Finished()"/>, and whatever begins one with <see cref="Begin"/>.
/// </summary>
internal static unsafe class Callbacks
{
    [ThreadStatic]
    private static ExceptionDispatchInfo? t_pending;

    internal static readonly IntPtr Log = (IntPtr)(delegate* unmanaged[Cdecl]<IntPtr, int, IntPtr, void>)&OnLog;

    internal static readonly IntPtr Progress =
        (IntPtr)(delegate* unmanaged[Cdecl]<IntPtr, IntPtr, long, long, int>)&OnProgress;

    internal static readonly IntPtr Frames = (IntPtr)(delegate* unmanaged[Cdecl]<IntPtr, IntPtr, int>)&OnFrames;

    internal static readonly IntPtr Release = (IntPtr)(delegate* unmanaged[Cdecl]<IntPtr, void>)&OnRelease;

    internal static readonly IntPtr Unpin = (IntPtr)(delegate* unmanaged[Cdecl]<IntPtr, void>)&OnUnpin;

    /// <summary>Takes the exception that a callback threw on this thread since the last call; null if there is
    /// none.</summary>
    internal static ExceptionDispatchInfo? TakePending()
    {
        ExceptionDispatchInfo? pending = t_pending;
        t_pending = null;
        return pending;
    }

    /// <summary>Begins to record, with lines from <paramref name="lines"/> where it is not null.</summary>
    internal static TraceHandle Record(RequestHandle request, SourceLines? lines)
    {
        if (lines is null)
        {
            AddendNative.addend_trace_record(request, IntPtr.Zero, IntPtr.Zero, IntPtr.Zero, out TraceHandle plain);
            return plain;
        }
        GCHandle payload = GCHandle.Alloc(lines);
        try
        {
            AddendNative.addend_trace_record(
                request, Frames, GCHandle.ToIntPtr(payload), Release, out TraceHandle trace);
            return trace;
        }
        catch
        {
            payload.Free();
            throw;
        }
    }

    /// <summary>Lets notes of a trace tell the lines at which the model makes conditions and indices.</summary>
    internal static void SetFrames(TraceHandle trace, SourceLines lines)
    {
        GCHandle payload = GCHandle.Alloc(lines);
        try
        {
            AddendNative.addend_trace_set_frames(trace, Frames, GCHandle.ToIntPtr(payload), Release);
        }
        catch
        {
            payload.Free();
            throw;
        }
    }

    /// <summary>Forgets what a trace left behind that was never ended, so that another run does not throw it.</summary>
    internal static void Begin() => t_pending = null;

    /// <summary>Returns the result of a run; if a callback threw during it, disposes the result and throws that
    /// exception.</summary>
    internal static T Finished<T>(T result)
    {
        if (t_pending is not null)
        {
            (result as IDisposable)?.Dispose();
        }
        Finished();
        return result;
    }

    /// <inheritdoc cref="Finished{T}"/>
    internal static void Finished() => TakePending()?.Throw();

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static void OnLog(IntPtr payload, int level, IntPtr message)
    {
        var log = (Action<MessageLevel, string>)GCHandle.FromIntPtr(payload).Target!;
        Tell(() => log((MessageLevel)level, Text.Static(message)));
    }

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static int OnProgress(IntPtr payload, IntPtr stage, long done, long total)
    {
        var progress = (IProgress<RunProgress>)GCHandle.FromIntPtr(payload).Target!;
        return Tell(() => progress.Report(new RunProgress(Text.Static(stage), done, total > 0 ? total : null))) ? 0 : 1;
    }

    // Whether a listener threw nothing. What it threw before is put aside meanwhile: it may ask the library for something
    // itself, which throws its own.
    private static bool Tell(Action tell)
    {
        ExceptionDispatchInfo? first = TakePending();
        try
        {
            tell();
            return true;
        }
        catch (Exception thrown)
        {
            first ??= ExceptionDispatchInfo.Capture(thrown);
            return false;
        }
        finally
        {
            t_pending = first;
        }
    }

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static int OnFrames(IntPtr payload, IntPtr frames) =>
        ((SourceLines)GCHandle.FromIntPtr(payload).Target!).Add(frames);

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static void OnRelease(IntPtr payload) => GCHandle.FromIntPtr(payload).Free();

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static void OnUnpin(IntPtr payload)
    {
        GCHandle owner = GCHandle.FromIntPtr(payload);
        ((IDisposable)owner.Target!).Dispose();
        owner.Free();
    }
}
