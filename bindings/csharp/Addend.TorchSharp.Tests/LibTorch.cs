using System.Runtime.InteropServices;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>The LibTorch that TorchSharp's native library takes: the one in a folder, such as that of pip's torch.</summary>
internal static class LibTorch
{
    /// <summary>Loads it. TorchSharp's library needs libtorch.so, libtorch_cpu.so and libc10.so by these names, and the
    /// system's loader takes those that are loaded; the first brings the other two.</summary>
    internal static void Load()
    {
        string? folder = Environment.GetEnvironmentVariable("ADDEND_TORCHSHARP_LIBTORCH");
        if (!string.IsNullOrEmpty(folder))
        {
            NativeLibrary.Load(Path.Combine(folder, "libtorch.so"));
        }
    }

    /// <summary>The files of this process whose name begins in this way.</summary>
    internal static string[] Loaded(string name) =>
    [
        .. File.ReadLines("/proc/self/maps")
            .Select(line => line.Split(' ')[^1])
            .Where(path => Path.GetFileName(path).StartsWith(name, StringComparison.Ordinal))
            .Distinct(),
    ];

    /// <summary>Has finalizers run for what other tests forgot, so that TorchSharp's count of tensors stands still.</summary>
    internal static long Settled()
    {
        for (long before = -1, now = TorchTensor.TotalCount; ; before = now, now = TorchTensor.TotalCount)
        {
            if (before == now)
            {
                return now;
            }
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }

    /// <summary>Memory of this process that lies in RAM, in bytes.</summary>
    internal static long Resident() =>
        long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1], null) * Environment.SystemPageSize;
}
