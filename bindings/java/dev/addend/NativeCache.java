package dev.addend;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Folders into which the jar's native libraries may be copied: only the folder that {@code -Daddend.cache.path} names,
 * if it is set; else {@code addend} under {@code XDG_CACHE_HOME} or {@code ~/.cache}; else a folder of this user under
 * {@code java.io.tmpdir}, for users who have no home or may not write to it.
 */
final class NativeCache {
  private static final int FILE_TYPE = 0170000;
  private static final int DIRECTORY = 0040000;
  private static final int WRITTEN_BY_OTHERS = 0022;

  /** A folder that may not exist yet. */
  interface Place {
    /** Makes the folder. */
    Path open() throws IOException;
  }

  private NativeCache() {}

  /** The places, the best first. */
  static List<Place> places() {
    final String chosen = System.getProperty("addend.cache.path");
    if (chosen != null) {
      return List.of(folder(Path.of(chosen).toAbsolutePath()));
    }
    final List<Place> places = new ArrayList<>();
    final String caches = System.getenv("XDG_CACHE_HOME");
    if (isAbsolute(caches)) {
      places.add(folder(Path.of(caches, "addend")));
    }
    // "?" where the system knows no home, as in containers that run under any number.
    final String home = System.getProperty("user.home");
    if (isAbsolute(home)) {
      places.add(folder(Path.of(home, ".cache", "addend")));
    }
    places.add(NativeCache::temporary);
    return places;
  }

  private static boolean isAbsolute(String folder) {
    return folder != null && !folder.isEmpty() && Path.of(folder).isAbsolute();
  }

  private static Place folder(Path path) {
    // A link to a folder is one, which older releases of Java would not take.
    return () -> Files.isDirectory(path) ? path : Files.createDirectories(path);
  }

  /** A folder under the one that all users share. Its name is known to all, so that it has to be ours alone. */
  private static Path temporary() throws IOException {
    final Path parent = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath();
    // Java does not tell who we are; a new folder does.
    final Path probe = Files.createTempDirectory(parent, "addend");
    final Object user = Files.getAttribute(probe, "unix:uid");
    Files.delete(probe);
    final Path folder = parent.resolve("addend-" + user);
    try {
      Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (FileAlreadyExistsException e) {
      requireOurs(folder, user);
    }
    return folder;
  }

  private static void requireOurs(Path folder, Object user) throws IOException {
    final Map<String, Object> found = Files.readAttributes(folder, "unix:uid,mode", LinkOption.NOFOLLOW_LINKS);
    final int mode = (Integer) found.get("mode");
    if ((mode & FILE_TYPE) != DIRECTORY || !found.get("uid").equals(user) || (mode & WRITTEN_BY_OTHERS) != 0) {
      throw new IOException(folder + " is not a folder that only this user can write to; remove it, or name another folder "
          + "by -Daddend.cache.path");
    }
  }
}
