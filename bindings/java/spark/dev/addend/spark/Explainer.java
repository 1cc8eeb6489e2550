package dev.addend.spark;

import dev.addend.Addend;
import dev.addend.AddendException;
import dev.addend.Attribution;
import dev.addend.Concepts;
import dev.addend.Context;
import dev.addend.Contribution;
import dev.addend.DType;
import dev.addend.Decision;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Plan;
import dev.addend.Policy;
import dev.addend.Report;
import dev.addend.Request;
import dev.addend.Results;
import dev.addend.Target;
import dev.addend.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The model of a config in the process that computes, with its plan: attributes chunks of rows. Any number of threads may use
 * one.
 *
 * <p>Rows are refused as those of a job are: where a chunk fails, its rows are attributed one by one, and those that fail alone
 * are refused. Failures of the machine, such as no memory, are thrown.
 */
final class Explainer {
  private final ExplainConfig config;
  private final Model model;
  private final Context context;
  private final Concepts concepts; // null: reasons are not told
  private final Tensor baseline; // null: a number or a word

  private boolean tried; // whether a plan was tried; guarded by this
  private Plan plan; // null: the model cannot be planned, or was not tried yet
  private volatile boolean worked; // whether any row had an attribution

  private Explainer(ExplainConfig config, Model model, Context context, Concepts concepts, Tensor baseline) {
    this.config = config;
    this.model = model;
    this.context = context;
    this.concepts = concepts;
    this.baseline = baseline;
  }

  /**
   * Loads the model.
   *
   * @throws IllegalStateException if the file is another one than that of the driver
   */
  static Explainer load(ExplainConfig config, String sha256) {
    final Path file = ModelFile.find(config.model());
    final String own = Model.sha256(file);
    if (!own.equals(sha256)) {
      throw new IllegalStateException(file + " is not the model of the driver: its SHA-256 is " + own + ", there it is "
          + sha256 + "; all machines need the same file");
    }
    return OwnThread.run(() -> {
      Addend.setNumThreads(config.threads());
      Policy policy = Policy.defaults();
      for (Map.Entry<String, String> choice : config.policy().entrySet()) {
        policy = policy.with(choice.getKey(), choice.getValue());
      }
      return new Explainer(
          config,
          Model.load(file, config.converts() ? dtype(config) : null),
          Context.of(policy),
          config.concepts() == null ? null : Concepts.read(config.concepts()),
          config.baselineRow() == null ? null : tensor(config, numbers(config.baselineRow()), 1));
    });
  }

  /**
   * Attributes some rows.
   *
   * @param numbers those of row after row, which {@link RowReader} has read
   * @param rows how many
   * @return their results, in their order
   */
  List<Explained> explain(double[] numbers, int rows) {
    Addend.setNumThreads(config.threads());
    try {
      final List<Explained> all = attribute(numbers, rows);
      worked = true;
      return all;
    } catch (AddendException e) {
      if (isOfMachine(e)) {
        throw e;
      }
      if (rows == 1) {
        requireRequest(List.of(e));
        return List.of(Explained.refused(e.getMessage()));
      }
    }
    final List<Explained> all = new ArrayList<>();
    final List<AddendException> errors = new ArrayList<>();
    for (int row = 0; row < rows; row++) {
      try {
        all.addAll(attribute(Arrays.copyOfRange(numbers, row * config.length(), (row + 1) * config.length()), 1));
      } catch (AddendException e) {
        if (isOfMachine(e)) {
          throw e;
        }
        errors.add(e);
        all.add(Explained.refused(e.getMessage()));
      }
    }
    if (errors.size() < rows) {
      worked = true;
    } else {
      requireRequest(errors);
    }
    return all;
  }

  /** Frees the model and what was made of it; nobody uses it any more. */
  void close() {
    if (plan != null) {
      plan.close();
    }
    if (concepts != null) {
      concepts.close();
    }
    if (baseline != null) {
      baseline.close();
    }
    context.close();
    model.close();
  }

  private List<Explained> attribute(double[] numbers, int rows) {
    try (Tensor tensor = tensor(config, numbers, rows);
        Attribution attribution = attribute(request(tensor), rows)) {
      return read(attribution, rows);
    }
  }

  /** Asks the plan, or the model where these rows lead it another way than those that the plan was made with. */
  private Attribution attribute(Request request, int rows) {
    final Plan ready = rows == config.chunk() ? plan(request) : null;
    if (ready != null) {
      try {
        return ready.attribute(request);
      } catch (AddendException e) {
        if (e.code() != AddendException.Code.FAILED_PRECONDITION) {
          throw e;
        }
      }
    }
    return model.attribute(request, context);
  }

  /**
   * The plan, which the first full chunk makes; {@code null} where the model cannot be planned. A plan keeps something for each
   * number of rows that it meets: it is given full chunks only.
   */
  private synchronized Plan plan(Request request) {
    if (!tried) {
      try {
        plan = OwnThread.run(() -> {
          Addend.setNumThreads(config.threads());
          return model.plan(request, context);
        });
      } catch (AddendException e) {
        if (e.code() != AddendException.Code.FAILED_PRECONDITION) {
          throw e;
        }
      }
      tried = true;
    }
    return plan;
  }

  private Request request(Tensor rows) {
    Input input = Input.of(rows).splitAlong(1).names(config.names());
    if (baseline != null) {
      input = input.baseline(baseline);
    } else if (config.baselineWord() != null) {
      input = input.baseline(config.baselineWord());
    } else {
      input = input.baseline(config.baselineNumber());
    }
    final Request request = Request.of(input).target(Target.parse(config.target())).eachExample(true);
    return config.at() == null ? request : request.at(config.at());
  }

  private List<Explained> read(Attribution attribution, int rows) {
    if (attribution.size() != rows) {
      throw new IllegalStateException("the model gives " + attribution.size() + " numbers for " + rows
          + " rows; the first dimension of its output has to count rows");
    }
    final List<String> notes = new ArrayList<>();
    final List<String> warnings = new ArrayList<>();
    try (Results results = attribution.results()) {
      notes.addAll(results.notes());
      warnings.addAll(results.warnings());
      final String about = noteOnReference(results.report());
      if (about != null) {
        notes.add(about);
        warnings.add(about);
      }
    }
    final List<Decision> decisions = concepts == null ? null : attribution.reasons(concepts).decisions();
    final List<Explained> all = new ArrayList<>();
    for (int row = 0; row < rows; row++) {
      all.add(read(attribution.explain(row), decisions == null ? null : decisions.get(row), notes, warnings));
    }
    return all;
  }

  private Explained read(
      Explanation explanation, Decision decision, List<String> notesOfChunk, List<String> warningsOfChunk) {
    final double[] contributions = explanation.contributions().stream().mapToDouble(Contribution::value).toArray();
    if (contributions.length != config.length()) {
      throw new IllegalStateException("there are " + contributions.length + " contributions for " + config.length()
          + " columns");
    }
    final List<String> notes = new ArrayList<>(notesOfChunk);
    final List<String> warnings = new ArrayList<>(warningsOfChunk);
    if (!Double.isFinite(explanation.value()) || !Double.isFinite(explanation.reference())
        || !Double.isFinite(explanation.leftover()) || !Arrays.stream(contributions).allMatch(Double::isFinite)) {
      notes.add("numbers of this row are not finite");
      warnings.add("numbers of this row are not finite");
    }
    if (decision != null) {
      notes.addAll(decision.notes());
    }
    return new Explained(explanation.target(), explanation.value(), explanation.reference(), explanation.leftover(),
        contributions, decision == null ? null : decision.outcome(), decision == null ? List.of() : decision.reasons(), notes,
        warnings);
  }

  /** A note where the reference is not known to be what the model gives for the baseline; else {@code null}. */
  private static String noteOnReference(Report report) {
    final String is = report.referenceIsModelOnBaseline();
    if (is.equals("yes")) {
      return null;
    }
    return "the reference " + (is.equals("no") ? "is not" : "may not be") + " what the model gives for the baseline"
        + (report.referenceReason().isEmpty() ? "" : ": " + report.referenceReason());
  }

  /**
   * Throws the error of some rows, which all failed, where no row has worked yet and the baseline in place of a row fails in the
   * same way: then it is the request's, as of a target that the output lacks, and not theirs.
   */
  private void requireRequest(List<AddendException> errors) {
    final String why = errors.get(0).getMessage();
    if (worked || !errors.stream().allMatch(error -> Objects.equals(error.getMessage(), why))) {
      return;
    }
    final double[] row = new double[config.length()];
    if (config.baselineRow() != null) {
      Arrays.setAll(row, column -> config.baselineRow().get(column));
    } else if (config.baselineWord() == null) {
      Arrays.fill(row, config.baselineNumber());
    }
    try {
      attribute(row, 1);
    } catch (AddendException e) {
      if (Objects.equals(e.getMessage(), why)) {
        throw errors.get(0);
      }
    }
  }

  private static DType dtype(ExplainConfig config) {
    return config.isDouble() ? DType.FLOAT64 : DType.FLOAT32;
  }

  private static double[] numbers(List<Double> list) {
    return list.stream().mapToDouble(Double::doubleValue).toArray();
  }

  private static Tensor tensor(ExplainConfig config, double[] numbers, int rows) {
    if (config.isDouble()) {
      return Tensor.of(Arrays.copyOf(numbers, rows * config.length()), rows, config.length());
    }
    final float[] narrow = new float[rows * config.length()];
    for (int k = 0; k < narrow.length; k++) {
      narrow[k] = (float) numbers[k];
    }
    return Tensor.of(narrow, rows, config.length());
  }

  private static boolean isOfMachine(AddendException e) {
    final String message = String.valueOf(e.getMessage());
    return e.code() == AddendException.Code.RESOURCE_EXHAUSTED || e.code() == AddendException.Code.CANCELLED
        || message.contains("allocate memory") || message.contains("out of memory");
  }
}
