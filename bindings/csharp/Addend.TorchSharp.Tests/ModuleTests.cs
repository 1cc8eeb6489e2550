using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Live modules of TorchSharp.</summary>
public sealed class ModuleTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void One_LibTorch_serves_both()
    {
        AddendLibrary.CheckLibTorch();
        Assert.StartsWith("2.10.", AddendLibrary.LibTorchVersion, StringComparison.Ordinal);
        Assert.Single(LibTorch.Loaded("libtorch_cpu"));
        Assert.Single(LibTorch.Loaded("libc10.so"));
        Assert.Single(LibTorch.Loaded("libLibTorchSharp"));
        Assert.Single(LibTorch.Loaded("libaddend_torch"));
    }

    [Fact]
    public void Threads_are_those_of_TorchSharp()
    {
        int before = torch.get_num_threads();
        try
        {
            AddendLibrary.SetThreads(3);
            Assert.Equal(3, torch.get_num_threads());
        }
        finally
        {
            torch.set_num_threads(before);
        }
    }

    // A linear layer has one answer: weight times input, and its bias is what it gives on zero.
    [Fact]
    public void Linear_layers_are_weight_times_input()
    {
        torch.manual_seed(4);
        using Modules.Linear linear = nn.Linear(4, 3);
        using TorchTensor x = torch.randn(1, 4);
        Results results = linear.Decompose(x, Split.Along(1), baseline: 0.0);
        using TorchTensor expected = (linear.weight * x).t().contiguous();  // [4, 3]
        Compare.Close(expected.Floats(), results.Composition().Components().Floats(), 1e-6);
        Compare.Close(linear.bias!.Floats(), results.Composition().Reference().Floats(), 1e-6);
        using TorchTensor y = linear.call(x);
        results.Composition().IsOf(y.Floats());
    }

    // Without biases a network of rectifiers is linear between zero and its input: what it says of itself by autograd.
    [Fact]
    public void Rectifier_networks_are_gradient_times_input()
    {
        using Modules.Sequential network = Networks.Perceptron(bias: false);
        using TorchTensor x = Networks.Row();
        Results results = network.Decompose(x, Split.Along(1), baseline: 0.0);
        float[] components = results.Composition().Components().Floats();  // [6, 1, 3]
        for (int k = 0; k < 3; k++)
        {
            float[] expected = GradientTimesInput(network, x, k);
            Compare.Close(expected, [.. Enumerable.Range(0, 6).Select(column => components[(3 * column) + k])], 1e-5);
            Attribution attribution = network.Attribute(x, Split.Along(1), Target.At(0, k), baseline: 0.0);
            Compare.Close(expected, attribution.Input().Floats(), 1e-5);
        }
    }

    [Fact]
    public void Sequential_modules_are_told_by_their_paths()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        float[] computed = Call(network, x);
        var request = new Request(new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 })
        {
            Probes = ["relu", "second"],
        };
        Results results = network.Decompose(request, () => network.call(x));
        Assert.Equal(["output", "relu", "second"], results.Names);
        results.Composition().IsOf(computed);
        using TorchTensor first = ((nn.Module<TorchTensor, TorchTensor>)network[0]).call(x);
        using TorchTensor relu = first.relu();
        results.Composition("relu").IsOf(relu.Floats());
        foreach (string path in new[] { "first", "relu", "second", "relu_again", "head" })
        {
            Assert.Contains($"\"module_path\":\"{path}\"", results.Report.Json);
        }
        foreach ((string name, _) in network.named_parameters())
        {
            Assert.Contains(name, results.Report.Json);
        }
        Assert.Equal(0, Hooks.Of(network));
    }

    [Fact]
    public void Images_are_explained_where_a_scope_disposes_what_is_between()
    {
        torch.manual_seed(5);
        using var network = new Networks.Cnn();
        network.eval();
        using TorchTensor image = Networks.Cnn.Image();
        float[] computed = Call(network, image);
        long live = LibTorch.Settled();
        Results results = network.Decompose(image, Split.Along(2, 3), baseline: 0.0);
        Assert.InRange(TorchTensor.TotalCount, live, live + 1);  // the output, until it is collected
        results.Composition().IsOf(computed);
        Assert.Equal(64, results.Composition().Numc);
        Explanation decomposed = results.Explain("0,1");
        float[] attributed = network.Attribute(image, Split.Along(2, 3), "0,1", baseline: 0.0).Input().Floats();
        var pixels = new double[64];
        for (int k = 0; k < attributed.Length; k++)  // [1, 1, 2, 8, 8]
        {
            pixels[k % 64] += attributed[k];
        }
        for (int k = 0; k < 64; k++)
        {
            Assert.InRange(pixels[k], decomposed.Contributions[k].Value - 1e-5, decomposed.Contributions[k].Value + 1e-5);
        }
        Assert.Contains("_norm.running_mean", results.Report.Json);
    }

    [Fact]
    public void Modules_of_two_tensors_are_explained()
    {
        torch.manual_seed(6);
        using var network = new Networks.Two();
        using TorchTensor left = torch.randn(2, 4);
        using TorchTensor right = torch.randn(2, 5);
        using TorchTensor y = network.call(left, right);
        var request = new Request(
            new Input(left.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 },
            new Input(right.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 });
        Results results = network.Decompose(request, () => network.call(left, right));
        Assert.Equal(9, results.Composition().Numc);
        results.Composition().IsOf(y.Floats());
        Assert.Contains("\"module_path\":\"_both\"", results.Report.Json);
    }

    [Fact]
    public void Text_is_explained_through_recurrent_layers_and_attention()
    {
        torch.manual_seed(7);
        using var network = new Networks.Text();
        network.eval();
        using TorchTensor ids = Networks.Text.Ids();
        float[] computed = Call(network, ids);
        Results results = network.Decompose(ids, Split.Along(1), baseline: 0.0);
        Assert.Equal(6, results.Composition().Numc);
        results.Composition().IsOf(computed, 1e-4);
        Assert.Contains("\"module_path\":\"_encoder\"", results.Report.Json);
        Attribution attribution = network.Attribute(ids, Split.Along(1), "0,2", baseline: 0.0);
        Explanation decomposed = results.Explain("0,2");
        Explanation attributed = attribution.Explain();
        for (int k = 0; k < 6; k++)
        {
            double expected = decomposed.Contributions[k].Value;
            Assert.InRange(attributed.Contributions[k].Value, expected - 1e-4, expected + 1e-4);
        }
    }

    [Fact]
    public void Components_begin_inside_a_module()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        var request = new Request(x.ToAddend()) { Inside = [new Inside("relu") { Split = Split.Along(1), Baseline = 0.0 }] };
        Results results = network.Decompose(request, () => network.call(x));
        Assert.Equal(8, results.Composition().Numc);
        results.Composition().IsOf(Call(network, x));
    }

    [Fact]
    public void Live_modules_become_programs()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        RecordedProgram program = network.Record(new Request(x.ToAddend()), () => network.call(x));
        using TorchTensor other = Networks.Row(seed: 8);
        Compare.SameBits(Call(network, other), program.Replay(other.ToAddend()).Tensor().Floats());
    }

    [Theory]
    [InlineData(torch.ScalarType.Float64)]
    [InlineData(torch.ScalarType.BFloat16)]
    public void Modules_of_other_dtypes_are_explained(torch.ScalarType dtype)
    {
        using Modules.Sequential network = Networks.Perceptron();
        nn.Module<TorchTensor, TorchTensor> other = network.to(dtype);
        using TorchTensor x = Networks.Row().to(dtype);
        Results results = other.Decompose(x, Split.Along(1), baseline: 0.0);
        using TorchTensor y = other.call(x);
        using TorchTensor expected = y.to(torch.float32);
        Compare.SameBits(expected.Floats(), results.Composition().Value().To(DType.Float32).Floats());
        Compare.Close(
            expected.Floats(),
            results.Composition().Recovery().To(DType.Float32).Floats(),
            dtype == torch.ScalarType.Float64 ? 1e-7 : 0.02);
    }

    internal static float[] Call(nn.Module<TorchTensor, TorchTensor> network, TorchTensor x)
    {
        using TorchTensor y = network.call(x);
        return y.Floats();
    }

    private static float[] GradientTimesInput(nn.Module<TorchTensor, TorchTensor> network, TorchTensor x, int output)
    {
        using TorchTensor leaf = x.detach().clone().requires_grad_();
        using TorchTensor y = network.call(leaf);
        using TorchTensor number = y[0, output];
        IList<TorchTensor> gradients = torch.autograd.grad([number], [leaf]);
        using TorchTensor product = gradients[0] * x;
        return product.Floats();
    }
}
