using TorchModule = global::TorchSharp.torch.nn.Module;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp;

/// <summary>Tells the path of the module that runs on this thread, and what it returns, until it is disposed. Modules whose
/// <c>forward</c> takes one to three tensors and gives one have hooks that can be heard, and so have TorchScript modules of
/// one or two; what others compute belongs to the module around them.</summary>
internal sealed class ModulePaths : IDisposable
{
    private readonly int _thread = Environment.CurrentManagedThreadId;
    private readonly Action<string> _tell;
    private readonly Action<string, Tensor[]> _returned;
    private readonly List<Action> _removers = [];
    private readonly Stack<string> _running = new();

    internal ModulePaths(TorchModule root, Action<string> tell, Action<string, Tensor[]> returned)
    {
        _tell = tell;
        _returned = returned;
        // A module with several names runs under the first of them.
        var known = new HashSet<TorchModule>(ReferenceEqualityComparer.Instance) { root };
        foreach ((string path, TorchModule module) in Within(root, ""))
        {
            if (known.Add(module))
            {
                Hear(path, module);
            }
        }
    }

    public void Dispose()
    {
        foreach (Action remove in _removers)
        {
            remove();
        }
        _removers.Clear();
    }

    // Children of a TorchScript module are skipped: they run in LibTorch's interpreter, which calls no hook, and
    // TorchSharp would make objects for them at each question and never free all of what they hold.
    private static IEnumerable<(string Path, TorchModule Module)> Within(TorchModule module, string prefix)
    {
        if (module is global::TorchSharp.torch.jit.ScriptModule)
        {
            yield break;
        }
        foreach ((string name, TorchModule child) in module.named_children())
        {
            yield return (prefix + name, child);
            foreach ((string, TorchModule) inner in Within(child, prefix + name + "."))
            {
                yield return inner;
            }
        }
    }

    // A hook that gives null changes nothing.
    private void Hear(string path, TorchModule heard)
    {
        switch (heard)
        {
            case global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor> module:
                _removers.Add(module.register_forward_pre_hook((_, _) => Enter<TorchTensor>(path)!).remove);
                _removers.Add(module.register_forward_hook((_, _, output) => Leave(path, output)!).remove);
                break;
            case global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor, TorchTensor> module:
                _removers.Add(module.register_forward_pre_hook((_, _, _) => Enter<(TorchTensor, TorchTensor)?>(path)).remove);
                _removers.Add(module.register_forward_hook((_, _, _, output) => Leave(path, output)!).remove);
                break;
            case global::TorchSharp.torch.nn.Module<TorchTensor, TorchTensor, TorchTensor, TorchTensor> module:
                _removers.Add(module.register_forward_pre_hook(
                    (_, _, _, _) => Enter<(TorchTensor, TorchTensor, TorchTensor)?>(path)).remove);
                _removers.Add(module.register_forward_hook((_, _, _, _, output) => Leave(path, output)!).remove);
                break;
            case global::TorchSharp.torch.jit.ScriptModule<TorchTensor, TorchTensor> module:
                _removers.Add(module.register_forward_pre_hook((_, _) => Enter<TorchTensor>(path)!).remove);
                _removers.Add(module.register_forward_hook((_, _, output) => Leave(path, output)!).remove);
                break;
            case global::TorchSharp.torch.jit.ScriptModule<TorchTensor, TorchTensor, TorchTensor> module:
                _removers.Add(module.register_forward_pre_hook((_, _, _) => Enter<(TorchTensor, TorchTensor)?>(path)).remove);
                _removers.Add(module.register_forward_hook((_, _, _, output) => Leave(path, output)!).remove);
                break;
        }
    }

    private T? Enter<T>(string path)
    {
        if (Environment.CurrentManagedThreadId == _thread)
        {
            _running.Push(path);
            _tell(path);
        }
        return default;
    }

    private TorchTensor? Leave(string path, TorchTensor output)
    {
        if (Environment.CurrentManagedThreadId == _thread && _running.Contains(path))
        {
            Return(path, output);
            // A module that threw never left: those inside of this one go too.
            while (_running.Pop() != path)
            {
            }
            _tell(_running.TryPeek(out string? around) ? around : "");
        }
        return null;
    }

    private void Return(string path, TorchTensor output)
    {
        try
        {
            using Tensor told = output.ToAddend();
            _returned(path, [told]);
        }
        catch (NotSupportedException)
        {
            _returned(path, []);  // it is not dense, and has no parts
        }
    }
}
