using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>
/// A worker of a job, the attribution of every row of a data set: the model of a plan, ready to compute shards of it.
/// <code>
/// Job.Plan("plan.json", "model.pt", request, new JobOptions("rows.npy"));
/// using var job = new Job("plan.json");
/// for (long shard = 0; shard &lt; job.Shards; shard++) job.Run(shard);
/// Job.Merge("plan.json");
/// </code>
/// Whoever computes a shard needs the versions, BLAS, instructions and threads
/// (<see cref="AddendLibrary.SetThreads"/>) of the process that made the plan. Shards may be run twice and killed at any
/// time. Threads that share one wait for each other: give each thread its own.
/// </summary>
public sealed class Job : AddendObject
{
    /// <summary>Opens the plan of a job and loads its model.</summary>
    /// <param name="plan">The file.</param>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="InvalidOperationException">The model is another one, or this process would compute other
    /// bits.</exception>
    public Job(string plan)
        : base(Open(plan))
    {
    }

    /// <summary>How many shards there are.</summary>
    public long Shards => (long)AddendNative.addend_job_num_shards(Handle);

    private JobHandle Handle => (JobHandle)OwnedHandle;

    /// <summary>Makes the plan of a job, and tries it on the first rows.</summary>
    /// <param name="plan">Where it is written; results come beside it, in rows.out for rows.json.</param>
    /// <param name="model">The file of the model.</param>
    /// <param name="request">One row of each input, [1, *row], with its split and its baseline, and targets.</param>
    /// <param name="options">Where the rows are, and what results hold.</param>
    /// <param name="context">The policy; null for the defaults.</param>
    /// <returns>What was made, as JSON.</returns>
    /// <exception cref="InvalidOperationException">Rows influence each other.</exception>
    public static string Plan(string plan, string model, Request request, JobOptions options, Context? context = null)
    {
        ArgumentNullException.ThrowIfNull(options);
        return Model.Ask(request, asked =>
        {
            AddendNative.addend_job_plan(
                Context.HandleOf(context), Text.Checked(plan, nameof(plan)),
                Files.Existing(model), asked, options.ToJson(), out StringHandle json);
            return Text.Taken(json);
        }, CancellationToken.None);
    }

    /// <summary>How far a job is.</summary>
    /// <param name="plan">The file.</param>
    /// <returns>JSON: shards, done, missing, wrong, seconds_left and more.</returns>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    public static string Status(string plan) => Text.Of(Files.Existing(plan), AddendNative.addend_job_status);

    /// <summary>Checks every shard by its digest and puts all rows into one file.</summary>
    /// <param name="plan">The file.</param>
    /// <returns>JSON: path, sha256, rows, refused.</returns>
    /// <exception cref="InvalidOperationException">Shards are missing or damaged, or have two results.</exception>
    public static string Merge(string plan) => Text.Of(Files.Existing(plan), AddendNative.addend_job_merge);

    /// <summary>Computes a shard and commits it as a whole.</summary>
    /// <param name="shard">From 0.</param>
    /// <param name="again">Computes one that is there already once more, instead of leaving it as it is.</param>
    /// <returns>Its receipt, as JSON.</returns>
    /// <exception cref="ArgumentException">There is no such shard, or its result cannot be written.</exception>
    /// <exception cref="InvalidOperationException">
    /// The rows are others than when the plan was made, or the results beside it are those of another plan.
    /// </exception>
    public string Run(long shard, bool again = false)
    {
        string options = new JsonObject { ["again"] = again }.ToJsonString();
        AddendNative.addend_job_run(Handle, shard, options, out StringHandle receipt);
        return Text.Taken(receipt);
    }

    private static JobHandle Open(string plan)
    {
        AddendNative.addend_job_open(Files.Existing(plan), out JobHandle job);
        return job;
    }
}
