#include "core/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "core/base/error_testing.h"

namespace addend {
namespace {

using testing::HasSubstr;

// Exit status of `action` in a process without the descriptors of `closed`, a bit for each.
template <typename Action>
int Without(int closed, const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 3; ++fd) {
      if ((closed >> fd & 1) != 0) ::close(fd);
    }
    ::_exit(action());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, AreOpenedWhereTheyAreClosed) {
  for (int closed = 0; closed < 8; ++closed) {
    EXPECT_EQ(Without(closed,
                      [&] {
                        OpenStandardStreams();
                        for (int fd = 0; fd < 3; ++fd) {
                          if (::fcntl(fd, F_GETFD) < 0) return 10 + fd;
                          struct stat own = {};
                          struct stat null = {};
                          ::fstat(fd, &own);
                          ::stat("/dev/null", &null);
                          if ((closed >> fd & 1) != 0 && own.st_rdev != null.st_rdev) return 20 + fd;
                        }
                        // No other descriptor is left open.
                        const int next = ::open("/dev/null", O_RDONLY);
                        const int behind = ::open("/dev/null", O_RDONLY);
                        return next > 2 && behind > next ? 0 : 30;
                      }),
              0)
        << closed;
  }
}

TEST(OpenFile, NeverTakesTheirPlace) {
  const std::string path = testing::TempDir() + "/opened";
  for (int closed = 0; closed < 8; ++closed) {
    EXPECT_EQ(Without(closed,
                      [&] {
                        const int fd = OpenFile(path, O_RDWR | O_CREAT);
                        if (fd < 3) return 1;
                        if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return 2;
                        for (int standard = 0; standard < 3; ++standard) {
                          const bool is_open = ::fcntl(standard, F_GETFD) >= 0;
                          const bool was_open = (closed >> standard & 1) == 0;
                          if (is_open != was_open) return 3;
                        }
                        return 0;
                      }),
              0)
        << closed;
  }
  EXPECT_EQ(OpenFile("/no/such/file", O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  // A path is not cut off at a zero.
  EXPECT_EQ(OpenFile(path + std::string("\0x", 2), O_RDONLY), -1);
}

TEST(OpenToRead, TakesRegularFilesOnly) {
  const std::string folder = testing::TempDir() + "/";
  const std::string fifo = folder + "fifo";
  ::unlink(fifo.c_str());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& target : {fifo, std::string("/dev/zero"), std::string("/dev/null"), folder}) {
    const std::string link = folder + "link";
    ::unlink(link.c_str());
    ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
    for (const std::string& path : {target, link}) {
      EXPECT_THAT(MessageOf([&] { OpenToRead(path); }), HasSubstr("cannot read " + path + ": it is ")) << path;
    }
  }
  std::ofstream(folder + "file") << "content";
  const std::string link = folder + "link";
  ::unlink(link.c_str());
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  uint64_t size = 0;
  const Descriptor file(OpenToRead(link, &size));
  EXPECT_EQ(size, 7u);
  EXPECT_EQ(ReadAt(file.get(), link, 0, size), "content");
  EXPECT_THAT(MessageOf([&] { ReadAt(file.get(), link, 0, 8); }), HasSubstr("became shorter"));
  EXPECT_THAT(MessageOf([&] { ReadAt(file.get(), link, 0, ~uint64_t{0}); }), HasSubstr("cannot read"));
}

}  // namespace
}  // namespace addend
