using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Explanations between the steps of an optimizer.</summary>
public sealed class TrainingTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Training_goes_on_as_if_nobody_had_explained()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using Modules.Sequential twin = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        using var optimizer = torch.optim.SGD(network.parameters(), learningRate: 0.1, momentum: 0.9);
        using var twins = torch.optim.SGD(twin.parameters(), learningRate: 0.1, momentum: 0.9);
        float[] before = [];
        for (int step = 0; step < 5; step++)
        {
            float[] computed = ModuleTests.Call(network, x);
            Assert.NotEqual(before, computed);
            Results results = network.Decompose(x, Split.Along(1), baseline: 0.0);
            results.Composition().IsOf(computed);
            Attribution attribution = network.Attribute(x, Split.Along(1), "0,1", baseline: 0.0);
            float[] parts = attribution.Input().Floats();
            float reference = (float)attribution.Explain().Reference;
            Assert.InRange(parts.Sum() + reference, computed[1] - 1e-5, computed[1] + 1e-5);
            Step(network, optimizer, x);
            Step(twin, twins, x);
            foreach ((Modules.Parameter one, Modules.Parameter other) in network.parameters().Zip(twin.parameters()))
            {
                Compare.SameBits(other.Floats(), one.Floats());
                Compare.SameBits(other.grad!.Floats(), one.grad!.Floats());
            }
            before = computed;
        }
    }

    // A run that is explained is part of autograd's graph as usual.
    [Fact]
    public void Gradients_pass_through_what_was_explained()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row().requires_grad_();
        using TorchTensor plain = network.call(x);
        plain.sum().backward();
        float[] expected = x.grad!.Floats();
        x.grad = null;
        TorchTensor? y = null;
        var request = new Request(new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 });
        Results results = network.Decompose(request, () => y = network.call(x));
        Assert.True(y!.requires_grad);
        y.sum().backward();
        Compare.SameBits(expected, x.grad!.Floats());
        results.Composition().IsOf(plain.Floats());
        y.Dispose();
    }

    [Fact]
    public void Gradients_that_are_off_make_no_difference()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        float[] with = network.Decompose(x, Split.Along(1)).Composition().Components().Floats();
        using (torch.no_grad())
        {
            Compare.SameBits(with, network.Decompose(x, Split.Along(1)).Composition().Components().Floats());
        }
        using (torch.inference_mode(true))
        {
            Compare.SameBits(with, network.Decompose(x, Split.Along(1)).Composition().Components().Floats());
        }
        using TorchTensor again = network.call(x);
        Assert.True(again.requires_grad);
    }

    [Fact]
    public void Training_mode_moves_statistics_once_for_each_run()
    {
        torch.manual_seed(9);
        using Modules.BatchNorm2d norm = nn.BatchNorm2d(2);
        using Modules.BatchNorm2d twin = nn.BatchNorm2d(2);
        using TorchTensor x = torch.randn(3, 2, 4, 4);
        norm.train();
        twin.train();
        using TorchTensor y = twin.call(x);
        Results results = norm.Decompose(x, Split.Along(1), baseline: 0.0);
        Compare.SameBits(twin.running_mean!.Floats(), norm.running_mean!.Floats());
        Compare.SameBits(twin.running_var!.Floats(), norm.running_var!.Floats());
        Assert.Equal(1, norm.num_batches_tracked!.ToInt64());
        results.Composition().IsOf(y.Floats(), 1e-4);
    }

    private static void Step(
        nn.Module<TorchTensor, TorchTensor> network, torch.optim.Optimizer optimizer, TorchTensor x)
    {
        using var scope = torch.NewDisposeScope();
        optimizer.zero_grad();
        nn.functional.cross_entropy(network.call(x), torch.tensor(new long[] { 2 })).backward();
        optimizer.step();
    }
}
