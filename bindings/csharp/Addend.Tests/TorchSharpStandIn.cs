// A stand-in for the few types of TorchSharp that Addend.TorchSharp uses, under their names: TorchSharp brings a LibTorch of
// its own, which this library was not built for. Tensors are real ones, of the native library in tests/native_model.
#pragma warning disable CA1034, CA1050, CA1051, CA1708, CA1711, CA1715, CA1716, CS8981, IDE1006

using Addend.Tests;

namespace TorchSharp;

public static class torch
{
    public class Tensor : IDisposable
    {
        public Tensor(IntPtr handle) => Handle = handle != IntPtr.Zero
            ? handle
            : throw new InvalidOperationException(NativeModel.Error());

        public IntPtr Handle { get; private set; }

        public static Tensor UnsafeCreateTensor(IntPtr handle) => new(handle);

        public void Dispose()
        {
            NativeModel.Release(Handle);
            Handle = IntPtr.Zero;
            GC.SuppressFinalize(this);
        }
    }

    public static class nn
    {
        public class Module
        {
            private readonly List<(string Name, Module Module)> _children = [];
            private readonly List<(string Name, Modules.Parameter Parameter)> _parameters = [];
            private readonly List<(string Name, Tensor Buffer)> _buffers = [];

            public void register_module(string name, Module module) => _children.Add((name, module));

            public void register_parameter(string name, Modules.Parameter parameter) => _parameters.Add((name, parameter));

            public void register_buffer(string name, Tensor buffer) => _buffers.Add((name, buffer));

            public IEnumerable<(string name, Module module)> named_children() => _children;

            public IEnumerable<(string name, Modules.Parameter parameter)> named_parameters() => _parameters.Concat(
                _children.SelectMany(child => child.Module.named_parameters().Select(
                    inner => ($"{child.Name}.{inner.name}", inner.parameter))));

            public IEnumerable<(string name, Tensor buffer)> named_buffers() => _buffers.Concat(
                _children.SelectMany(child => child.Module.named_buffers().Select(
                    inner => ($"{child.Name}.{inner.name}", inner.buffer))));
        }

        public class HookableModule<TPreHook, TPostHook> : Module
        {
            protected readonly List<TPreHook> pre_hooks = [];
            protected readonly List<TPostHook> post_hooks = [];

            /// <summary>How many hooks there are.</summary>
            public int Hooks => pre_hooks.Count + post_hooks.Count;

            public HookRemover register_forward_pre_hook(TPreHook hook)
            {
                pre_hooks.Add(hook);
                return new HookRemover(() => pre_hooks.Remove(hook));
            }

            public HookRemover register_forward_hook(TPostHook hook)
            {
                post_hooks.Add(hook);
                return new HookRemover(() => post_hooks.Remove(hook));
            }

            public class HookRemover(Action removing)
            {
                public void remove() => removing();
            }
        }

        public abstract class Module<T, TResult>
            : HookableModule<Func<Module<T, TResult>, T, T>, Func<Module<T, TResult>, T, TResult, TResult>>
        {
            public abstract TResult forward(T input);

            public TResult call(T input)
            {
                foreach (Func<Module<T, TResult>, T, T> hook in pre_hooks)
                {
                    input = hook(this, input) ?? input;
                }
                TResult result = forward(input);
                foreach (Func<Module<T, TResult>, T, TResult, TResult> hook in post_hooks)
                {
                    result = hook(this, input, result) ?? result;
                }
                return result;
            }
        }

        public abstract class Module<T1, T2, TResult> : HookableModule<
            Func<Module<T1, T2, TResult>, T1, T2, (T1, T2)?>, Func<Module<T1, T2, TResult>, T1, T2, TResult, TResult>>
        {
            public abstract TResult forward(T1 input1, T2 input2);

            public TResult call(T1 input1, T2 input2)
            {
                foreach (Func<Module<T1, T2, TResult>, T1, T2, (T1, T2)?> hook in pre_hooks)
                {
                    (input1, input2) = hook(this, input1, input2) ?? (input1, input2);
                }
                TResult result = forward(input1, input2);
                foreach (Func<Module<T1, T2, TResult>, T1, T2, TResult, TResult> hook in post_hooks)
                {
                    result = hook(this, input1, input2, result) ?? result;
                }
                return result;
            }
        }

        public abstract class Module<T1, T2, T3, TResult> : HookableModule<
            Func<Module<T1, T2, T3, TResult>, T1, T2, T3, (T1, T2, T3)?>,
            Func<Module<T1, T2, T3, TResult>, T1, T2, T3, TResult, TResult>>
        {
            public abstract TResult forward(T1 input1, T2 input2, T3 input3);

            public TResult call(T1 input1, T2 input2, T3 input3)
            {
                foreach (Func<Module<T1, T2, T3, TResult>, T1, T2, T3, (T1, T2, T3)?> hook in pre_hooks)
                {
                    (input1, input2, input3) = hook(this, input1, input2, input3) ?? (input1, input2, input3);
                }
                TResult result = forward(input1, input2, input3);
                foreach (Func<Module<T1, T2, T3, TResult>, T1, T2, T3, TResult, TResult> hook in post_hooks)
                {
                    result = hook(this, input1, input2, input3, result) ?? result;
                }
                return result;
            }
        }
    }

    public static class jit
    {
        public class ScriptModule : nn.Module;

        public class HookableScriptModule<TPreHook, TPostHook> : ScriptModule
        {
            protected readonly List<TPreHook> pre_hooks = [];
            protected readonly List<TPostHook> post_hooks = [];

            /// <summary>How many hooks there are.</summary>
            public int Hooks => pre_hooks.Count + post_hooks.Count;

            public HookRemover register_forward_pre_hook(TPreHook hook)
            {
                pre_hooks.Add(hook);
                return new HookRemover(() => pre_hooks.Remove(hook));
            }

            public HookRemover register_forward_hook(TPostHook hook)
            {
                post_hooks.Add(hook);
                return new HookRemover(() => post_hooks.Remove(hook));
            }

            public class HookRemover(Action removing)
            {
                public void remove() => removing();
            }
        }

        public abstract class ScriptModule<T, TResult> : HookableScriptModule<
            Func<ScriptModule<T, TResult>, T, T>, Func<ScriptModule<T, TResult>, T, TResult, TResult>>
        {
            public abstract TResult forward(T input);

            public TResult call(T input)
            {
                foreach (Func<ScriptModule<T, TResult>, T, T> hook in pre_hooks)
                {
                    input = hook(this, input) ?? input;
                }
                TResult result = forward(input);
                foreach (Func<ScriptModule<T, TResult>, T, TResult, TResult> hook in post_hooks)
                {
                    result = hook(this, input, result) ?? result;
                }
                return result;
            }
        }

        // None of the tests has one; Addend.TorchSharp names the type.
        public abstract class ScriptModule<T1, T2, TResult> : HookableScriptModule<
            Func<ScriptModule<T1, T2, TResult>, T1, T2, (T1, T2)?>, Func<ScriptModule<T1, T2, TResult>, T1, T2, TResult, TResult>>;
    }

    public static class Modules
    {
        public sealed class Parameter(IntPtr handle) : Tensor(handle);
    }
}
