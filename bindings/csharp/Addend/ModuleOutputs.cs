using Addend.Native;

namespace Addend;

/// <summary>Tells scopes of live models what modules have returned.</summary>
internal static class ModuleOutputs
{
    internal static void Tell(TraceHandle trace, string modulePath, Tensor[] tensors)
    {
        string path = Text.Checked(modulePath, nameof(modulePath));
        ArgumentNullException.ThrowIfNull(tensors);
        if (tensors.Length == 0)
        {
            AddendNative.addend_trace_add_module_output(trace, path, 0, TensorHandle.Null);
        }
        for (int k = 0; k < tensors.Length; k++)
        {
            ArgumentNullException.ThrowIfNull(tensors[k], nameof(tensors));
            AddendNative.addend_trace_add_module_output(trace, path, k, tensors[k].Handle);
        }
    }
}
