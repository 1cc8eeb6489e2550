using Addend.TorchSharp;
using Parameter = global::TorchSharp.torch.Modules.Parameter;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.Tests;

/// <summary>Addend.TorchSharp, with the types of TorchSharpStandIn.cs.</summary>
public sealed class TorchSharpTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly Network _network = new();
    private readonly TorchTensor _x = New([0.5f, -1, 2], 1, 3);

    public void Dispose()
    {
        _x.Dispose();
        _scope.Dispose();
    }

    [Fact]
    public void Live_modules_are_decomposed()
    {
        Results results = _network.Decompose(_x, Split.Along(1), baseline: 0.0);
        Assert.Equal(["output"], results.Names);
        using TorchTensor y = _network.call(_x);
        Assert.Equal(y.ToAddend().ToArray<float>(), results.Composition().Value().ToArray<float>());
        Explanation explanation = results.Explain("0,1");
        Assert.Equal(3, explanation.Contributions.Count);
        Samples.Close(explanation.Value, explanation.Recovery, 1e-5);
        foreach (string path in new[] { "\"encoder.first\"", "\"encoder\"", "\"gate\"", "\"head\"" })
        {
            Assert.Contains("\"module_path\":" + path, results.Report.Json);
        }
        foreach (string name in new[] { "encoder.first.weight", "encoder.first.bias", "head.weight", "gate.scale" })
        {
            Assert.Contains(name, results.Report.Json);
        }
        Assert.Equal(0, _network.Hooks + _network.Encoder.Hooks + _network.Encoder.First.Hooks + _network.Gate.Hooks);
    }

    [Fact]
    public void Live_modules_are_attributed()
    {
        Explanation decomposed = _network.Decompose(_x, Split.Along(1)).Explain("0,1");
        Attribution attribution = _network.Attribute(_x, Split.Along(1), "0,1");
        float[] elements = attribution.Input().ToArray<float>();
        Assert.Equal(3, elements.Length);
        for (int element = 0; element < elements.Length; element++)
        {
            Samples.Close(decomposed.Contributions[element].Value, elements[element], 1e-5);
        }
    }

    [Fact]
    public void Requests_of_modules_have_probes_and_splits_inside()
    {
        var probing = new Request(new Input(_x.ToAddend()) { Split = Split.Along(1) }) { Probes = ["encoder"] };
        Results results = _network.Decompose(probing, () => _network.call(_x));
        Assert.Equal(["output", "encoder"], results.Names);

        var request = new Request(_x.ToAddend())
        {
            Inside = [new Inside("encoder") { Split = Split.Along(-1) }],
            Targets = ["0,0"],
        };
        int runs = 0;
        Attribution attribution = _network.Attribute(request, () =>
        {
            runs++;
            return _network.call(_x);
        });
        Assert.Equal(2, runs);
        Assert.Equal([1L, 1L, 2L], attribution.Inside().Shape);
    }

    [Fact]
    public void TorchScript_modules_are_explained()
    {
        var rectifier = new Rectifier();
        Results results = rectifier.Decompose(_x, Split.Along(1), baseline: 0.0);
        Assert.Equal([0.5f, 0, 0, 0, 0, 0, 0, 0, 2], results.Composition().Components().ToArray<float>());
        Assert.Equal([0, 0, 2], rectifier.Attribute(_x, Split.Along(1)).Input().ToArray<float>());

        // Within another module it is heard by its name.
        var around = new Around(rectifier);
        var probing = new Request(new Input(_x.ToAddend()) { Split = Split.Along(1) }) { Probes = ["rectifier"] };
        Results inner = around.Decompose(probing, () => around.call(_x));
        Assert.Equal([0.5f, 0, 2], inner.Composition("rectifier").Value().ToArray<float>());
        Assert.Equal(0, around.Hooks + rectifier.Hooks);
    }

    [Fact]
    public void Live_modules_become_programs()
    {
        RecordedProgram program = _network.Record(new Request(_x.ToAddend()), () => _network.call(_x));
        Assert.Contains("encoder.first", program.Code());
        using TorchTensor other = New([3, 2, 1], 1, 3);
        using TorchTensor y = _network.call(other);
        Assert.Equal(y.ToAddend().ToArray<float>(), program.Replay(other.ToAddend()).Tensor().ToArray<float>());
    }

    [Fact]
    public void Modules_that_throw_leave_everything_as_it_was()
    {
        _network.Encoder.Fails = true;
        Assert.Equal(
            "the encoder fails",
            Assert.Throws<InvalidOperationException>(() => _network.Decompose(_x, Split.Along(1))).Message);
        _network.Encoder.Fails = false;
        Assert.Equal(0, _network.Hooks + _network.Encoder.Hooks + _network.Encoder.First.Hooks + _network.Gate.Hooks);
        Assert.Single(_network.Decompose(_x, Split.Along(1)).Names);
    }

    [Fact]
    public void Tensors_of_TorchSharp_are_the_same_memory()
    {
        Tensor tensor = Tensor.From(new float[,] { { 1, -2 }, { -3, 4 } });
        using TorchTensor given = tensor.ToTorchSharp();
        tensor.Dispose();
        using var rectified = new TorchTensor(NativeModel.Relu(given.Handle));
        Assert.Equal([1, 0, 0, 4], rectified.ToAddend().ToArray<float>());
    }

    private static TorchTensor New(float[] numbers, params long[] sizes) => new(NativeModel.NewTensor(numbers, sizes));

    private static Parameter Learned(float[] numbers, params long[] sizes) => new(NativeModel.NewTensor(numbers, sizes));

    private sealed class Linear : global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Parameter _weight;
        private readonly Parameter _bias;

        public Linear(Parameter weight, Parameter bias)
        {
            (_weight, _bias) = (weight, bias);
            register_parameter("weight", weight);
            register_parameter("bias", bias);
        }

        public override TorchTensor forward(TorchTensor input) =>
            new(NativeModel.Linear(input.Handle, _weight.Handle, _bias.Handle));
    }

    private sealed class Encoder : global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor>
    {
        public Encoder() => register_module("first", First);

        public Linear First { get; } = new(Learned([1, -2, 0.5f, 0.25f, 1, 2], 2, 3), Learned([0.5f, -0.5f], 2));

        public bool Fails { get; set; }

        public override TorchTensor forward(TorchTensor input)
        {
            using TorchTensor hidden = First.call(input);
            return Fails
                ? throw new InvalidOperationException("the encoder fails")
                : new TorchTensor(NativeModel.Relu(hidden.Handle));
        }
    }

    private sealed class Rectifier : global::TorchSharp.torch.jit.ScriptModule<TorchTensor, TorchTensor>
    {
        public override TorchTensor forward(TorchTensor input) => new(NativeModel.Relu(input.Handle));
    }

    private sealed class Around : global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Rectifier _rectifier;

        public Around(Rectifier rectifier)
        {
            _rectifier = rectifier;
            register_module("rectifier", rectifier);
        }

        public override TorchTensor forward(TorchTensor input)
        {
            using TorchTensor rectified = _rectifier.call(input);
            return new TorchTensor(NativeModel.Relu(rectified.Handle));
        }
    }

    // A module of two inputs: x scale^T + y.
    private sealed class Gate : global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor, TorchTensor>
    {
        private readonly TorchTensor _scale = New([2, 0, 0, 3], 2, 2);

        public Gate() => register_buffer("scale", _scale);

        public override TorchTensor forward(TorchTensor x, TorchTensor y) =>
            new(NativeModel.Linear(x.Handle, _scale.Handle, y.Handle));
    }

    private sealed class Network : global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Linear _head = new(Learned([1, 2, -1, 0.5f], 2, 2), Learned([0, 1], 2));
        private readonly TorchTensor _shift = New([0.25f, 0.75f], 2);

        public Network()
        {
            register_module("encoder", Encoder);
            register_module("gate", Gate);
            register_module("head", _head);
            // A second name for the same module.
            register_module("alias", _head);
        }

        public Encoder Encoder { get; } = new();

        public Gate Gate { get; } = new();

        public override TorchTensor forward(TorchTensor input)
        {
            using TorchTensor encoded = Encoder.call(input);
            using TorchTensor gated = Gate.call(encoded, _shift);
            return _head.call(gated);
        }
    }
}
