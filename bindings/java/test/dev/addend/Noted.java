package dev.addend;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A case of tests/notes: a note, and the question of a model that has it. */
final class Noted {
  private static final Path FOLDER = Path.of("tests/notes/files");

  final String name;
  final Path file;
  final boolean warning;
  final List<String> doors = new ArrayList<>(); // those that tell the note
  private final Map<?, ?> record; // tests/notes/models.py says what its keys mean
  private final Map<?, ?> options;
  private final List<String> pieces;

  private Noted(Map<?, ?> record) {
    this.record = record;
    name = JsonReader.text(record.get("name"));
    file = FOLDER.resolve(JsonReader.text(record.get("model")));
    warning = (Boolean) record.get("warning");
    options = (Map<?, ?>) record.get("options");
    pieces = JsonReader.texts(record.get("note"));
    final String own = JsonReader.text(record.get("door"));
    doors.add(own);
    if (own.equals("attribution")) {
      for (String other : List.of("plan", "job")) {
        if (JsonReader.text(record.get("no_" + other)).isEmpty()) {
          doors.add(other);
        }
      }
    }
  }

  static List<Noted> all() {
    return Reading.cases(FOLDER, Noted::new);
  }

  @Override
  public String toString() {
    return name;
  }

  /** The question of an attribution or of a plan, or of interactions. */
  Request attributed() {
    return withTargets(explained().eachExample((Boolean) options.get("each_example")), "targets")
        .verifyReference((Boolean) options.get("verify_reference")).memory(JsonReader.count(options.get("memory")));
  }

  Request decomposed() {
    return asked().verifyReference((Boolean) options.get("verify_reference"));
  }

  /** The question of a job over the rows of the only input. */
  Request ofRows() {
    return withTargets(explained(), "row_targets");
  }

  /** The target in the first output. */
  Target firstTarget() {
    return Target.parse(JsonReader.texts(record.get("targets")).get(0));
  }

  /** The file of the only input. */
  Path rows() {
    return FOLDER.resolve(JsonReader.text(((Map<?, ?>) ((List<?>) record.get("inputs")).get(0)).get("value")));
  }

  Context context() {
    Policy policy = Policy.defaults();
    for (Map.Entry<?, ?> choice : ((Map<?, ?>) record.get("policy")).entrySet()) {
      policy = policy.with(JsonReader.text(choice.getKey()), JsonReader.text(choice.getValue()));
    }
    return Context.of(policy);
  }

  boolean isIn(List<String> notes) {
    return notes.stream().anyMatch(this::isSaid);
  }

  /** Whether a sentence is this note. */
  boolean isSaid(String note) {
    if (!note.startsWith(pieces.get(0))) {
      return false;
    }
    int end = 0;
    for (String piece : pieces) {
      final int begin = note.indexOf(piece, end);
      if (begin < 0) {
        return false;
      }
      end = begin + piece.length();
    }
    return true;
  }

  /** The question, of a tensor inside the model where the case names one. */
  private Request explained() {
    return options.get("at") == null ? asked() : asked().at(JsonReader.text(options.get("at")));
  }

  private Request asked() {
    final Map<String, Tensor> tensors = new HashMap<>(); // by file: what names one file shares its memory
    final List<Input> inputs = new ArrayList<>();
    for (Object one : (List<?>) record.get("inputs")) {
      final Map<?, ?> given = (Map<?, ?>) one;
      final long[] dims = ((List<?>) given.get("dims")).stream().mapToLong(JsonReader::count).toArray();
      Input input = Input.of(tensor(given.get("value"), tensors)).splitAlong(dims);
      final Object baseline = given.get("baseline");
      if (baseline instanceof Double) {
        input = input.baseline((Double) baseline);
      } else if (baseline != null) {
        input = input.baseline(tensor(baseline, tensors));
      }
      final Object baselines = given.get("baselines");
      inputs.add(baselines == null ? input : input.baselines(tensor(baselines, tensors)));
    }
    return Request.of(inputs.toArray(new Input[0]));
  }

  private static Tensor tensor(Object name, Map<String, Tensor> read) {
    return read.computeIfAbsent(JsonReader.text(name), own -> TensorFile.read(FOLDER.resolve(own)).tensor());
  }

  private Request withTargets(Request request, String key) {
    Request changed = request;
    for (String target : JsonReader.texts(record.get(key))) {
      changed = changed.target(Target.parse(target));
    }
    return changed;
  }
}
