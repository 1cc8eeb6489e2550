using System.Diagnostics;
using System.Globalization;
using System.Text.Json;

namespace Addend.Tests;

/// <summary>Logs of decisions; the bytes are compared with those of tests/audit/write_records.cc.</summary>
public sealed class AuditLogTests : IDisposable
{
    private static readonly string Folder = Samples.Runfile("docs/examples/models/breast_cancer/");

    private readonly Scope _scope = new();
    private readonly DirectoryInfo _folder = Directory.CreateTempSubdirectory();
    private readonly Model _model = Model.Load(Folder + "model.pt");
    private readonly float[] _rows = TensorFile.Load(Folder + "heldout.safetensors")["input"].ToArray<float>();
    private readonly Tensor _baseline = TensorFile.Load(Folder + "baseline.npy").First();

    private string Log => Path.Combine(_folder.FullName, "log");

    public void Dispose()
    {
        _scope.Dispose();
        _folder.Delete(recursive: true);
    }

    [Fact]
    public void Records_are_those_of_every_language() => CompareBytes(200);

    [Fact]
    [Trait("size", "long")]
    public void Ten_thousand_records_are_those_of_every_language() => CompareBytes(10000);

    [Fact]
    public void Records_say_what_was_decided()
    {
        using Attribution found = Attributed(7);
        using var log = new AuditLog(Log, keepInputs: true);
        Assert.Equal(Log, log.Path);
        Assert.Null(log.Hash);
        Assert.Equal(0, log.TornBytes);
        string line = log.Append(found, new RecordOptions { Reasons = """[{"text": "\u00e4"}]""" });
        Assert.Equal(line + "\n", File.ReadAllText(Log));
        using JsonDocument record = JsonDocument.Parse(line);
        JsonElement target = record.RootElement.GetProperty("targets")[0];
        Explanation explanation = found.Explain();
        Assert.Equal(explanation.Value, target.GetProperty("value").GetDouble());
        Assert.Equal(
            explanation.Contributions.Select(part => part.Value),
            target.GetProperty("contributions").EnumerateArray().Select(part => part.GetDouble()));
        Assert.Equal(log.Hash, record.RootElement.GetProperty("hash").GetString());
        log.Append(found);
        Assert.Equal(2, log.Records);
    }

    [Fact]
    public void Records_are_computed_again()
    {
        string? hash;
        using (var log = new AuditLog(Log))
        {
            for (int k = 0; k < 6; k++)
            {
                using Attribution found = Attributed(k);
                log.Append(found);
            }
            hash = log.Hash;
        }
        var options = new VerifyOptions { Models = [Folder + "model.pt"] };
        AuditReport report = AuditLog.Verify(
            Log, options with { Inputs = [Folder + "heldout.safetensors"], Sample = 4, Seed = 1, Expect = hash });
        Assert.True(report.Verified, report.ToJson());
        using JsonDocument document = JsonDocument.Parse(report.ToJson());
        Assert.Equal(4, document.RootElement.GetProperty("computed").GetProperty("same").GetInt32());
        Assert.False(AuditLog.Verify(Log, options).Verified);
        Assert.False(AuditLog.Verify(Log, new VerifyOptions { Expect = new string('a', 64) }).Verified);
    }

    [Fact]
    public void A_bit_that_changed_is_found_and_named()
    {
        using (var log = new AuditLog(Log))
        {
            for (int k = 0; k < 3; k++)
            {
                using Attribution found = Attributed(k);
                log.Append(found);
            }
        }
        byte[] whole = File.ReadAllBytes(Log);
        var draw = new Random(31);
        for (int k = 0; k < 40; k++)
        {
            int at = draw.Next(whole.Length);
            byte[] changed = [.. whole];
            changed[at] ^= (byte)(1 << draw.Next(8));
            File.WriteAllBytes(Log, changed);
            int line = whole.AsSpan(0, at).Count((byte)'\n') + 1;
            AuditReport report = AuditLog.Verify(Log);
            Assert.False(report.Verified);
            Assert.Matches($"^records? {line} ", Assert.Single(report.Problems));
        }
    }

    [Fact]
    public void What_is_no_log_is_left_alone()
    {
        File.WriteAllText(Log, "a diary\n");
        var error = Assert.ThrowsAny<ArgumentException>(() => new AuditLog(Log));
        Assert.Contains("no log of decisions", error.Message, StringComparison.Ordinal);
        Assert.Equal("a diary\n", File.ReadAllText(Log));
        using var first = new AuditLog(Log + ".locked");
        var locked = Assert.ThrowsAny<InvalidOperationException>(() => new AuditLog(Log + ".locked"));
        Assert.Contains("open as a log already", locked.Message, StringComparison.Ordinal);
        Assert.Throws<FileNotFoundException>(() => AuditLog.Verify(Log + ".none"));
        Assert.Throws<ArgumentException>(() => first.Append(Attributed(0), new RecordOptions { Context = "{" }));
    }

    private void CompareBytes(int total)
    {
        AddendLibrary.SetThreads(1);
        using (var log = new AuditLog(Log))
        {
            for (int k = 0; k < total; k++)
            {
                using Attribution found = Attributed(k);
                log.Append(found, new RecordOptions
                {
                    Salt = k.ToString("x64", CultureInfo.InvariantCulture),
                    Time = $"2026-01-01T00:00:00.{k:D6}Z",
                    Context = $$"""{"application": {{k}}}""",
                });
            }
            Assert.Equal(total, log.Records);
        }
        string other = Log + ".other";
        string count = total.ToString(CultureInfo.InvariantCulture);
        Run("write", other, count, "0");
        Assert.Equal(File.ReadAllBytes(other), File.ReadAllBytes(Log));
        Run("verify", Log, count);
        AuditReport report = AuditLog.Verify(other);
        Assert.True(report.Verified);
        Assert.Equal(total, report.Records);
    }

    private Attribution Attributed(int k)
    {
        float[] row = _rows.AsSpan(k % 200 * 30, 30).ToArray();
        using Tensor input = Tensor.From(row, 1, 30);
        return _model.Attribute(new Input(input) { Split = Split.Along(1), Baseline = _baseline });
    }

    private static void Run(params string[] arguments)
    {
        var start = new ProcessStartInfo(Samples.Runfile("tests/audit/write_records"), arguments)
        {
            WorkingDirectory = Samples.Runfile("."),
        };
        using Process process = Process.Start(start)!;
        process.WaitForExit();
        Assert.Equal(0, process.ExitCode);
    }
}
