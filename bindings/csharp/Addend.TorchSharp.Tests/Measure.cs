using System.Diagnostics;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Measures the cost of the start: <c>measure torchsharp</c> computes one tensor with TorchSharp,
/// <c>measure addend</c> explains a module of it besides, and <c>measure opened</c> only opens Addend. Prints a line of
/// JSON with the time it took and the memory in use.</summary>
internal static class Measure
{
    internal static int Run(string[] arguments)
    {
        string what = arguments.Length == 1 ? arguments[0] : "";
        if (what is not ("torchsharp" or "opened" or "addend"))
        {
            Console.Error.WriteLine("measure torchsharp|opened|addend");
            return 1;
        }
        double started = (DateTime.Now - Process.GetCurrentProcess().StartTime).TotalMilliseconds;
        var watch = Stopwatch.StartNew();
        using nn.Module<TorchTensor, TorchTensor> module = nn.Sequential(("linear", nn.Linear(4, 3)));
        using TorchTensor x = torch.ones(1, 4);
        using TorchTensor y = module.call(x);
        double torchSharp = watch.Elapsed.TotalMilliseconds;
        long residentBefore = LibTorch.Resident();
        watch.Restart();
        if (what != "torchsharp")
        {
            AddendLibrary.CheckLibTorch();
        }
        if (what == "addend")
        {
            using Results results = module.Decompose(x, Split.Along(1));
            _ = results.Explain();
        }
        double addend = watch.Elapsed.TotalMilliseconds;
        Console.WriteLine(FormattableString.Invariant(
            $"{{\"what\":\"{what}\",\"before_ms\":{started:F0},\"torchsharp_ms\":{torchSharp:F0},\"addend_ms\":{addend:F0},\"resident_before_mib\":{residentBefore / 1048576.0:F1},\"resident_mib\":{LibTorch.Resident() / 1048576.0:F1}}}"));
        return 0;
    }
}
