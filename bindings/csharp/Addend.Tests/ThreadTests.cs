using System.Runtime.InteropServices;

namespace Addend.Tests;

public sealed class ThreadTests
{
    // Different inputs through one model: what eight threads compute has the bits of what one computes.
    [Fact]
    public void Eight_threads_compute_the_same_bits_as_one()
    {
        const int Threads = 8, Rounds = 4;
        using Model model = Samples.Digits();
        byte[][] alone = [.. Enumerable.Range(0, Threads).Select(index => Bits(model, index))];
        Assert.NotEqual(alone[0], alone[1]);

        var together = new byte[Threads][][];
        using var start = new Barrier(Threads);
        Thread[] threads = [.. Enumerable.Range(0, Threads).Select(index => new Thread(() =>
        {
            start.SignalAndWait();
            together[index] = [.. Enumerable.Range(0, Rounds).Select(_ => Bits(model, index))];
        }))];
        foreach (Thread thread in threads)
        {
            thread.Start();
        }
        foreach (Thread thread in threads)
        {
            thread.Join();
        }
        for (int index = 0; index < Threads; index++)
        {
            Assert.Equal(Rounds, together[index].Length);
            Assert.All(together[index], bits => Assert.Equal(alone[index], bits));
        }
    }

    [Fact]
    public void Disposing_while_others_compute_ends_no_run_in_the_middle()
    {
        for (int round = 0; round < 50; round++)
        {
            Tensor tensor = Tensor.From(new double[1000]);
            using var start = new Barrier(3);
            Thread[] readers = [.. Enumerable.Range(0, 2).Select(_ => new Thread(() =>
            {
                start.SignalAndWait();
                try
                {
                    while (true)
                    {
                        Assert.Equal(1000, tensor.ToArray<double>().Length);
                    }
                }
                catch (ObjectDisposedException)
                {
                }
            }))];
            foreach (Thread reader in readers)
            {
                reader.Start();
            }
            start.SignalAndWait();
            tensor.Dispose();
            foreach (Thread reader in readers)
            {
                reader.Join();
            }
        }
    }

    private static byte[] Bits(Model model, int index)
    {
        using var scope = new Scope();
        float[] pixels = Samples.Eight().Value.ToArray<float>();
        for (int k = 0; k < pixels.Length; k++)
        {
            pixels[k] = (pixels[k] + (index * k % 7)) % 17;
        }
        var input = new Input(Tensor.From(pixels, 1, 1, 8, 8)) { Split = Split.Along(2, 3), Baseline = 0.0 };
        Composition logits = model.Decompose(input).Composition();
        return MemoryMarshal.AsBytes(logits.Components().ToArray<float>().AsSpan()).ToArray();
    }
}
