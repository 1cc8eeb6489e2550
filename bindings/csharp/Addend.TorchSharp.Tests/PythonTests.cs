using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>The bits that Python gives: expected.py has written them, with PyTorch and Addend for Python over the same
/// LibTorch, on one thread.</summary>
public sealed class PythonTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly int _threads = torch.get_num_threads();

    public PythonTests() => torch.set_num_threads(1);

    public void Dispose()
    {
        torch.set_num_threads(_threads);
        _scope.Dispose();
    }

    [Theory]
    [MemberData(nameof(ScriptTests.Models), MemberType = typeof(ScriptTests))]
    public void TorchScript_modules_give_the_bits_of_Python(string name)
    {
        TensorFile expected = Expected();
        using var network = torch.jit.load<TorchTensor, TorchTensor>(Files.Script(name));
        network.eval();
        using TorchTensor x = Files.Input(name);
        using TorchTensor y = network.call(x);
        Compare.SameBits(expected[$"script.{name}.value"].Floats(), y.Floats());
        Results results = network.Decompose(x, Split.Along(1), baseline: 0.0);
        Judge(
            expected,
            $"script.{name}",
            results,
            network.Attribute(x, Split.Along(1), ScriptTests.First(results), baseline: 0.0));

        // Addend itself runs the same file, without gradients.
        Model model = Model.Load(Files.Script(name));
        var input = new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 };
        Compare.SameBits(
            expected[$"script.{name}.without_gradients"].Floats(), model.Decompose(input).Composition().Value().Floats());
    }

    [Theory]
    [InlineData("perceptron")]
    [InlineData("cnn")]
    public void Live_modules_give_the_bits_of_Python(string name)
    {
        TensorFile expected = Expected();
        using nn.Module<TorchTensor, TorchTensor> network =
            name == "cnn" ? new Networks.Cnn() : Networks.Perceptron();
        network.eval();
        int copied = 0;
        using (torch.no_grad())
        {
            IEnumerable<(string Name, TorchTensor Tensor)> state = network.named_parameters()
                .Select(one => (one.name, (TorchTensor)one.parameter))
                .Concat(network.named_buffers().Select(one => (one.name, one.buffer)));
            foreach ((string key, TorchTensor tensor) in state)
            {
                if (tensor.is_floating_point())
                {
                    using TorchTensor given = expected[$"live.{name}.state.{key}"].ToTorchSharp();
                    tensor.copy_(given);
                    copied++;
                }
            }
        }
        Assert.Equal(expected.Names.Count(key => key.StartsWith($"live.{name}.state.", StringComparison.Ordinal)), copied);
        using TorchTensor x = expected[$"live.{name}.x"].ToTorchSharp().clone();
        Compare.SameBits(expected[$"live.{name}.value"].Floats(), ModuleTests.Call(network, x));
        Results results = network.Decompose(x, Split.Along(1), baseline: 0.0);
        Judge(
            expected,
            $"live.{name}",
            results,
            network.Attribute(x, Split.Along(1), ScriptTests.First(results), baseline: 0.0));
    }

    private static TensorFile Expected()
    {
        string? path = Environment.GetEnvironmentVariable("ADDEND_TORCHSHARP_EXPECTED");
        Assert.SkipWhen(string.IsNullOrEmpty(path), "ADDEND_TORCHSHARP_EXPECTED names no file of expected.py");
        return TensorFile.Load(path!);
    }

    private static void Judge(TensorFile expected, string name, Results results, Attribution attribution)
    {
        Composition composition = results.Composition();
        Compare.SameBits(expected[$"{name}.value"].Doubles(), composition.Value().Doubles());
        Compare.SameBits(expected[$"{name}.components"].Doubles(), composition.Components().Doubles());
        Compare.SameBits(expected[$"{name}.reference"].Doubles(), composition.Reference().Doubles());
        Compare.SameBits(expected[$"{name}.elements"].Doubles(), attribution.Input().Doubles());
    }
}
