using System.Diagnostics;
using System.Runtime.CompilerServices;
using Addend.Native;

namespace Addend.Tests;

/// <summary>Handles that are forgotten on purpose. Alone in its process: it counts all of them.</summary>
[Trait("size", "long")]
public sealed class LeakTests
{
    [Fact]
    public void Forgotten_handles_are_released()
    {
        const int Steps = 20;
        long afterFirstFifth = 0;
        for (int step = 1; step <= Steps; step++)
        {
            Forget(decompositions: 10_000 / Steps, loads: 300 / Steps);
            CollectAll();
            Assert.Equal(0, AddendNative.addend_debug_live(AddendNative.ADDEND_HANDLE_ANY));
            if (step == Steps / 5)
            {
                afterFirstFifth = Environment.WorkingSet;
            }
        }
        long grown = Environment.WorkingSet - afterFirstFifth;
        TestContext.Current.TestOutputHelper?.WriteLine($"grew by {grown / 1024.0 / 1024.0:F2} MiB after the first fifth");
        Assert.True(grown < 8 << 20, $"grew by {grown} bytes");
    }

    // Not inlined: a frame that still runs would keep the last handles.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Forget(int decompositions, int loads)
    {
        Model model = Samples.Table();
        Input row = Samples.Row(groups: 2);
        for (int k = 0; k < decompositions; k++)
        {
            Results results = model.Decompose(row);
            _ = results.Composition();
            _ = results.Explain();
            if (k % 10 == 0)
            {
                RecordedProgram program = model.Record(row);
                _ = program.Replay(row);
                _ = program.ToModel().Attribute(row).Input();
            }
        }
        for (int k = 0; k < loads; k++)
        {
            _ = Samples.Table();
        }
    }

    // Until nothing is left, or a minute has passed: how many rounds the collector needs is its own business.
    private static void CollectAll()
    {
        for (var waited = Stopwatch.StartNew(); waited.Elapsed < TimeSpan.FromMinutes(1);)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            if (AddendNative.addend_debug_live(AddendNative.ADDEND_HANDLE_ANY) == 0)
            {
                return;
            }
        }
    }
}
