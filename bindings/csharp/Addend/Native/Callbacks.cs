using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace Addend.Native;

/// <summary>
/// The functions that the library calls. An exception must not cross it: it is kept for the thread, on which callbacks
/// come, and thrown when the call that they belong to returns.
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

    /// <summary>What a callback threw on this thread since the last time, if anything.</summary>
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

    /// <summary>What a run gives, unless the log callback threw while it went on.</summary>
    internal static THandle Finished<THandle>(THandle results)
        where THandle : NativeHandle
    {
        if (TakePending() is { } thrown)
        {
            results.Dispose();
            thrown.Throw();
        }
        return results;
    }

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static void OnLog(IntPtr payload, int level, IntPtr message)
    {
        try
        {
            var log = (Action<MessageLevel, string>)GCHandle.FromIntPtr(payload).Target!;
            log((MessageLevel)level, Text.Static(message));
        }
        catch (Exception thrown)
        {
            t_pending ??= ExceptionDispatchInfo.Capture(thrown);
        }
    }

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    private static int OnProgress(IntPtr payload, IntPtr stage, long done, long total)
    {
        try
        {
            var progress = (IProgress<RunProgress>)GCHandle.FromIntPtr(payload).Target!;
            progress.Report(new RunProgress(Text.Static(stage), done, total > 0 ? total : null));
            return 0;
        }
        catch (Exception thrown)
        {
            t_pending ??= ExceptionDispatchInfo.Capture(thrown);
            return 1;
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
