using System.Reflection;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace Addend.Tests;

/// <summary>The model of tests/native_model, a native library that computes with LibTorch, as any wrapper of such a library
/// has it: tensors are the addresses of <c>at::Tensor</c> objects.</summary>
internal sealed class NativeModel : IDisposable
{
    private const string Name = "native_model";

    private readonly IntPtr _model = native_model_create();

    static NativeModel() => NativeLibrary.SetDllImportResolver(typeof(NativeModel).Assembly, Resolve);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    private delegate void Hook(IntPtr payload, IntPtr modulePath);

    /// <summary>Is told the path of the module that runs from now on.</summary>
    internal Action<string>? Entered { get; set; }

    /// <summary>Names of parameters (learned) and buffers, with the addresses of the tensors.</summary>
    internal IEnumerable<(string Name, bool Learned, IntPtr Tensor)> Tensors()
    {
        for (nuint index = 0; index < native_model_num_tensors(_model); index++)
        {
            yield return (
                Marshal.PtrToStringUTF8(native_model_tensor_name(_model, index))!,
                native_model_tensor_is_learned(_model, index) != 0,
                native_model_tensor(_model, index));
        }
    }

    /// <summary>Runs the model. What <see cref="Entered"/> throws is thrown when it has run: nothing may be thrown through
    /// native code.</summary>
    internal NativeTensor Forward(NativeTensor x)
    {
        ExceptionDispatchInfo? thrown = null;
        Hook hook = (_, path) =>
        {
            try
            {
                Entered?.Invoke(Marshal.PtrToStringUTF8(path)!);
            }
            catch (Exception caught)
            {
                thrown ??= ExceptionDispatchInfo.Capture(caught);
            }
        };
        NativeTensor made = NativeTensor.Made(native_model_forward(_model, x.Handle, hook, IntPtr.Zero));
        GC.KeepAlive(hook);
        if (thrown is not null)
        {
            made.Dispose();
            thrown.Throw();
        }
        return made;
    }

    /// <summary>Releases the model.</summary>
    public void Dispose() => native_model_release(_model);

    internal static IntPtr NewTensor(float[] numbers, long[] sizes) =>
        native_tensor(numbers, sizes, (nuint)sizes.Length);

    internal static void Release(IntPtr tensor) => native_tensor_release(tensor);

    internal static IntPtr Linear(IntPtr x, IntPtr weight, IntPtr bias) => native_linear(x, weight, bias);

    internal static IntPtr Relu(IntPtr x) => native_relu(x);

    internal static string Error() => Marshal.PtrToStringUTF8(native_error()) ?? "";

    private static IntPtr Resolve(string name, Assembly assembly, DllImportSearchPath? searchPath) => name == Name
        ? NativeLibrary.Load(Samples.Runfile("tests/native_model/libnative_model.so"))
        : IntPtr.Zero;

    [DllImport(Name)]
    private static extern IntPtr native_error();

    [DllImport(Name)]
    private static extern IntPtr native_tensor(float[] numbers, long[] sizes, nuint count);

    [DllImport(Name)]
    private static extern void native_tensor_release(IntPtr tensor);

    [DllImport(Name)]
    private static extern IntPtr native_linear(IntPtr x, IntPtr weight, IntPtr bias);

    [DllImport(Name)]
    private static extern IntPtr native_relu(IntPtr x);

    [DllImport(Name)]
    private static extern IntPtr native_model_create();

    [DllImport(Name)]
    private static extern void native_model_release(IntPtr model);

    [DllImport(Name)]
    private static extern nuint native_model_num_tensors(IntPtr model);

    [DllImport(Name)]
    private static extern IntPtr native_model_tensor_name(IntPtr model, nuint index);

    [DllImport(Name)]
    private static extern int native_model_tensor_is_learned(IntPtr model, nuint index);

    [DllImport(Name)]
    private static extern IntPtr native_model_tensor(IntPtr model, nuint index);

    [DllImport(Name)]
    private static extern IntPtr native_model_forward(IntPtr model, IntPtr x, Hook hook, IntPtr payload);
}

/// <summary>A tensor of that library.</summary>
internal sealed class NativeTensor : IDisposable
{
    private NativeTensor(IntPtr handle) => Handle = handle;

    /// <summary>The address of the <c>at::Tensor</c>.</summary>
    internal IntPtr Handle { get; }

    internal static NativeTensor Of(float[] numbers, params long[] sizes) => Made(NativeModel.NewTensor(numbers, sizes));

    internal static NativeTensor Made(IntPtr handle) => handle != IntPtr.Zero
        ? new NativeTensor(handle)
        : throw new InvalidOperationException(NativeModel.Error());

    /// <summary>Deletes the object; what it refers to lives as long as somebody needs it.</summary>
    public void Dispose() => NativeModel.Release(Handle);
}
