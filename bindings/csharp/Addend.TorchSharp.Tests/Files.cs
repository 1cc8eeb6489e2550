using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Models and tensors that Bazel puts beside the test.</summary>
internal static class Files
{
    internal static string Script(string name) =>
        name == "digits" ? Path("docs/examples/models/digits/model.pt") : Path($"tests/conformance/models/{name}.pt");

    internal static string Tensors(string name) => name == "digits"
        ? Path("docs/examples/models/digits/sample.safetensors")
        : Path($"tests/conformance/models/{name}.safetensors");

    /// <summary>The first input of a model, on memory that LibTorch aligned: the last bits of a product depend on how it
    /// is.</summary>
    internal static TorchTensor Input(string name)
    {
        using TensorFile file = TensorFile.Load(Tensors(name));
        using Tensor read = file[file.Names.First(one => one is "input" or "table" or "image" or "sequence" or "tokens")];
        using TorchTensor shared = read.ToTorchSharp();
        return shared.clone();
    }

    private static string Path(string path) => System.IO.Path.Combine(
        Environment.GetEnvironmentVariable("ADDEND_TEST_FILES") ?? Environment.CurrentDirectory, path);
}
