using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp;

/// <summary>Tensors of TorchSharp as tensors of Addend and back, without a copy: the storage, strides, device and place in
/// autograd's graph are the same.</summary>
public static class TensorExtensions
{
    /// <summary>The tensor for Addend.</summary>
    /// <param name="tensor">A dense tensor.</param>
    /// <returns>A new object on the same storage, which lives as long as either side needs it.</returns>
    /// <exception cref="InvalidOperationException">Addend was built for another LibTorch than TorchSharp has
    /// loaded.</exception>
    /// <exception cref="NotSupportedException">The tensor is sparse or quantized.</exception>
    public static Tensor ToAddend(this TorchTensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        Tensor made = Tensor.FromLibTorch(tensor.Handle);
        GC.KeepAlive(tensor);
        return made;
    }

    /// <summary>The tensor for TorchSharp. Its memory must not be written.</summary>
    /// <param name="tensor">The tensor.</param>
    /// <returns>A new object on the same storage, which lives as long as either side needs it.</returns>
    /// <exception cref="InvalidOperationException">Addend was built for another LibTorch than TorchSharp has
    /// loaded.</exception>
    public static TorchTensor ToTorchSharp(this Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        // TorchSharp deletes the at::Tensor with its own object.
        return TorchTensor.UnsafeCreateTensor(tensor.ToLibTorch());
    }
}
