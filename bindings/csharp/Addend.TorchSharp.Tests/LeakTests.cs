using System.Diagnostics;
using Addend.Native;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Ten thousand calls leave nothing behind: no tensor that TorchSharp counts, no handle of Addend, no
/// memory.</summary>
public sealed class LeakTests
{
    private const int Calls = 10_000;
    private const int Steps = 20;

    [Fact]
    public void Modules_leave_nothing()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        Repeat("modules, in scopes", () =>
        {
            using var theirs = torch.NewDisposeScope();
            using var ours = new Scope();
            _ = network.Decompose(x, Split.Along(1), baseline: 0.0).Explain();
            _ = network.Attribute(x, Split.Along(1), "0,1", baseline: 0.0).Input();
            _ = x.ToAddend().ToTorchSharp();
        });
    }

    [Fact]
    public void TorchScript_modules_leave_nothing()
    {
        using var network = torch.jit.load<TorchTensor, TorchTensor>(Files.Script("mlp"));
        network.eval();
        using TorchTensor x = torch.ones(2, 6);
        Repeat("TorchScript modules, in scopes", () =>
        {
            using var theirs = torch.NewDisposeScope();
            using var ours = new Scope();
            _ = network.Decompose(x, Split.Along(1), baseline: 0.0).Explain("0,1");
        });
    }

    // Nobody disposes anything: both collectors' finalizers do.
    [Fact]
    public void What_is_forgotten_is_released()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        Repeat("modules, nothing disposed", () => _ = network.Decompose(x, Split.Along(1), baseline: 0.0).Explain());
    }

    // Exceptions of the module and of Addend; TorchSharp itself never frees the text of an error of LibTorch.
    [Fact]
    public void Exceptions_leave_nothing()
    {
        using var network = new Networks.Failing();
        using TorchTensor x = Networks.Row();
        Repeat("exceptions, in scopes", () =>
        {
            using var theirs = torch.NewDisposeScope();
            using var ours = new Scope();
            Assert.ThrowsAny<InvalidOperationException>(() => network.Decompose(x, Split.Along(1)));
            Assert.ThrowsAny<ArgumentException>(() => network.Decompose(x, Split.Along(5)));
        });
    }

    private static void Repeat(string what, Action call)
    {
        // LibTorch's interpreter makes its last plan of a TorchScript module after some calls.
        for (int k = 0; k < 100; k++)
        {
            call();
        }
        CollectAll(null);
        long tensors = TorchTensor.TotalCount;
        long handles = AddendNative.addend_debug_live(AddendNative.ADDEND_HANDLE_ANY);
        long afterFirstFifth = 0;
        var watch = Stopwatch.StartNew();
        for (int step = 1; step <= Steps; step++)
        {
            for (int k = 0; k < Calls / Steps; k++)
            {
                call();
            }
            CollectAll(tensors);
            Assert.Equal(tensors, TorchTensor.TotalCount);
            Assert.Equal(handles, AddendNative.addend_debug_live(AddendNative.ADDEND_HANDLE_ANY));
            if (step == Steps / 5)
            {
                afterFirstFifth = LibTorch.Resident();
            }
        }
        double grown = (LibTorch.Resident() - afterFirstFifth) / 1048576.0;
        TestContext.Current.TestOutputHelper?.WriteLine(
            $"{what}: {Calls} calls in {watch.Elapsed.TotalSeconds:F1} s, grew by {grown:F2} MiB after the first fifth");
        Assert.True(grown < 8, $"grew by {grown} MiB");
    }

    // Until the count is down, or half a minute has passed: how many rounds the collector needs is its own business.
    private static void CollectAll(long? tensors)
    {
        for (var waited = Stopwatch.StartNew(); waited.Elapsed < TimeSpan.FromSeconds(30);)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            if (tensors is null || TorchTensor.TotalCount <= tensors)
            {
                return;
            }
        }
    }
}
