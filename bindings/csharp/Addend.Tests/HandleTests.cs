using Addend.Native;

namespace Addend.Tests;

/// <summary>
/// Random operations on handles that are live and on handles that were released behind .NET's back, as another library
/// in the process would by mistake. Each tensor holds a number of its own, so that a handle that reaches another owner's
/// tensor is seen.
/// </summary>
public sealed class HandleTests
{
    private const int Most = 500; // of each sort at once

    private readonly Random _random = new(20261123);
    private readonly List<Numbered> _live = [];
    private readonly List<Numbered> _stale = []; // whose handle was released, and who do not know it
    private readonly List<Numbered> _disposed = [];
    private long _made;

    [Fact]
    public void Released_handles_reach_no_other_owner() => Run(operations: 20_000);

    [Fact]
    [Trait("size", "long")]
    public void Released_handles_reach_no_other_owner_in_a_million_operations() => Run(operations: 1_000_000);

    private void Run(int operations)
    {
        for (int operation = 0; operation < operations; operation++)
        {
            Step();
        }
        _live.ForEach(numbered => numbered.ExpectOwn());
        foreach (List<Numbered> members in new[] { _live, _stale, _disposed })
        {
            members.ForEach(numbered => numbered.Tensor.Dispose());
        }
    }

    private void Step()
    {
        int choice = _random.Next(100);
        if (choice < 30 || _live.Count == 0)
        {
            _live.Add(new Numbered(++_made));
        }
        else if (choice < 55)
        {
            OneOf(_live).ExpectOwn();
        }
        else if (choice < 65)
        {
            Numbered numbered = TakeFrom(_live);
            numbered.ReleaseBehindItsBack();
            _stale.Add(numbered);
        }
        else if (choice < 75)
        {
            Numbered numbered = TakeFrom(_live);
            numbered.ExpectOwn();
            numbered.Tensor.Dispose();
            _disposed.Add(numbered);
        }
        else if (choice < 90 && _stale.Count > 0)
        {
            OneOf(_stale).ExpectRefused();
        }
        else if (_disposed.Count > 0)
        {
            Tensor tensor = OneOf(_disposed).Tensor;
            Assert.Throws<ObjectDisposedException>(() => tensor.To(DType.Int64));
        }
        foreach (List<Numbered> members in new[] { _live, _stale, _disposed })
        {
            if (members.Count > Most)
            {
                TakeFrom(members).Tensor.Dispose(); // once more, where it is stale or disposed
            }
        }
    }

    private Numbered OneOf(List<Numbered> members) => members[_random.Next(members.Count)];

    private Numbered TakeFrom(List<Numbered> members)
    {
        int place = _random.Next(members.Count);
        Numbered taken = members[place];
        members[place] = members[^1];
        members.RemoveAt(members.Count - 1);
        return taken;
    }

    private sealed class Numbered(long number)
    {
        internal Tensor Tensor { get; } = Tensor.From(new[] { number });

        internal void ExpectOwn() => Assert.Equal(number, Tensor.ToArray<long>()[0]);

        internal void ReleaseBehindItsBack() => Releases.addend_tensor_release(Tensor.Handle.DangerousGetHandle());

        internal void ExpectRefused()
        {
            Samples.Refuses(() => Tensor.To(DType.Int64));
            Samples.Refuses(() => Composition.FromParts(Tensor));
            ReleaseBehindItsBack();
        }
    }
}
