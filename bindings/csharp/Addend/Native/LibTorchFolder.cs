using System.Runtime.InteropServices;

namespace Addend.Native;

/// <summary>
/// The LibTorch that the user names: the environment variable ADDEND_LIBTORCH_PATH, else the property Addend.LibTorchPath of
/// the application (runtimeconfig.json), is the folder of its libraries. They are loaded first, so that the native
/// libraries bind to them and the system's loader looks nowhere else.
/// </summary>
internal static class LibTorchFolder
{
    internal const string Variable = "ADDEND_LIBTORCH_PATH";
    internal const string Property = "Addend.LibTorchPath";

    // Each after those that it needs.
    private static readonly string[] Libraries = ["libc10.so", "libtorch_cpu.so", "libtorch.so"];

    /// <summary>Loads the LibTorch that is named, if one is. A process that has one already keeps it: two would end it.</summary>
    internal static void Load()
    {
        if (IsLoaded())
        {
            return;
        }
        string? variable = Environment.GetEnvironmentVariable(Variable);
        if (!string.IsNullOrEmpty(variable))
        {
            Load(variable, Variable);
        }
        else if (AppContext.GetData(Property) is string { Length: > 0 } folder)
        {
            Load(folder, Property);
        }
    }

    /// <summary>Loads the libraries of a folder.</summary>
    /// <param name="folder">The folder.</param>
    /// <param name="said">What names it, for errors.</param>
    internal static void Load(string folder, string said)
    {
        foreach (string name in Libraries)
        {
            string library = Find(folder, name) ?? throw new DllNotFoundException(
                $"{said} names {folder}, which has no {name}; name the folder that holds the libraries of LibTorch");
            try
            {
                NativeLibrary.Load(library);
            }
            catch (Exception error) when (error is DllNotFoundException or BadImageFormatException)
            {
                throw new DllNotFoundException($"cannot load {library}, where {said} says that LibTorch is", error);
            }
        }
    }

    private static bool IsLoaded()
    {
        const string Maps = "/proc/self/maps";
        return File.Exists(Maps) && File.ReadLines(Maps).Any(line => line.Contains("/libtorch_cpu.so", StringComparison.Ordinal));
    }

    // The library of this name, or with a version behind it, as distributions call theirs: libc10.so.1.13.
    private static string? Find(string folder, string name)
    {
        string plain = Path.GetFullPath(Path.Combine(folder, name));
        if (File.Exists(plain) || !Directory.Exists(folder))
        {
            return File.Exists(plain) ? plain : null;
        }
        return Directory.GetFiles(Path.GetFullPath(folder), name + ".*").Order(StringComparer.Ordinal).FirstOrDefault();
    }
}
