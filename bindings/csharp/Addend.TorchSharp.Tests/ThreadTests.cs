using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Several threads, each with modules of its own, beside threads that train.</summary>
public sealed class ThreadTests
{
    [Fact]
    public void Threads_explain_beside_each_other()
    {
        const int Threads = 4;
        const int Runs = 100;
        float[][] expected = [.. Enumerable.Range(0, Threads).Select(Explained)];
        Assert.NotEqual(expected[0], expected[1]);
        var failures = new System.Collections.Concurrent.ConcurrentQueue<Exception>();
        using var stop = new CancellationTokenSource();
        var training = new Thread(() => Guard(failures, () => Train(stop.Token)));
        training.Start();
        Thread[] explaining =
        [
            .. Enumerable.Range(0, Threads).Select(k => new Thread(() => Guard(failures, () =>
            {
                for (int run = 0; run < Runs; run++)
                {
                    Compare.SameBits(expected[k], Explained(k));
                }
            }))),
        ];
        foreach (Thread thread in explaining)
        {
            thread.Start();
        }
        foreach (Thread thread in explaining)
        {
            thread.Join();
        }
        stop.Cancel();
        training.Join();
        Assert.Empty(failures);
    }

    // One module that only reads its parameters may be told of by one thread at a time: hooks belong to the module.
    [Fact]
    public void Threads_take_turns_with_a_module()
    {
        using Modules.Sequential network = Networks.Perceptron();
        using TorchTensor x = Networks.Row();
        float[] expected = Components(network, x);
        Parallel.For(0, 40, new ParallelOptions { MaxDegreeOfParallelism = 4 }, _ =>
        {
            lock (network)
            {
                Compare.SameBits(expected, Components(network, x));
            }
        });
        Assert.Equal(0, Hooks.Of(network));
    }

    private static void Guard(System.Collections.Concurrent.ConcurrentQueue<Exception> failures, Action action)
    {
        try
        {
            action();
        }
#pragma warning disable CA1031 // A thread of a test tells what it met, whatever that is.
        catch (Exception failure)
#pragma warning restore CA1031
        {
            failures.Enqueue(failure);
        }
    }

    // Weights come from arrays: the generator of TorchSharp is one for all threads. The copies lie where LibTorch aligns
    // them, while an array lies anywhere, and the last bits of a product depend on that.
    private static float[] Explained(int seed)
    {
        using var scope = torch.NewDisposeScope();
        var random = new Random(seed);
        TorchTensor Numbers(params long[] shape) => torch.tensor(
            Enumerable.Range(0, (int)shape.Aggregate((a, b) => a * b)).Select(_ => random.NextSingle() - 0.5f).ToArray(),
            shape).clone();
        using Modules.Linear first = nn.Linear(new Modules.Parameter(Numbers(8, 6)), new Modules.Parameter(Numbers(8)));
        using Modules.Linear second = nn.Linear(new Modules.Parameter(Numbers(3, 8)), new Modules.Parameter(Numbers(3)));
        using Modules.Sequential network = nn.Sequential(("first", first), ("gelu", nn.GELU()), ("second", second));
        return Components(network, Numbers(1, 6));
    }

    private static float[] Components(nn.Module<TorchTensor, TorchTensor> network, TorchTensor x)
    {
        using Results results = network.Decompose(x, Split.Along(1), baseline: 0.0);
        using Composition composition = results.Composition();
        using Tensor components = composition.Components();
        return components.Floats();
    }

    private static void Train(CancellationToken stop)
    {
        using Modules.Linear linear = nn.Linear(6, 3);
        using var optimizer = torch.optim.SGD(linear.parameters(), 0.01);
        using TorchTensor x = torch.ones(4, 6);
        while (!stop.IsCancellationRequested)
        {
            using var scope = torch.NewDisposeScope();
            optimizer.zero_grad();
            linear.call(x).square().mean().backward();
            optimizer.step();
        }
    }
}
