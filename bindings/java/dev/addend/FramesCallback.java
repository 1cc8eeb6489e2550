package dev.addend;

import java.lang.StackWalker.StackFrame;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * The callback through which native code asks for the source lines of the caller; it must not throw through native
 * code.
 */
final class FramesCallback {
  private final Supplier<List<StackTraceElement>> lines;
  private Throwable thrown;

  /**
   * Asks for lines.
   *
   * @param lines gives them, the innermost first
   */
  FramesCallback(Supplier<List<StackTraceElement>> lines) {
    this.lines = lines;
  }

  /** Gives the lines of this thread from the method that calls us on to the one that runs then. */
  static FramesCallback ofThisThread() {
    final int depth = ofCallers().size();
    return new FramesCallback(() -> {
      final List<StackTraceElement> callers = ofCallers();
      // Frames outside of the method that began, such as a test runner's, are outside of the model.
      return callers.subList(0, Math.max(1, callers.size() - depth + 1));
    });
  }

  /** Called by native code; anything but 0 ends the recording. */
  int frames(long frames) {
    try {
      final List<StackTraceElement> given = lines.get();
      for (int k = given.size() - 1; k >= 0; k--) {
        final StackTraceElement line = given.get(k);
        // Native methods and those without debug information have no line.
        if (line.getLineNumber() > 0 && line.getFileName() != null) {
          AddendNative.addend_frames_add(
              frames, fileOf(line), line.getLineNumber(), line.getMethodName(), null, -1, 0);
        }
      }
      return 0;
    } catch (Throwable e) {
      thrown = e;
      return -1;
    }
  }

  /** Throws what ended the recording, which then ended with {@code error}, if it was thrown here. */
  void rethrow(AddendException error) {
    if (thrown == null || error.code() != AddendException.Code.UNKNOWN) {
      return;
    }
    thrown.addSuppressed(error);
    throw Thrown.<RuntimeException>unchecked(thrown);
  }

  /** The methods of this thread, the innermost first, without ours at its end. */
  private static List<StackTraceElement> ofCallers() {
    return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).walk(
        all -> all.dropWhile(FramesCallback::isOurs).map(StackFrame::toStackTraceElement).collect(Collectors.toList()));
  }

  /** Whether it is of this package, and was packaged with it: its tests are not. */
  private static boolean isOurs(StackFrame frame) {
    final Class<?> type = frame.getDeclaringClass();
    return type.getPackage() == FramesCallback.class.getPackage() && OURS.get(type);
  }

  private static final ClassValue<Boolean> OURS = new ClassValue<>() {
    @Override
    protected Boolean computeValue(Class<?> type) {
      return type.getProtectionDomain().getCodeSource() == null
          || type.getProtectionDomain().getCodeSource().equals(
              FramesCallback.class.getProtectionDomain().getCodeSource());
    }
  };

  /** The path of the source below its root: dev/example/Network.java. */
  private static String fileOf(StackTraceElement line) {
    final String type = line.getClassName();
    final int end = type.lastIndexOf('.');
    return end < 0 ? line.getFileName() : type.substring(0, end).replace('.', '/') + "/" + line.getFileName();
  }
}
