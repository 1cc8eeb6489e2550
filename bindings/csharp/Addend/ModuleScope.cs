using Addend.Native;

namespace Addend;

/// <summary>A scope that records what this thread calls, and under which module of the model: the base of
/// <see cref="LiveScope"/> and <see cref="RecordingScope"/>.</summary>
public abstract class ModuleScope : AddendObject
{
    private protected ModuleScope(TraceHandle handle)
        : base(handle)
    {
    }

    private protected TraceHandle Handle => (TraceHandle)OwnedHandle;

    /// <summary>Says where in the model the thread is now, for reports, probes, policies and programs.</summary>
    /// <param name="modulePath">The path, as <c>encoder.layers.3</c>; empty outside.</param>
    public void SetModule(string modulePath) =>
        AddendNative.addend_trace_set_module(Handle, Text.Checked(modulePath, nameof(modulePath)));

    /// <summary>Tells what a module has just returned. The path of the module then means these tensors.</summary>
    /// <param name="modulePath">The path, as <c>encoder.layers.3</c>.</param>
    /// <param name="tensors">All tensors that it returns, in order; none where it returns none.</param>
    public void AddModuleOutputs(string modulePath, params Tensor[] tensors)
    {
        string path = Text.Checked(modulePath, nameof(modulePath));
        ArgumentNullException.ThrowIfNull(tensors);
        if (tensors.Length == 0)
        {
            AddendNative.addend_trace_add_module_output(Handle, path, 0, TensorHandle.Null);
        }
        for (int k = 0; k < tensors.Length; k++)
        {
            ArgumentNullException.ThrowIfNull(tensors[k], nameof(tensors));
            AddendNative.addend_trace_add_module_output(Handle, path, k, tensors[k].Handle);
        }
    }
}
