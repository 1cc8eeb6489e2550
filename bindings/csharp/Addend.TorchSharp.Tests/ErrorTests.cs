using System.Runtime.InteropServices;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Errors of TorchSharp, of modules and of Addend reach the caller, and leave state as it was
/// before.</summary>
public sealed class ErrorTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Errors_of_TorchSharp_come_through()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor wrong = torch.ones(1, 7);
        string plain = FirstLine(() => network.call(wrong));
        Assert.Contains("shapes cannot be multiplied", plain);
        for (int k = 0; k < 3; k++)
        {
            Assert.Equal(plain, FirstLine(() => network.Decompose(wrong, Split.Along(1))));
            Assert.Equal(plain, FirstLine(() => network.Attribute(wrong, Split.Along(1))));
            Assert.Equal(0, Hooks.Of(network));
            using TorchTensor x = Networks.Row();
            network.Decompose(x, Split.Along(1), baseline: 0.0).Composition().IsOf(ModuleTests.Call(network, x));
        }
    }

    [Fact]
    public void Exceptions_of_a_module_come_through()
    {
        using var network = new Networks.Failing();
        using TorchTensor x = Networks.Row();
        Assert.Equal(
            "stop", Assert.Throws<InvalidOperationException>(() => network.Decompose(x, Split.Along(1))).Message);
        Assert.Equal(0, Hooks.Of(network));
        network.Fails = false;
        network.Decompose(x, Split.Along(1), baseline: 0.0).Composition().IsOf(ModuleTests.Call(network, x));
    }

    [Fact]
    public void Errors_of_Addend_leave_TorchSharp_as_it_was()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        float[] computed = ModuleTests.Call(network, x);
        Assert.ThrowsAny<ArgumentException>(() => network.Decompose(x, Split.Along(5)));
        Assert.ThrowsAny<ArgumentException>(() => network.Attribute(x, Split.Along(1), "0,99"));
        Assert.Throws<InvalidOperationException>(() => network.Decompose(
            new Request(new Input(x.ToAddend()) { Split = Split.Along(1) }), () =>
            {
                network.Decompose(x, Split.Along(1));
                return network.call(x);
            }));
        Assert.Equal(0, Hooks.Of(network));
        Compare.SameBits(computed, ModuleTests.Call(network, x));
        network.Decompose(x, Split.Along(1), baseline: 0.0).Composition().IsOf(computed);
    }

    [Fact]
    public void Tensors_that_cannot_be_shared_are_refused()
    {
        using TorchTensor sparse = torch.eye(3).to_sparse();
        Assert.Throws<NotSupportedException>(() => sparse.ToAddend());
        using TorchTensor quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.ScalarType.QUInt8);
        Assert.Throws<NotSupportedException>(() => quantized.ToAddend());
        TorchTensor gone = torch.ones(3);
        gone.Dispose();
        Assert.Throws<InvalidOperationException>(() => gone.ToAddend());
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor strided = torch.ones(6, 2).t();
        Assert.Contains(
            "contiguous", Assert.ThrowsAny<Exception>(() => network.Decompose(strided, Split.Along(1))).Message);
    }

    // A sparse buffer has no memory to be known by; the module is explained all the same.
    [Fact]
    public void Sparse_buffers_are_no_obstacle()
    {
        using var network = new WithSparse();
        using TorchTensor x = Networks.Row();
        network.Decompose(x, Split.Along(1), baseline: 0.0).Composition().IsOf(ModuleTests.Call(network, x));
    }

    // Addresses follow.
    private static string FirstLine(Func<object?> call) => Assert.Throws<ExternalException>(call).Message.Split('\n')[0];

    private sealed class WithSparse : nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Modules.Linear _first = nn.Linear(6, 3);

        public WithSparse()
            : base(nameof(WithSparse))
        {
            RegisterComponents();
            register_buffer("sparse", torch.eye(3).to_sparse());
        }

        public override TorchTensor forward(TorchTensor input) => _first.call(input);
    }
}
