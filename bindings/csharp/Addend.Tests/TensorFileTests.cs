namespace Addend.Tests;

public sealed class TensorFileTests
{
    [Fact]
    public void Reads_tensors_and_metadata()
    {
        using TensorFile file = TensorFile.Load(Samples.DigitsSamplePath);
        using Tensor image = file["input"];
        Assert.Contains("label", file.Names);
        Assert.Equal([1L, 1L, 8L, 8L], image.Shape);
        Assert.Equal("image", file.Metadata("kind"));
        Assert.Null(file.Metadata("no such key"));
    }

    [Fact]
    public void Tensor_files_keep_what_they_are_given()
    {
        string path = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName() + ".safetensors");
        try
        {
            using Tensor tensor = Tensor.From(new double[,] { { 1, 2 }, { 3, 4 } });
            using (var written = new TensorFile())
            {
                written.Add("naïve ☃", tensor);
                written.SetMetadata("kind", "table");
                written.Save(path);
                Assert.Equal(File.ReadAllBytes(path), written.ToBytes());
            }
            using TensorFile read = TensorFile.Load(path);
            using Tensor same = read["naïve ☃"];
            Assert.Equal(["naïve ☃"], read.Names);
            Assert.Equal("table", read.Metadata("kind"));
            Assert.Equal([1, 2, 3, 4], same.ToArray<double>());
        }
        finally
        {
            File.Delete(path);
        }
    }

    [Fact]
    public void Damaged_tensor_files_are_refused()
    {
        byte[] content = File.ReadAllBytes(Samples.DigitsSamplePath);
        using TensorFile file = TensorFile.Load(content);
        Assert.Contains("input", file.Names);
        for (int length = 0; length < content.Length; length += 37)
        {
            Assert.Throws<ArgumentException>(() => TensorFile.Load(content.AsSpan(0, length), "cut"));
        }
    }

    [Fact]
    public void Names_what_is_not_there()
    {
        using TensorFile file = TensorFile.Load(Samples.DigitsSamplePath);
        KeyNotFoundException thrown = Assert.Throws<KeyNotFoundException>(() => file["no such tensor"]);
        Assert.Contains("no such tensor", thrown.Message);
        Assert.Equal(ErrorCode.NotFound, Samples.CodeOf(thrown));
        Assert.Equal("no/such/file", Assert.Throws<FileNotFoundException>(() => TensorFile.Load("no/such/file")).FileName);
        using var empty = new TensorFile();
        Assert.Throws<KeyNotFoundException>(empty.First);
    }

    [Fact]
    public void Refuses_text_that_C_cannot_hold()
    {
        using TensorFile file = TensorFile.Load(Samples.DigitsSamplePath);
        Assert.Contains("position 5", Assert.Throws<ArgumentException>(() => file["input\0more"]).Message);
        Assert.Contains("position 2", Assert.Throws<ArgumentException>(() => file["in\ud83d"]).Message);
        Assert.Throws<ArgumentNullException>(() => file[null!]);
    }

    [Fact]
    public void Cannot_be_used_after_it_was_disposed()
    {
        TensorFile file = TensorFile.Load(Samples.DigitsSamplePath);
        Tensor image = file["input"];
        file.Dispose();
        Assert.Throws<ObjectDisposedException>(() => file.Names);
        Assert.Throws<ObjectDisposedException>(() => file["input"]);
        Assert.Throws<ObjectDisposedException>(() => file.Metadata("kind"));
        using (image)
        {
            Assert.Equal(64, image.ToArray<float>().Length);
        }
    }
}
