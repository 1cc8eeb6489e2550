// A stand-in for the few types of Microsoft.ML.OnnxRuntime that ScoreAndExplain.cs uses, under their names: builds restore no
// package. Its session is a plain run of Addend's model, so that a test of the program says nothing about ONNX Runtime.
#pragma warning disable CA1002, CA1010, CA1034, CA1707, CA1710, CA1711, CA1716, CA1815, CA2225

using System.Collections;

namespace Microsoft.ML.OnnxRuntime.Tensors
{
    public class Tensor<T>
    {
        public T[] Elements { get; protected init; } = [];

        public long[] Sizes { get; protected init; } = [];
    }

    public sealed class DenseTensor<T> : Tensor<T>
    {
        public DenseTensor(Memory<T> memory, ReadOnlySpan<int> dimensions)
        {
            Elements = memory.ToArray();
            Sizes = dimensions.ToArray().Select(size => (long)size).ToArray();
        }
    }
}

namespace Microsoft.ML.OnnxRuntime
{
    using Microsoft.ML.OnnxRuntime.Tensors;

    public class NamedOnnxValue
    {
        protected NamedOnnxValue(string name, float[] elements, long[] sizes) => (Name, Elements, Sizes) = (name, elements, sizes);

        public string Name { get; }

        internal float[] Elements { get; }

        internal long[] Sizes { get; }

        public static NamedOnnxValue CreateFromTensor<T>(string name, Tensor<T> value) =>
            new(name, (float[])(object)value.Elements, value.Sizes);

        public IEnumerable<T> AsEnumerable<T>() => (IEnumerable<T>)(object)Elements;
    }

    public sealed class DisposableNamedOnnxValue : NamedOnnxValue, IDisposable
    {
        internal DisposableNamedOnnxValue(string name, float[] elements, long[] sizes)
            : base(name, elements, sizes)
        {
        }

        public void Dispose()
        {
        }
    }

    public interface IDisposableReadOnlyCollection<T> : IReadOnlyCollection<T>, IDisposable;

    public sealed class InferenceSession(string modelPath) : IDisposable
    {
        private readonly Addend.Model _model = Addend.Model.Load(modelPath);

        public IDisposableReadOnlyCollection<DisposableNamedOnnxValue> Run(IReadOnlyCollection<NamedOnnxValue> inputs)
        {
            NamedOnnxValue input = inputs.Single();
            using Addend.Tensor given = Addend.Tensor.From(input.Elements, input.Sizes);
            using Addend.Results results = _model.Run(given);
            using Addend.Tensor output = results.Tensor();
            return new Outputs([new DisposableNamedOnnxValue("output", output.ToArray<float>(), [.. output.Shape])]);
        }

        public void Dispose() => _model.Dispose();

        private sealed class Outputs(List<DisposableNamedOnnxValue> values) : IDisposableReadOnlyCollection<DisposableNamedOnnxValue>
        {
            public int Count => values.Count;

            public IEnumerator<DisposableNamedOnnxValue> GetEnumerator() => values.GetEnumerator();

            IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

            public void Dispose() => values.ForEach(value => value.Dispose());
        }
    }
}
