namespace Addend;

/// <summary>
/// Disposes every object of the library that is made inside it, by its flow of control, except those that are kept.
/// <code>
/// using var scope = new Scope();
/// Composition h = x.Linear(weight, bias).Gelu();
/// return scope.Keep(h.Softmax(-1));
/// </code>
/// Scopes nest: what one of them keeps belongs to the one around it.
/// </summary>
public sealed class Scope : IDisposable
{
    private static readonly AsyncLocal<Scope?> Innermost = new();

    private readonly Scope? _outer = Current;
    private readonly HashSet<AddendObject> _objects = new(ReferenceEqualityComparer.Instance);
    private bool _disposed;

    /// <summary>Begins a scope, which ends when it is disposed.</summary>
    public Scope() => Innermost.Value = this;

    // Threads and tasks that outlive a scope still see it: to them it is the nearest one around it that is open.
    internal static Scope? Current
    {
        get
        {
            Scope? scope = Innermost.Value;
            while (scope is { _disposed: true })
            {
                scope = scope._outer;
            }
            return scope;
        }
    }

    /// <summary>Lets an object outlive this scope.</summary>
    /// <typeparam name="T">What the object is.</typeparam>
    /// <param name="kept">An object that was made in this scope or one inside it.</param>
    /// <returns>The same object.</returns>
    public T Keep<T>(T kept)
        where T : AddendObject
    {
        ArgumentNullException.ThrowIfNull(kept);
        kept.Scope?.Remove(kept);
        kept.Scope = null;
        _outer?.Add(kept);
        return kept;
    }

    /// <summary>Disposes what was made inside and is not kept.</summary>
    public void Dispose()
    {
        AddendObject[] remaining;
        lock (_objects)
        {
            if (_disposed)
            {
                return;
            }
            _disposed = true;
            remaining = [.. _objects];
            _objects.Clear();
        }
        if (ReferenceEquals(Innermost.Value, this))
        {
            Innermost.Value = _outer;
        }
        foreach (AddendObject item in remaining)
        {
            item.Dispose();
        }
    }

    internal void Add(AddendObject item)
    {
        lock (_objects)
        {
            if (!_disposed)
            {
                _objects.Add(item);
                item.Scope = this;
                return;
            }
        }
        // The scope ended on another thread just now.
        _outer?.Add(item);
    }

    internal void Remove(AddendObject item)
    {
        lock (_objects)
        {
            _objects.Remove(item);
        }
    }
}
