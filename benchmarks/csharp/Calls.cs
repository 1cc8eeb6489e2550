// What it costs to cross the border from C#: nanoseconds per call, bytes copied per tensor passed.
//   bazel run //benchmarks/csharp:calls
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using Addend;

CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;

using Tensor small = Tensor.From(new float[] { 1, 2 });
Time("call without arguments", () => AddendLibrary.AbiVersion);
Time("call with a handle", () => small.DType);
Time("small tensor made and disposed", () =>
{
    using Tensor tensor = Tensor.From(stackalloc float[] { 1, 2 });
    return tensor;
});
Time("operator on plain tensors", () =>
{
    using Results results = Operators.Call("aten::add", small, 1);
    return results;
});
using Composition composition = Composition.Diagonal(small, 0);
Time("operator on compositions", () =>
{
    using Composition sum = composition + 1;
    return sum;
});

// A tensor shares memory if its elements are where ours are: then nothing was copied.
float[] elements = new float[16 << 20];
int bytes = elements.Length * sizeof(float);
Pass("in: Tensor.Wrap", () => Tensor.Wrap(elements), tensor => Shared(tensor) ? 0 : bytes);
Pass("in: Tensor.From", () => Tensor.From(elements), tensor => Shared(tensor) ? 0 : bytes);
using Tensor large = Tensor.Wrap(elements);
Pass("out: Tensor.View", () => Viewed(large), tensor => Shared(tensor) ? 0 : bytes);
float[] copy = new float[elements.Length];
Pass("out: Tensor.CopyTo", () => Copied(large, copy), _ => bytes);

bool Shared(Tensor tensor)
{
    using TensorView<float> view = tensor.View<float>();
    return Unsafe.AreSame(ref elements[0], ref Unsafe.AsRef(in view.Span[0]));
}

static Tensor Viewed(Tensor tensor)
{
    using TensorView<float> view = tensor.View<float>();
    return view.Span.IsEmpty ? throw new InvalidOperationException("nothing to see") : tensor;
}

static Tensor Copied(Tensor tensor, float[] destination)
{
    tensor.CopyTo(destination.AsSpan());
    return tensor;
}

// The median of many rounds, after the compiler has made its best of it.
static void Time<T>(string what, Func<T> call)
{
    const int Rounds = 51, Calls = 2000;
    var rounds = new double[Rounds];
    for (int round = -Rounds; round < Rounds; round++)
    {
        long start = Stopwatch.GetTimestamp();
        for (int k = 0; k < Calls; k++)
        {
            call();
        }
        if (round >= 0)
        {
            rounds[round] = Stopwatch.GetElapsedTime(start).TotalNanoseconds / Calls;
        }
    }
    Array.Sort(rounds);
    Console.WriteLine($"{what,-32} {rounds[Rounds / 2],10:F0} ns");
}

static void Pass(string what, Func<Tensor> pass, Func<Tensor, int> copied)
{
    const int Rounds = 11;
    var rounds = new double[Rounds];
    int bytes = 0;
    for (int round = 0; round < Rounds; round++)
    {
        long start = Stopwatch.GetTimestamp();
        Tensor tensor = pass();
        rounds[round] = Stopwatch.GetElapsedTime(start).TotalMicroseconds;
        bytes = copied(tensor);
        if (what.StartsWith("in", StringComparison.Ordinal))
        {
            tensor.Dispose();
        }
    }
    Array.Sort(rounds);
    Console.WriteLine($"{what,-32} {rounds[Rounds / 2],10:F1} us of 64 MiB {bytes,10} bytes copied");
}
