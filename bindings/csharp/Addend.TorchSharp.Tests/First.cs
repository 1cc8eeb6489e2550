using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>The other order: Addend loads LibTorch, from the folder in ADDEND_LIBTORCH_PATH, and TorchSharp takes
/// it.</summary>
internal static class First
{
    internal static int Run()
    {
        AddendLibrary.CheckLibTorch();
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        using Results results = network.Decompose(x, Split.Along(1), baseline: 0.0);
        using Composition composition = results.Composition();
        composition.IsOf(ModuleTests.Call(network, x));
        Assert.Single(LibTorch.Loaded("libtorch_cpu"));
        Console.WriteLine("ok");
        return 0;
    }
}
