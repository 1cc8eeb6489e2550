using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Addend.Native;

/// <summary>
/// A handle of the C interface. The runtime keeps it alive around every call that it is passed to, so neither a
/// finalizer nor another thread can release it under a call that still runs.
/// </summary>
internal abstract class NativeHandle() : SafeHandleZeroOrMinusOneIsInvalid(ownsHandle: true)
{
    private protected abstract void Release(IntPtr owned);

    protected sealed override bool ReleaseHandle()
    {
        Release(handle);
        return true;
    }
}

internal sealed class ArgumentsHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_arguments_release(owned);
}

internal sealed class AttributionHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_attribution_release(owned);
}

internal sealed class CancellationHandle : NativeHandle
{
    internal static readonly CancellationHandle Null = new();

    private protected override void Release(IntPtr owned) => Releases.addend_cancellation_release(owned);
}

internal sealed class CompositionHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_composition_release(owned);
}

internal sealed class ContextHandle : NativeHandle
{
    /// <summary>The context of the defaults.</summary>
    internal static readonly ContextHandle Null = new();

    private protected override void Release(IntPtr owned) => Releases.addend_context_release(owned);
}

internal sealed class ContextOptionsHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_context_options_release(owned);
}

internal sealed class ExplanationHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_explanation_release(owned);
}

internal sealed class ModelHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_model_release(owned);
}

internal sealed class ProgramHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_program_release(owned);
}

internal sealed class RequestHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_request_release(owned);
}

internal sealed class ResultsHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_results_release(owned);
}

internal sealed class StringHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_string_release(owned);
}

internal sealed class TensorHandle : NativeHandle
{
    /// <summary>A tensor that is not given.</summary>
    internal static readonly TensorHandle Null = new();

    private protected override void Release(IntPtr owned) => Releases.addend_tensor_release(owned);
}

internal sealed class TensorFileHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_tensor_file_release(owned);
}

internal sealed class TraceHandle : NativeHandle
{
    private protected override void Release(IntPtr owned) => Releases.addend_trace_release(owned);
}

/// <summary>The functions that handles end with. They take the pointer: a SafeHandle that is being released cannot be
/// passed any more.</summary>
internal static class Releases
{
    [DllImport(Library.Core)]
    internal static extern void addend_arguments_release(IntPtr arguments);

    [DllImport(Library.Core)]
    internal static extern void addend_attribution_release(IntPtr attribution);

    [DllImport(Library.Core)]
    internal static extern void addend_cancellation_release(IntPtr cancellation);

    [DllImport(Library.Core)]
    internal static extern void addend_composition_release(IntPtr composition);

    [DllImport(Library.Core)]
    internal static extern void addend_context_release(IntPtr context);

    [DllImport(Library.Core)]
    internal static extern void addend_context_options_release(IntPtr options);

    [DllImport(Library.Core)]
    internal static extern void addend_explanation_release(IntPtr explanation);

    [DllImport(Library.Core)]
    internal static extern void addend_model_release(IntPtr model);

    [DllImport(Library.Core)]
    internal static extern void addend_program_release(IntPtr program);

    [DllImport(Library.Core)]
    internal static extern void addend_request_release(IntPtr request);

    [DllImport(Library.Core)]
    internal static extern void addend_results_release(IntPtr results);

    [DllImport(Library.Core)]
    internal static extern void addend_string_release(IntPtr text);

    [DllImport(Library.Core)]
    internal static extern void addend_tensor_release(IntPtr tensor);

    [DllImport(Library.Core)]
    internal static extern void addend_tensor_file_release(IntPtr file);

    [DllImport(Library.Core)]
    internal static extern void addend_trace_release(IntPtr trace);
}
