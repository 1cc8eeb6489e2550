using System.Collections;
using System.Reflection;

namespace Addend.TorchSharp.Tests;

/// <summary>The hooks of modules, which TorchSharp does not tell.</summary>
internal static class Hooks
{
    /// <summary>How many a module has, with those inside of it.</summary>
    internal static int Of(nn.Module root) => Own(root) + root.named_modules().Sum(named => Own(named.module));

    private static int Own(nn.Module module)
    {
        int count = 0;
        for (Type? type = module.GetType(); type is not null; type = type.BaseType)
        {
            foreach (string name in new[] { "pre_hooks", "post_hooks" })
            {
                FieldInfo? field = type.GetField(
                    name, BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public | BindingFlags.DeclaredOnly);
                count += (field?.GetValue(module) as ICollection)?.Count ?? 0;
            }
        }
        return count;
    }
}
