using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Modules of TorchSharp, with the weights of a seed.</summary>
internal static class Networks
{
    /// <summary>Three linear layers; without biases what it computes grows with its input.</summary>
    internal static Modules.Sequential Perceptron(bool bias = true, long seed = 1)
    {
        torch.manual_seed(seed);
        return nn.Sequential(
            ("first", nn.Linear(6, 8, bias)),
            ("relu", nn.ReLU()),
            ("second", nn.Linear(8, 5, bias)),
            ("relu_again", nn.ReLU()),
            ("head", nn.Linear(5, 3, bias)));
    }

    internal static TorchTensor Row(long seed = 2)
    {
        torch.manual_seed(seed);
        return torch.randn(1, 6);
    }

    /// <summary>Convolutions with normalization, pooling, and intermediate tensors that a scope disposes.</summary>
    internal sealed class Cnn : nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Modules.Conv2d _first = nn.Conv2d(2, 4, 3L, padding: 1);
        private readonly Modules.BatchNorm2d _norm = nn.BatchNorm2d(4);
        private readonly Modules.Conv2d _second = nn.Conv2d(4, 4, 3L);
        private readonly Modules.Linear _head = nn.Linear(16, 3);

        public Cnn()
            : base(nameof(Cnn)) => RegisterComponents();

        internal static TorchTensor Image()
        {
            torch.manual_seed(3);
            return torch.randn(1, 2, 8, 8);
        }

        public override TorchTensor forward(TorchTensor input)
        {
            using var scope = torch.NewDisposeScope();
            TorchTensor h = _norm.call(_first.call(input)).relu();
            h = nn.functional.max_pool2d(h, 2L);
            h = _second.call(h).gelu();
            return _head.call(h.flatten(1)).MoveToOuterDisposeScope();
        }
    }

    /// <summary>Two tensors in, one out; one layer in it has the same form.</summary>
    internal sealed class Two : nn.Module<TorchTensor, TorchTensor, TorchTensor>
    {
        private readonly Modules.Linear _left = nn.Linear(4, 3);
        private readonly Modules.Linear _right = nn.Linear(5, 3);
        private readonly Modules.Bilinear _both = nn.Bilinear(3, 3, 2);

        public Two()
            : base(nameof(Two)) => RegisterComponents();

        public override TorchTensor forward(TorchTensor left, TorchTensor right)
        {
            using TorchTensor l = _left.call(left);
            using TorchTensor r = _right.call(right);
            return _both.call(l, r);
        }
    }

    /// <summary>Throws in the middle of its work, until it is told not to.</summary>
    internal sealed class Failing : nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Modules.Linear _first = nn.Linear(6, 3);

        public Failing()
            : base(nameof(Failing)) => RegisterComponents();

        public bool Fails { get; set; } = true;

        public override TorchTensor forward(TorchTensor input)
        {
            TorchTensor y = _first.call(input);
            return Fails ? throw new InvalidOperationException("stop") : y;
        }
    }

    /// <summary>Ids in; recurrent, whose module gives a tuple, and attention, whose encoder takes three tensors.</summary>
    internal sealed class Text : nn.Module<TorchTensor, TorchTensor>
    {
        private readonly Modules.Embedding _embedding = nn.Embedding(11, 8);
        private readonly Modules.LSTM _memory = nn.LSTM(8, 8, batchFirst: true);
        private readonly Modules.TransformerEncoder _encoder =
            nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1), 2);
        private readonly Modules.LayerNorm _norm = nn.LayerNorm(8);
        private readonly Modules.Linear _head = nn.Linear(8, 3);

        public Text()
            : base(nameof(Text)) => RegisterComponents();

        internal static TorchTensor Ids() => torch.tensor(new long[] { 3, 1, 4, 1, 5, 9 }).reshape(1, 6).clone();

        public override TorchTensor forward(TorchTensor ids)
        {
            TorchTensor h = _embedding.call(ids);
            (h, _, _) = _memory.call(h);
            h = _encoder.call(h.transpose(0, 1)).transpose(0, 1);
            return _head.call(_norm.call(h).mean([1]));
        }
    }
}
