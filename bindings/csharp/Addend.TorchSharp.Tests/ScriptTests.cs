using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>TorchScript modules that TorchSharp loaded.</summary>
public sealed class ScriptTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    public static TheoryData<string> Models() =>
        ["digits", "mlp", "cnn", "gru", "lstm", "relu_network", "unet", "transformer_encoder"];

    // LibTorch's interpreter may run another graph at the second and third call than at the first.
    [Theory]
    [MemberData(nameof(Models))]
    public void Loaded_modules_are_explained(string name)
    {
        using var network = torch.jit.load<TorchTensor, TorchTensor>(Files.Script(name));
        network.eval();
        using TorchTensor x = Files.Input(name);
        Split split = Split.Along(1);
        float[]? first = null;
        for (int run = 0; run < 4; run++)
        {
            Results results = network.Decompose(x, split, baseline: 0.0);
            using TorchTensor y = network.call(x);
            results.Composition().IsOf(y.Floats(), 1e-4);
            float[] components = results.Composition().Components().Floats();
            first ??= components;
            Compare.Close(first, components, 1e-5);
        }

        // Addend's own way to run the file.
        Model model = Model.Load(Files.Script(name));
        Results loaded = model.Decompose(new Input(x.ToAddend()) { Split = split, Baseline = 0.0 });
        Compare.Close(loaded.Composition().Components().Floats(), first!, 1e-5);
        Target target = First(loaded);
        Attribution attribution = network.Attribute(x, split, target, baseline: 0.0);
        Attribution attributed = model.Attribute(
            new Request(new Input(x.ToAddend()) { Split = split, Baseline = 0.0 }) { Targets = [target] });
        Compare.Close(attributed.Input().Doubles(), attribution.Input().Doubles(), 1e-5);
    }

    /// <summary>The first element of the output.</summary>
    internal static Target First(Results results)
    {
        using Composition output = results.Composition();
        return Target.At(new long[output.Shape.Count]);
    }

    [Fact]
    public void Loaded_modules_stand_in_others()
    {
        using var script = torch.jit.load<TorchTensor, TorchTensor>(Files.Script("mlp"));
        script.eval();
        // Not disposed: TorchSharp's module disposes those inside of it and then asks them for theirs.
        var network = new Around(script);
        using TorchTensor x = Networks.Row();
        float[] computed = ModuleTests.Call(network, x);
        var request = new Request(new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 }) { Probes = ["script"] };
        Results results = network.Decompose(request, () => network.call(x));
        results.Composition().IsOf(computed);
        using TorchTensor inner = script.call(x);
        results.Composition("script").IsOf(inner.Floats());
        Assert.Contains("\"module_path\":\"script\"", results.Report.Json);
        Assert.Contains("script.layers.0.weight", results.Report.Json);
        Assert.Equal(0, Hooks.Of(script));
    }

    // LibTorch's interpreter tells the paths. A module that ran with gradients on first comes to a plan in which those
    // inside of it give copies of their parameters too.
    [Fact]
    public void Modules_inside_of_loaded_ones_are_told_by_their_paths()
    {
        using var network = torch.jit.load<TorchTensor, TorchTensor>(Files.Script("mlp"));
        network.eval();
        using TorchTensor x = Files.Input("mlp");
        using IDisposable without = torch.no_grad();
        Assert.Contains("\"module_path\":\"layers.4\"", network.Decompose(x, Split.Along(1)).Report.Json);
        Dictionary<string, TorchTensor> parameters = network.named_parameters()
            .ToDictionary(one => one.name, one => (TorchTensor)one.parameter);
        using TorchTensor expected = nn.functional.linear(x, parameters["layers.0.weight"], parameters["layers.0.bias"]);
        for (int run = 0; run < 4; run++)
        {
            var request = new Request(new Input(x.ToAddend()) { Split = Split.Along(1), Baseline = 0.0 })
            {
                Probes = ["layers.0"],
            };
            Results results = network.Decompose(request, () => network.call(x));
            results.Composition("layers.0").IsOf(expected.Floats());
        }
    }

    [Fact]
    public void Loaded_modules_are_trained_in_between()
    {
        using var network = torch.jit.load<TorchTensor, TorchTensor>(Files.Script("mlp"));
        using TorchTensor x = Files.Input("mlp");
        using var optimizer = torch.optim.SGD(network.parameters(), 0.1);
        float[] before = [];
        for (int step = 0; step < 4; step++)
        {
            using TorchTensor y = network.call(x);
            Assert.NotEqual(before, y.Floats());
            network.Decompose(x, Split.Along(1), baseline: 0.0).Composition().IsOf(y.Floats());
            before = y.Floats();
            optimizer.zero_grad();
            y.square().mean().backward();
            optimizer.step();
        }
    }

    private sealed class Around : nn.Module<TorchTensor, TorchTensor>
    {
        private readonly torch.jit.ScriptModule<TorchTensor, TorchTensor> _script;

        public Around(torch.jit.ScriptModule<TorchTensor, TorchTensor> script)
            : base(nameof(Around))
        {
            _script = script;
            register_module("script", script);
        }

        public override TorchTensor forward(TorchTensor input)
        {
            using TorchTensor h = _script.call(input);
            return h * h;
        }
    }
}
