using System.Text.Json;

namespace Addend.Tests;

/// <summary>Jobs: each row's attribution, by threads that know nothing of each other.</summary>
public sealed class JobTests : FolderTest
{
    private static readonly string RowsPath =
        Path.GetFullPath(Samples.Runfile("docs/examples/models/breast_cancer/heldout.safetensors"));

    private string PlanPath => Path.Combine(Folder, "plan.json");

    [Fact]
    public void Threads_compute_what_one_attribution_of_each_row_gives()
    {
        string made = Job.Plan(PlanPath, Samples.TablePath, Asked(Row(0)), new JobOptions(RowsPath) { Batch = 16, Shards = 5 });
        long shards = JsonDocument.Parse(made).RootElement.GetProperty("shards").GetInt64();
        Assert.True(shards > 2);
        Parallel.For(0, 2, first =>
        {
            using var job = new Job(PlanPath);
            Assert.Equal(shards, job.Shards);
            for (long shard = first; shard < shards; shard += 2)
            {
                Assert.Contains("addend.shard", job.Run(shard), StringComparison.Ordinal);
            }
        });
        Assert.Equal(shards, JsonDocument.Parse(Job.Status(PlanPath)).RootElement.GetProperty("done").GetInt64());
        string path = JsonDocument.Parse(Job.Merge(PlanPath)).RootElement.GetProperty("path").GetString()!;
        double[] contributions = TensorFile.Load(path)["contributions"].ToArray<double>();
        using Model model = Samples.Table();
        foreach (int number in new[] { 0, 17, 100 })
        {
            Explanation alone = model.Attribute(Asked(Row(number))).Explain();
            double mass = alone.Contributions.Sum(one => Math.Abs(one.Value));
            foreach (Contribution one in alone.Contributions)
            {
                Assert.Equal(one.Value, contributions[(number * alone.Contributions.Count) + (int)one.Component], 1e-5 * mass);
            }
        }
    }

    [Fact]
    public void Refuses_what_no_job_can_do()
    {
        Assert.ThrowsAny<ArgumentException>(() => Job.Plan(
            PlanPath, Samples.TablePath, Asked(Row(0)), new JobOptions(RowsPath) { Names = ["one"], Groups = ["none"] }));
        Assert.Throws<FileNotFoundException>(() => new Job(PlanPath));
        ArgumentException refused = Assert.ThrowsAny<ArgumentException>(() => Job.Plan(
            PlanPath, Samples.TablePath, Asked(Row(0)), new JobOptions(RowsPath) { Device = "gpu" }));
        Assert.Contains("\"gpu\" names no device", refused.Message, StringComparison.Ordinal);
        var options = new JobOptions(RowsPath)
        {
            Format = "csv",
            Classes = ["a", "b"],
            DType = "float32",
            StopAtRefusal = true,
            Contributions = false,
            Concepts = """{"format": "addend.concepts", "version": 1}""",
        };
        Job.Plan(PlanPath, Samples.TablePath, Asked(Row(0)), options);
        using (var job = new Job(PlanPath))
        {
            Assert.ThrowsAny<ArgumentException>(() => job.Run(-1));
            string receipt = job.Run(0, again: true);
            Assert.Equal(receipt, job.Run(0));
        }
        File.WriteAllText(PlanPath, File.ReadAllText(PlanPath).Replace("\"batch\": 256", "\"batch\": 128", StringComparison.Ordinal));
        var changed = Assert.ThrowsAny<ArgumentException>(() => Job.Merge(PlanPath));
        Assert.Contains("was changed since it was written", changed.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Refuses_texts_that_would_become_others()
    {
        Request asked = Asked(Row(0));
        foreach (string text in new[] { RowsPath + "\0b", "half of a pair \ud83d" })
        {
            foreach (JobOptions options in new[]
            {
                new JobOptions(text),
                new JobOptions(RowsPath) { Groups = [text] },
                new JobOptions(RowsPath) { Names = [text] },
                new JobOptions(RowsPath) { Classes = ["a", text] },
                new JobOptions(RowsPath) { Concepts = text },
                new JobOptions(RowsPath) { Format = text },
                new JobOptions(RowsPath) { DType = text },
            })
            {
                ArgumentException refused = Assert.Throws<ArgumentException>(
                    () => Job.Plan(PlanPath, Samples.TablePath, asked, options));
                Assert.Matches("holds (a NUL character|half of a surrogate pair) at position", refused.Message);
            }
        }
        Assert.Throws<ArgumentNullException>(
            () => Job.Plan(PlanPath, Samples.TablePath, asked, new JobOptions(RowsPath) { Format = null! }));
        ArgumentException concepts = Assert.Throws<ArgumentException>(
            () => Job.Plan(PlanPath, Samples.TablePath, asked, new JobOptions(RowsPath) { Concepts = "{" }));
        Assert.Contains("Concepts is no JSON", concepts.Message, StringComparison.Ordinal);
        Assert.False(File.Exists(PlanPath));
    }

    private static float[] Row(int number)
    {
        using Tensor row = Samples.Rows(number, 1);
        return row.ToArray<float>();
    }

    private static Request Asked(float[] row) =>
        new(new Input(Tensor.From(row, 1, row.Length)) { Split = Split.Along(1), Baseline = 0.0 }) { Targets = ["0"] };
}
