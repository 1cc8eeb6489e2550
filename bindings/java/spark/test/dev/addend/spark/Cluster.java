package dev.addend.spark;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A cluster of Spark on this machine: a master and workers in this process, and two executors, each a process of its own. */
final class Cluster {
  /** The name of a model that Spark sends to executors, of {@link Rows#weights}, which are sent with it. */
  static final String SENT = "sent.onnx";

  private static SparkSession session;

  private Cluster() {}

  /** The session of all tests of this process. */
  static synchronized SparkSession session() {
    if (session == null) {
      try {
        session = start();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    return session;
  }

  private static SparkSession start() throws IOException {
    // Spark looks for its archives there, and finds none: executors have the class path of this process.
    final Path home = Path.of(System.getenv("SPARK_HOME")).toAbsolutePath();
    Files.createDirectories(home.resolve("jars"));
    final Path sent = home.resolve(SENT);
    final Path weights = OnnxFile.write(sent, Rows.weights());
    final String libraries = Path.of(System.getProperty("addend.library.path")).toAbsolutePath().toString();
    return SparkSession.builder()
        .appName("addend")
        .master("local-cluster[2,1,2048]")
        .config("spark.executor.extraClassPath",
            classPath().stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator)))
        .config("spark.executor.extraJavaOptions", "-Daddend.library.path=" + libraries
            + " -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData")
        .config("spark.local.dir", home.resolve("local").toString())
        .config("spark.sql.warehouse.dir", home.resolve("warehouse").toString())
        .config("spark.files", String.join(",", Rows.MODEL, sent.toString(), weights.toString()))
        .config("spark.ui.enabled", false)
        .config("spark.log.level", "ERROR")
        // Executors are killed here, and start again.
        .config("spark.deploy.maxExecutorRetries", -1)
        // A worker that is silent for a minute, on a machine that is busy with other things, is not lost.
        .config("spark.worker.timeout", 600)
        .getOrCreate();
  }

  /**
   * Waits until both executors compute: each may be starting still, or again after a test that has killed it.
   *
   * @return their processes
   */
  static Set<Long> awaitBoth() {
    final long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(5);
    while (true) {
      final Set<Long> processes = new HashSet<>(JavaSparkContext.fromSparkContext(session().sparkContext())
          .parallelize(List.of(0, 1, 2, 3), 4)
          .map(number -> {
            // An executor has one core: while it waits, the other one takes the next task.
            Thread.sleep(200);
            return ProcessHandle.current().pid();
          }).collect());
      if (processes.size() == 2 && processes.stream().allMatch(Cluster::isExecutor)) {
        return processes;
      }
      if (System.nanoTime() > end) {
        throw new IllegalStateException("of two executors there are " + processes + " after five minutes");
      }
    }
  }

  /** Stops the cluster when all tests of this process have run: later JUnit has closed the classes that Spark stops with. */
  static final class Stopped implements BeforeAllCallback {
    @Override
    public void beforeAll(ExtensionContext context) {
      context.getRoot().getStore(ExtensionContext.Namespace.GLOBAL).getOrComputeIfAbsent(
          Cluster.class, key -> (ExtensionContext.Store.CloseableResource) Cluster::stop);
    }
  }

  private static synchronized void stop() {
    if (session != null) {
      session.stop();
    }
  }

  /** The archives that this process has its classes of. */
  private static List<Path> classPath() {
    final List<Path> archives = new ArrayList<>();
    final ClassLoader loader = Cluster.class.getClassLoader();
    if (loader instanceof URLClassLoader) {
      for (URL url : ((URLClassLoader) loader).getURLs()) {
        try {
          archives.add(Path.of(url.toURI()).toAbsolutePath());
        } catch (URISyntaxException e) {
          throw new IllegalStateException(e);
        }
      }
    } else {
      for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
        archives.add(Path.of(entry).toAbsolutePath());
      }
    }
    return archives;
  }

  /** The executors that run now. */
  static List<ProcessHandle> executors() {
    return ProcessHandle.current().children().filter(child -> isExecutor(child.pid())).collect(Collectors.toList());
  }

  /** Whether a process is one. Java itself does not tell command lines as long as these. */
  private static boolean isExecutor(long process) {
    try {
      return Files.readString(Path.of("/proc/" + process + "/cmdline")).contains("CoarseGrainedExecutorBackend");
    } catch (IOException e) {
      // The process has ended.
      return false;
    }
  }
}
