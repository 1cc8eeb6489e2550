using System.Diagnostics.CodeAnalysis;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Addend.Native;

/// <summary>
/// Finds the native libraries, or says where it looked and why each place did not serve. They are looked for in the
/// folder that the environment variable ADDEND_LIBRARY_PATH names and nowhere else where it is set; then where .NET
/// puts the libraries of packages; then beside this assembly; then where the system looks. They open LibTorch: the one
/// that this process has loaded, else the one in the folder that the environment variable ADDEND_LIBTORCH_PATH or the
/// property Addend.LibTorchPath of the application (runtimeconfig.json) names, else the system's.
/// </summary>
internal static class Library
{
    /// <summary>The name of the C interface in DllImport.</summary>
    internal const string Core = "addend";

    /// <summary>The name of what SWIG generates on top of it, given to SWIG in BUILD.</summary>
    internal const string Wrapper = "addend_csharp";

    internal const string PathVariable = "ADDEND_LIBRARY_PATH";

    internal const string LibTorchVariable = "ADDEND_LIBTORCH_PATH";
    internal const string LibTorchProperty = "Addend.LibTorchPath";

    private static readonly Lazy<Loaded> Found = new(() =>
    {
        Loaded loaded = Load(Folders(), LibTorchFolder());
        ProcessExit.Watch();
        return loaded;
    });

    /// <summary>Text of <c>addend_show_config</c> from when LibTorch was refused, for reports of problems; null if it
    /// was not.</summary>
    internal static string? ConfigOfFailure { get; private set; }

    internal sealed record Loaded(IntPtr Core, IntPtr Wrapper);

    // The one moment before the first call of any of our P/Invokes that the runtime offers.
#pragma warning disable CA2255 // Module initializers are for applications: a library that finds its own library needs one.
    [ModuleInitializer]
    internal static void Initialize() => NativeLibrary.SetDllImportResolver(typeof(Library).Assembly, Resolve);
#pragma warning restore CA2255

    private static IntPtr Resolve(string name, Assembly assembly, DllImportSearchPath? searchPath) => name switch
    {
        Core => Found.Value.Core,
        Wrapper => Found.Value.Wrapper,
        _ => IntPtr.Zero,
    };

    /// <summary>The folder of LibTorch that the application names; empty where it names none, or the environment one.</summary>
    internal static string LibTorchFolder() =>
        string.IsNullOrEmpty(Environment.GetEnvironmentVariable(LibTorchVariable))
            ? AppContext.GetData(LibTorchProperty) as string ?? ""
            : "";

    internal static Loaded Load(IEnumerable<string?> folders, string libTorch = "")
    {
        var failures = new List<string>();
        foreach (string? folder in folders)
        {
            // The wrapper needs the library, and finds it beside itself; loading it first tells which of them is missing.
            if (TryLoad(folder, "libaddend.so.1", failures, out IntPtr core) &&
                TryLoad(folder, "libaddend_csharp.so", failures, out IntPtr wrapper))
            {
                CheckVersion(core);
                LoadLibTorch(core, libTorch);
                return new Loaded(core, wrapper);
            }
        }
        throw new DllNotFoundException(
            "the native libraries of Addend were not found; set " + PathVariable + " to the folder that holds " +
            "libaddend.so.1 and libaddend_csharp.so. Tried:\n  " + string.Join("\n  ", failures));
    }

    /// <summary>The folders to look in, in order; null is wherever the system looks.</summary>
    internal static IEnumerable<string?> Folders()
    {
        string? chosen = Environment.GetEnvironmentVariable(PathVariable);
        if (!string.IsNullOrEmpty(chosen))
        {
            return [chosen];
        }
        string packages = AppContext.GetData("NATIVE_DLL_SEARCH_DIRECTORIES") as string ?? "";
        string beside = FolderOfThisAssembly();
        string runtime = Path.Combine(beside, "runtimes", RuntimeInformation.RuntimeIdentifier, "native");
        return packages.Split(Path.PathSeparator, StringSplitOptions.RemoveEmptyEntries)
            .Append(beside)
            .Append(runtime)
            .Distinct()
            .Append(null);
    }

    [UnconditionalSuppressMessage("SingleFile", "IL3000", Justification = "Where the assembly is part of the program, that one's folder is taken.")]
    internal static string FolderOfThisAssembly() =>
        Path.GetDirectoryName(typeof(Library).Assembly.Location) is { Length: > 0 } folder ? folder : AppContext.BaseDirectory;

    private static bool TryLoad(string? folder, string name, List<string> failures, out IntPtr library)
    {
        library = IntPtr.Zero;
        string path = folder is null ? name : Path.Combine(folder, name);
        if (folder is not null && !File.Exists(path))
        {
            failures.Add(path + ": no such file");
            return false;
        }
        try
        {
            library = NativeLibrary.Load(path);
            return true;
        }
        catch (Exception error) when (error is DllNotFoundException or BadImageFormatException)
        {
            failures.Add(path + ": " + Reason(error, path));
            return false;
        }
    }

    // The runtime wraps what the system's loader says in several lines of advice; the loader's line names the path.
    private static string Reason(Exception error, string path)
    {
        string[] lines = error.Message.Split('\n', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries);
        string? line = lines.FirstOrDefault(l => l.Contains(": ", StringComparison.Ordinal) &&
                                                 !l.StartsWith("Unable to load", StringComparison.Ordinal));
        line ??= lines.Length > 0 ? lines[0] : error.GetType().Name;
        return line.StartsWith(path + ": ", StringComparison.Ordinal) ? line[(path.Length + 2)..] : line;
    }

    // Loads LibTorch, before which nothing of it is loaded: if the process has another one, the library returns an
    // error instead.
    private static unsafe void LoadLibTorch(IntPtr core, string folder)
    {
        var load = (delegate* unmanaged[Cdecl]<byte*, IntPtr>)NativeLibrary.GetExport(core, "addend_load_libtorch");
        var message = (delegate* unmanaged[Cdecl]<IntPtr, IntPtr>)NativeLibrary.GetExport(core, "addend_status_message");
        var release = (delegate* unmanaged[Cdecl]<IntPtr, void>)NativeLibrary.GetExport(core, "addend_status_release");
        IntPtr status;
        // Ends with NUL, as C wants it.
        fixed (byte* name = Encoding.UTF8.GetBytes(folder + '\0'))
        {
            status = load(name);
        }
        if (status != IntPtr.Zero)
        {
            var config = (delegate* unmanaged[Cdecl]<IntPtr>)NativeLibrary.GetExport(core, "addend_show_config");
            ConfigOfFailure = Text.Static(config());
            string text = Text.Static(message(status));
            release(status);
            throw new DllNotFoundException(folder.Length == 0 ? text : $"{LibTorchProperty} = {folder}: {text}");
        }
    }

    private static unsafe void CheckVersion(IntPtr core)
    {
        var newest = (delegate* unmanaged[Cdecl]<int>)NativeLibrary.GetExport(core, "addend_abi_version");
        var oldest = (delegate* unmanaged[Cdecl]<int>)NativeLibrary.GetExport(core, "addend_abi_min_version");
        const int Wanted = AddendNative.ADDEND_ABI_VERSION;
        if (Wanted < oldest() || Wanted > newest())
        {
            throw new DllNotFoundException(
                $"this assembly needs version {Wanted} of Addend's C interface, the library serves {oldest()} to {newest()}; " +
                "install libraries and assembly of the same release");
        }
    }
}
