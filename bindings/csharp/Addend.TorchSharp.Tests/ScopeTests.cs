using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Scopes of TorchSharp, which dispose its tensors, and of Addend, in one another.</summary>
public sealed class ScopeTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Addend_keeps_what_a_scope_of_TorchSharp_disposes()
    {
        using Modules.Sequential network = Networks.Perceptron();
        Tensor x;
        Results results;
        Attribution attribution;
        float[] computed;
        TorchTensor gone;
        using (torch.NewDisposeScope())
        {
            gone = Networks.Row();
            x = gone.ToAddend();
            results = network.Decompose(gone, Split.Along(1), baseline: 0.0);
            attribution = network.Attribute(gone, Split.Along(1), "0,1", baseline: 0.0);
            computed = network.call(gone).Floats();
        }
        Assert.True(gone.IsInvalid);
        results.Composition().IsOf(computed);
        Assert.InRange(attribution.Explain().Value, computed[1] - 1e-6, computed[1] + 1e-6);
        using TorchTensor again = x.ToTorchSharp();
        Compare.SameBits(computed, ModuleTests.Call(network, again));
    }

    [Fact]
    public void TorchSharp_keeps_what_a_scope_of_Addend_disposes()
    {
        Tensor gone;
        TorchTensor kept;
        using (new Scope())
        {
            gone = Tensor.From(new float[] { 1, 2, 3 }, 3);
            kept = gone.ToTorchSharp();
        }
        Assert.Throws<ObjectDisposedException>(() => gone.Shape);
        Assert.Equal([1, 2, 3], kept.Floats());
        kept.Dispose();
    }

    [Fact]
    public void What_is_given_to_TorchSharp_belongs_to_its_scope()
    {
        Tensor here = Tensor.From(new float[] { 1, 2, 3 }, 3);
        TorchTensor lent;
        TorchTensor moved;
        long before = LibTorch.Settled();
        using (torch.NewDisposeScope())
        {
            lent = here.ToTorchSharp();
            moved = here.ToTorchSharp().MoveToOuterDisposeScope();
            Assert.Equal(before + 2, LibTorch.Settled());
        }
        Assert.True(lent.IsInvalid);
        Assert.Equal([1, 2, 3], moved.Floats());
        Assert.Equal([1, 2, 3], here.Floats());
        moved.Dispose();
        Assert.Equal(before, LibTorch.Settled());
    }

    // Memory that is freed during a run may be reused by another tensor.
    [Fact]
    public void Scopes_within_a_run_free_nothing_that_is_recorded()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        TorchTensor Run()
        {
            TorchTensor h = x.clone();
            for (int k = 0; k < 50; k++)
            {
                using var inner = torch.NewDisposeScope();
                TorchTensor next = ((h * 1.1) - 0.1).relu().add(0.01);
                h.Dispose();
                h = next.MoveToOuterDisposeScope();
            }
            using (h)
            {
                return network.call(h);
            }
        }
        using TorchTensor computed = Run();
        var request = new Request(new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 });
        Results results = network.Decompose(request, Run);
        results.Composition().IsOf(computed.Floats());
    }

    [Fact]
    public void Inputs_may_be_disposed_once_the_module_has_run()
    {
        using Modules.Sequential network = Networks.Perceptron();
        TorchTensor x = Networks.Row();
        float[] computed = ModuleTests.Call(network, x);
        var request = new Request(new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 });
        Results results = network.Decompose(request, () =>
        {
            TorchTensor y = network.call(x);
            x.Dispose();
            return y;
        });
        results.Composition().IsOf(computed);
    }
}
