// Cost of crossing the border from C#: nanoseconds per call, bytes copied per tensor passed.
//   bazel run //benchmarks/csharp:calls
//   bazel run //benchmarks/csharp:calls -- planned FOLDER [ROWS]: what one row of a plan costs in a long run, with
//   model.pt and heldout.safetensors of that folder
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using Addend;

CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;

if (args is ["planned", string folder, ..])
{
    Planned(folder, args.Length > 2 ? int.Parse(args[2], CultureInfo.InvariantCulture) : 1_000_000);
    return;
}
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

static void Planned(string folder, int calls)
{
    AddendLibrary.SetThreads(1);
    using TensorFile file = TensorFile.Load(Path.Combine(folder, "heldout.safetensors"));
    using Tensor all = file["input"];
    float[] rows = all.ToArray<float>();
    int columns = (int)all.Shape[1];
    float[] row = rows[..columns];
    double[] parts = new double[columns];
    using Model model = Model.Load(Path.Combine(folder, "model.pt"));
    using Tensor input = Tensor.Wrap(row, 1, columns);
    using Tensor contributions = Tensor.Wrap(parts, 1, columns);
    var request = new Request(new Input(input) { Split = Split.Along(1), Baseline = 0.0 }) { Targets = ["0,1"] };
    using Plan plan = model.Plan(request);
    var times = new long[calls];
    Array.Fill(times, 1);  // its memory is there before the first measurement
    void Run(int first, int end)
    {
        for (int k = first; k < end; k++)
        {
            long start = Stopwatch.GetTimestamp();
            Array.Copy(rows, k % (rows.Length / columns) * columns, row, 0, columns);
            plan.AttributeInto(request, contributions);
            times[k] = Stopwatch.GetTimestamp() - start;
        }
    }
    const int Stretches = 10;
    Run(0, calls / Stretches);
    var resident = new List<string> { Resident() };
    for (int k = 0; k < Stretches; k++)
    {
        Run((int)((long)calls * k / Stretches), (int)((long)calls * (k + 1) / Stretches));
        resident.Add(Resident());
    }
    Array.Sort(times);
    double Micro(int place) => times[place] * 1e6 / Stopwatch.Frequency;
    double median = Micro(calls / 2), percentile = Micro((int)(calls * 0.99));
    Console.WriteLine(
        $"{calls} rows: median {median:F1} us, 99th percentile {percentile:F1} us ({percentile / median:F2} medians), " +
        $"longest {Micro(calls - 1):F0} us");
    Console.WriteLine("resident memory in MiB, of it committed by .NET, before and after each tenth of the rows:");
    Console.WriteLine(string.Join(", ", resident));
}

static string Resident() =>
    $"{Environment.WorkingSet / 1048576.0:F1} ({GC.GetGCMemoryInfo(GCKind.Any).TotalCommittedBytes / 1048576.0:F1})";
