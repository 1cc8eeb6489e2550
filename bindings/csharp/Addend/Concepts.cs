using Addend.Native;

namespace Addend;

/// <summary>
/// A description of the concepts that people are told of: which components count as one, which sign speaks against them,
/// how many reasons are given and their texts. It is read once and serves any number of attributions and threads.
/// <code>
/// using Concepts concepts = Concepts.Read(File.ReadAllText("concepts.json"));
/// foreach (Decision decision in model.Attribute(request).Reasons(concepts).Decisions)
/// {
///     Console.WriteLine(string.Join("; ", decision.Reasons.Select(reason => reason.Text)));
/// }
/// </code>
/// </summary>
public sealed class Concepts : AddendObject
{
    private Concepts(ConceptsHandle handle)
        : base(handle)
    {
    }

    internal ConceptsHandle Handle => (ConceptsHandle)OwnedHandle;

    /// <summary>Reads a description.</summary>
    /// <param name="json"><c>{"format": "addend.concepts", "version": 1, ...}</c>.</param>
    /// <returns>The concepts.</returns>
    /// <exception cref="ArgumentException">A key, a concept or a text is not as the page on reasons says.</exception>
    public static Concepts Read(string json)
    {
        AddendNative.addend_concepts_read(Text.Checked(json, nameof(json)), out ConceptsHandle handle);
        return new Concepts(handle);
    }
}
