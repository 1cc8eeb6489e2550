using Addend.Native;

namespace Addend.Tests;

public sealed class LibraryTests
{
    [Fact]
    public void Is_of_the_release_of_the_assembly()
    {
        Assert.Equal(typeof(AddendLibrary).Assembly.GetName().Version!.ToString(3), AddendLibrary.Version);
        Assert.Equal(AddendNative.ADDEND_ABI_VERSION, AddendLibrary.AbiVersion);
        Assert.Matches(@"^\d+\.\d+\.\d+", AddendLibrary.LibTorchVersion);
        AddendLibrary.CheckLibTorch();
    }

    [Fact]
    public void Tells_what_reports_of_problems_need()
    {
        string[] lines = AddendLibrary.ShowConfig().Split('\n');
        string Of(string start) => Assert.Single(lines, line => line.StartsWith(start, StringComparison.Ordinal))[start.Length..];
        Assert.Equal("Addend " + AddendLibrary.Version, lines[0]);
        string[] opened = Of("  opened: ").Split(", for LibTorch ");
        Assert.Matches(@"/libaddend_torch[0-9.]+\.so$", opened[0]);
        Assert.True(File.Exists(opened[0]), opened[0]);
        Assert.Equal(AddendLibrary.LibTorchVersion, opened[1]);
        Assert.Contains($".NET {Environment.Version}", lines);
        Assert.StartsWith("CPU", Of("  devices: "), StringComparison.Ordinal);
    }

    [Fact]
    public void Tells_every_path_that_it_tried_and_why_it_did_not_serve()
    {
        string empty = Directory.CreateTempSubdirectory().FullName;
        string broken = Directory.CreateTempSubdirectory().FullName;
        try
        {
            File.WriteAllText(Path.Combine(broken, "libaddend.so.1"), "no library");
            DllNotFoundException thrown = Assert.Throws<DllNotFoundException>(() => Library.Load([empty, broken]));
            Assert.Contains($"{empty}/libaddend.so.1: no such file", thrown.Message);
            Assert.Matches($"{broken}/libaddend.so.1: .*(file too short|invalid ELF header)", thrown.Message);
            Assert.Contains("ADDEND_LIBRARY_PATH", thrown.Message);
        }
        finally
        {
            Directory.Delete(empty, recursive: true);
            Directory.Delete(broken, recursive: true);
        }
    }

    [Fact]
    public void Looks_only_where_the_variable_says_if_it_is_set() =>
        Assert.Equal([Environment.GetEnvironmentVariable(Library.PathVariable)], Library.Folders());

    // The numbers of errors come from the header: whoever adds one there finds it missing here.
    [Fact]
    public void Codes_are_those_of_the_interface()
    {
        int[] Constants(string start) => [.. typeof(AddendNative).GetFields()
            .Where(field => field.Name.StartsWith(start, StringComparison.Ordinal))
            .Select(field => (int)field.GetRawConstantValue()!)];
        Assert.Equal(Constants("ADDEND_RESULT_").Order(), Enum.GetValues<ResultKind>().Select(kind => (int)kind).Order());
        Assert.Equal(Constants("ADDEND_LOG_").Order(), Enum.GetValues<MessageLevel>().Select(level => (int)level).Order());
        Assert.Equal(InHeader("enum addend_code {"), Enum.GetValues<ErrorCode>().Length);
    }

    [Fact]
    public void Dtypes_are_those_of_the_interface() =>
        Assert.Equal(InHeader("enum addend_dtype {"), Enum.GetValues<DType>().Length);

    // How many values an enumeration of the C interface has.
    private static int InHeader(string from)
    {
        string header = File.ReadAllText(Samples.Runfile("c_api/addend.h"));
        return header[header.IndexOf(from, StringComparison.Ordinal)..].Split('}')[0].Split(" = ").Length - 1;
    }
}
