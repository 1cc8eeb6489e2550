using System.Runtime.CompilerServices;

namespace Addend.Tests;

public sealed class ScopeTests
{
    [Fact]
    public void Disposes_what_was_made_inside()
    {
        Tensor before = Tensor.From(new[] { 1.0 });
        Tensor inside, kept;
        Composition also;
        using (var scope = new Scope())
        {
            inside = Tensor.From(new[] { 2.0 });
            also = Composition.Diagonal(inside, 0) + 1;
            kept = scope.Keep(Tensor.From(new[] { 3.0 }));
        }
        Assert.Throws<ObjectDisposedException>(() => inside.DType);
        Assert.Throws<ObjectDisposedException>(() => also.Numc);
        Assert.Equal([1.0], before.ToArray<double>());
        Assert.Equal([3.0], kept.ToArray<double>());
        before.Dispose();
        kept.Dispose();
    }

    [Fact]
    public void Kept_objects_belong_to_the_outer_scope()
    {
        Tensor kept, outer;
        using (new Scope())
        {
            using (var inner = new Scope())
            {
                kept = inner.Keep(Tensor.From(new[] { 1.0 }));
            }
            Assert.Equal([1.0], kept.ToArray<double>());
            outer = Tensor.From(new[] { 2.0 });
        }
        Assert.Throws<ObjectDisposedException>(() => kept.DType);
        Assert.Throws<ObjectDisposedException>(() => outer.DType);
        using Tensor after = Tensor.From(new[] { 3.0 });
        Assert.Equal([3.0], after.ToArray<double>());
    }

    [Fact]
    public async Task Follows_the_flow_of_control_across_awaits_and_threads()
    {
        Tensor inside, onOtherThread;
        using (new Scope())
        {
            await Task.Yield();
            inside = Tensor.From(new[] { 1.0 });
            onOtherThread = await Task.Run(() => Tensor.From(new[] { 2.0 }));
        }
        Assert.Throws<ObjectDisposedException>(() => inside.DType);
        Assert.Throws<ObjectDisposedException>(() => onOtherThread.DType);
    }

    [Fact]
    public async Task Scopes_of_two_flows_do_not_meet()
    {
        using var opened = new SemaphoreSlim(0);
        using var checkedSurvivor = new SemaphoreSlim(0);
        Task other = Task.Run(async () =>
        {
            using (new Scope())
            {
                opened.Release();
                await checkedSurvivor.WaitAsync();
            }
        });
        await opened.WaitAsync();
        using Tensor mine = Tensor.From(new[] { 1.0 });
        checkedSurvivor.Release();
        await other;
        Assert.Equal([1.0], mine.ToArray<double>());
    }

    [Fact]
    public void Forgets_what_is_disposed_before_it_ends()
    {
        using var scope = new Scope();
        WeakReference tensor = Disposed();
        TensorTests.Collect();
        Assert.False(tensor.IsAlive);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static WeakReference Disposed()
    {
        Tensor tensor = Tensor.From(new[] { 1.0 });
        tensor.Dispose();
        return new WeakReference(tensor);
    }
}
