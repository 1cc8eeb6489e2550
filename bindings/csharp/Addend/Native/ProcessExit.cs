using System.Collections.Concurrent;
using System.Runtime.InteropServices;

namespace Addend.Native;

/// <summary>
/// The end of the process while threads compute. Handlers of ProcessExit may still use the library, and wait for threads that
/// do; so nothing is refused before the last of them has returned. Then exit() cancels the runs that are known here and waits
/// for all calls: native/calls.h says how.
/// </summary>
internal static class ProcessExit
{
    // A set of the cancellations of all runs that go on; the values mean nothing.
    private static readonly ConcurrentDictionary<CancellationHandle, bool> Running = new();

    /// <summary>To be called when the library has been loaded.</summary>
    internal static void Watch() => AppDomain.CurrentDomain.ProcessExit += (_, _) =>
    {
        IntPtr[] running = [.. Running.Keys.Select(cancellation => cancellation.DangerousGetHandle())];
        csharp_at_exit(running, (nuint)running.Length);
    };

    internal static void Add(CancellationHandle cancellation) => Running.TryAdd(cancellation, true);

    internal static void Remove(CancellationHandle cancellation) => Running.TryRemove(cancellation, out _);

    [DllImport(Library.Wrapper)]
    private static extern void csharp_at_exit(IntPtr[] cancellations, nuint count);
}
