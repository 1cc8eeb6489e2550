namespace Addend.Tests;

/// <summary>The example models and the inputs that tests ask about, where Bazel puts them.</summary>
internal static class Samples
{
    internal static string DigitsPath => Runfile("docs/examples/models/digits/model.pt");

    internal static string ExportedDigitsPath => Runfile("docs/examples/models/digits/model.pt2");

    internal static string DigitsSamplePath => Runfile("docs/examples/models/digits/sample.safetensors");

    internal static string TablePath => Runfile("docs/examples/models/breast_cancer/model.pt");

    /// <summary>A file that the test declares; the runner of xunit changes the folder that paths begin at.</summary>
    internal static string Runfile(string path) => Path.Combine(
        Environment.GetEnvironmentVariable("TEST_SRCDIR")!, Environment.GetEnvironmentVariable("TEST_WORKSPACE")!, path);

    internal static Model Digits() => Model.Load(DigitsPath);

    internal static Model Table() => Model.Load(TablePath);

    /// <summary>An image of an eight, one component for each pixel.</summary>
    internal static Input Eight()
    {
        using TensorFile file = TensorFile.Load(DigitsSamplePath);
        return new Input(file["input"]) { Split = Split.Along(2, 3), Baseline = 0.0 };
    }

    /// <summary>A row of a table, its thirty columns in a few groups, against the mean row.</summary>
    internal static Input Row(int groups)
    {
        using TensorFile file = TensorFile.Load(Runfile("docs/examples/models/breast_cancer/sample.safetensors"));
        using TensorFile mean = TensorFile.Load(Runfile("docs/examples/models/breast_cancer/baseline.npy"));
        Tensor labels = Tensor.From(Enumerable.Range(0, 30).Select(column => (long)(column % groups)).ToArray(), 1, 30);
        return new Input(file["input"]) { Split = Split.Labels(labels), Baseline = mean.First() };
    }

    /// <summary>A model of the conformance suite.</summary>
    internal static Model Conformance(string name, DType? dtype = null) =>
        Model.Load(Runfile($"tests/conformance/models/{name}.pt"), dtype);

    /// <summary>A tensor that belongs to a model of the conformance suite.</summary>
    internal static Tensor Conformance(string name, string tensor)
    {
        using TensorFile file = TensorFile.Load(Runfile($"tests/conformance/models/{name}.safetensors"));
        return file[tensor];
    }

    /// <summary>Rows of the table that its model was not trained on.</summary>
    internal static Tensor Rows(int begin, int count)
    {
        using TensorFile file = TensorFile.Load(Runfile("docs/examples/models/breast_cancer/heldout.safetensors"));
        using Tensor all = file["input"];
        return Tensor.From(all.ToArray<float>().AsSpan(begin * 30, count * 30), count, 30);
    }

    internal static void Close(double expected, double actual, double within) =>
        Assert.InRange(actual, expected - within, expected + within);

    /// <summary>Fails unless both lists have the same length and each number is close to the expected one.</summary>
    internal static void Close(IReadOnlyList<float> expected, IReadOnlyList<float> actual, double within)
    {
        Assert.NotEmpty(expected);
        Assert.Equal(expected.Count, actual.Count);
        for (int k = 0; k < expected.Count; k++)
        {
            Close(expected[k], actual[k], within);
        }
    }

    /// <summary>The library refuses the call with this very exception and code.</summary>
    internal static T Throws<T>(ErrorCode code, Func<object?> call)
        where T : Exception
    {
        T thrown = Assert.Throws<T>(call);
        Assert.Equal(code, CodeOf(thrown));
        return thrown;
    }

    /// <summary>The library says that an argument is wrong.</summary>
    internal static ArgumentException Refuses(Func<object?> call) =>
        Throws<ArgumentException>(ErrorCode.InvalidArgument, call);

    internal static ErrorCode CodeOf(Exception thrown) => (ErrorCode)thrown.Data[AddendException.CodeKey]!;
}
