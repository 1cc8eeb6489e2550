using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Tensors of both on the same memory.</summary>
public sealed class SharingTests : IDisposable
{
    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void What_one_writes_the_other_sees()
    {
        float[] numbers = [1, 2, 3, 4, 5, 6];
        Tensor wrapped = Tensor.Wrap(numbers, 2, 3);
        using TorchTensor torchs = wrapped.ToTorchSharp();
        Tensor back = torchs.ToAddend();
        torchs.add_(10);
        Assert.Equal([11, 12, 13, 14, 15, 16], numbers);
        Assert.Equal(numbers, back.Floats());
        numbers[4] = -1;
        Assert.Equal(-1, torchs[1, 1].ToSingle());

        using TorchTensor made = torch.zeros(2, 2);
        Tensor given = made.ToAddend();
        made[0, 1] = torch.tensor(7f);
        Assert.Equal([0, 7, 0, 0], given.Floats());
    }

    [Fact]
    public void Views_keep_their_strides()
    {
        using TorchTensor whole = torch.arange(12).to(torch.float32).reshape(3, 4).clone();
        using TorchTensor view = whole.t()[torch.TensorIndex.Slice(1, 3)];
        Tensor given = view.ToAddend();
        Assert.Equal([2L, 3L], given.Shape);
        Assert.Equal([1L, 4L], given.Strides);
        Assert.Equal([1, 5, 9, 2, 6, 10], given.Floats());
        whole.mul_(2);
        Assert.Equal([2, 10, 18, 4, 12, 20], given.Floats());
        using TorchTensor back = given.ToTorchSharp();
        Assert.Equal([1L, 4L], back.stride());
        Assert.Equal([2, 10, 18, 4, 12, 20], back.Floats());
    }

    [Theory]
    [InlineData(torch.ScalarType.Byte)]
    [InlineData(torch.ScalarType.Int8)]
    [InlineData(torch.ScalarType.Int16)]
    [InlineData(torch.ScalarType.Int32)]
    [InlineData(torch.ScalarType.Int64)]
    [InlineData(torch.ScalarType.Float16)]
    [InlineData(torch.ScalarType.BFloat16)]
    [InlineData(torch.ScalarType.Float32)]
    [InlineData(torch.ScalarType.Float64)]
    [InlineData(torch.ScalarType.Bool)]
    public void Every_dtype_comes_back(torch.ScalarType dtype)
    {
        using TorchTensor made = torch.tensor(new long[] { 0, 1, 1, 0, 1 }).to(dtype);
        using TorchTensor back = made.ToAddend().ToTorchSharp();
        Assert.Equal(dtype, back.dtype);
        Assert.Equal(made.bytes.ToArray(), back.bytes.ToArray());
        back.zero_();
        Assert.All(made.bytes.ToArray(), one => Assert.Equal(0, one));
    }

    [Fact]
    public void Empty_tensors_and_numbers_come_back()
    {
        using TorchTensor empty = torch.zeros(0, 3);
        Assert.Equal([0L, 3L], empty.ToAddend().ToTorchSharp().shape);
        using TorchTensor number = torch.tensor(2.5f);
        Assert.Empty(number.ToAddend().Shape);
        Assert.Equal(2.5f, number.ToAddend().ToTorchSharp().ToSingle());
    }

    // The memory lives as long as one of the two needs it, whatever the collector does to the other.
    [Fact]
    public void Memory_lives_as_long_as_one_of_them()
    {
        Tensor kept = Forgotten();
        TorchTensor keptThere = ForgottenHere();
        for (int k = 0; k < 5; k++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            using TorchTensor other = torch.ones(1000);  // would take memory that was given back
        }
        Assert.All(kept.Floats(), number => Assert.Equal(3, number));
        Assert.All(keptThere.Floats(), number => Assert.Equal(4, number));
        keptThere.Dispose();
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    private static Tensor Forgotten() => torch.full(1000, 3f).ToAddend();

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    private static TorchTensor ForgottenHere()
    {
        using var scope = new Scope();
        return Tensor.From(Enumerable.Repeat(4f, 1000).ToArray(), 1000).ToTorchSharp();
    }
}
