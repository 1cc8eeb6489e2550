using System.Text.Json;
using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>
/// A log of decisions: a file to which one record is appended for each, on the disk before <see cref="Append"/> returns.
/// <code>
/// using var log = new AuditLog("decisions.jsonl");
/// using Attribution found = model.Attribute(request);
/// log.Append(found, new RecordOptions { Context = """{"application": 4711}""" });
/// </code>
/// Records are chained by hashes: <see cref="Verify"/> names every one that is not as it was written, and computes them
/// again. The file is locked while the log is open. Any number of threads may share one.
/// </summary>
public sealed class AuditLog : AddendObject
{
    /// <summary>Opens a log to append to it, or begins one.</summary>
    /// <param name="path">The file.</param>
    /// <param name="keepInputs">Whether records hold the inputs themselves, and not only their digest.</param>
    /// <exception cref="InvalidOperationException">The file is open as a log already, or its last record is
    /// damaged.</exception>
    /// <exception cref="ArgumentException">The file is no log, or cannot be written.</exception>
    public AuditLog(string path, bool keepInputs = false)
        : base(Open(path, keepInputs))
    {
    }

    /// <summary>The file, as it was given.</summary>
    public string Path => State("path").GetString()!;

    /// <summary>How many records it holds.</summary>
    public long Records => State("records").GetInt64();

    /// <summary>The hash of the last record; null where there is none. Keep it where the log is not: only it shows that a
    /// log was not written anew.</summary>
    public string? Hash => State("hash").GetString();

    /// <summary>How many bytes of a record that was never acknowledged were set aside when it was opened.</summary>
    public long TornBytes => State("torn_bytes").GetInt64();

    private AuditLogHandle Handle => (AuditLogHandle)OwnedHandle;

    /// <summary>Verifies a log: reads every bit, and computes records again where models are given.</summary>
    /// <param name="path">The log, which somebody may have open.</param>
    /// <param name="options">What is looked at; null: the chain alone.</param>
    /// <returns>What was found.</returns>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    public static AuditReport Verify(string path, VerifyOptions? options = null) => new(Text.Of(
        Files.Existing(path), (options ?? new VerifyOptions()).ToJson(), AddendNative.addend_audit_verify));

    /// <summary>Appends a record; it is on the disk when this returns.</summary>
    /// <param name="attribution">What a model gave.</param>
    /// <param name="options">What the record says beside it; null: nothing.</param>
    /// <returns>The line that was written: a JSON object.</returns>
    /// <exception cref="ArgumentException">The file cannot be written, as on a full disk; nothing was
    /// appended.</exception>
    /// <exception cref="InvalidOperationException">Something else wrote to the file, or the model's file is another one
    /// now.</exception>
    public string Append(Attribution attribution, RecordOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(attribution);
        AddendNative.addend_audit_log_append(
            Handle, attribution.Handle, (options ?? new RecordOptions()).ToJson(), out StringHandle record);
        return Text.Taken(record);
    }

    private static AuditLogHandle Open(string path, bool keepInputs)
    {
        string options = new JsonObject { ["keep_inputs"] = keepInputs }.ToJsonString();
        AddendNative.addend_audit_log_open(Text.Checked(path, nameof(path)), options, out AuditLogHandle log);
        return log;
    }

    private JsonElement State(string key)
    {
        using JsonDocument document = JsonDocument.Parse(Text.Of(Handle, AddendNative.addend_audit_log_state));
        return document.RootElement.GetProperty(key).Clone();
    }
}
