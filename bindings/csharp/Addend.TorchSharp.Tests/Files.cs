namespace Addend.TorchSharp.Tests;

/// <summary>Models and tensors that Bazel puts beside the test.</summary>
internal static class Files
{
    internal static string Script(string name) =>
        name == "digits" ? Path("docs/examples/models/digits/model.pt") : Path($"tests/conformance/models/{name}.pt");

    internal static string Tensors(string name) => name == "digits"
        ? Path("docs/examples/models/digits/sample.safetensors")
        : Path($"tests/conformance/models/{name}.safetensors");

    /// <summary>The first input of a model.</summary>
    internal static Tensor Input(string name)
    {
        using TensorFile file = TensorFile.Load(Tensors(name));
        return file[file.Names.First(tensor => tensor is "input" or "table" or "image" or "sequence" or "tokens")];
    }

    private static string Path(string path) => System.IO.Path.Combine(
        Environment.GetEnvironmentVariable("ADDEND_TEST_FILES") ?? Environment.CurrentDirectory, path);
}
