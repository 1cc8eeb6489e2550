// Files named on the command line, other than tensors; standard output.
#ifndef ADDEND_TOOLS_ADDEND_FILES_H_
#define ADDEND_TOOLS_ADDEND_FILES_H_

#include <string>
#include <vector>

namespace addend::cli {

// A file that can be read, or at least looked at; a folder does not count.
bool FileExists(const std::string& path);
bool FolderExists(const std::string& path);

// A file that a command writes, and the option that names it; without a path: none.
struct Output {
  std::string option;
  std::string path;
  bool beside = false;  // made only where need be, or a folder: it only has to be another one
};
// Throws InvalidArgument unless all of them can probably be written, each to a file of its own: called before a long
// computation, so that its result is not lost. Refuses an output that is one of the `sources`, which are being read,
// whatever links lead to it; two outputs that are one file; and standard output or error that goes to a source or an
// output.
void CheckOutputs(const std::vector<Output>& outputs, const std::vector<std::string>& sources);
// Whether a path is that of a device or a descriptor, which is written to directly, wherever it leads.
bool IsDevicePath(const std::string& path);
// Whether two paths lead to one file or folder, or would if it were made.
bool IsSamePlace(const std::string& first, const std::string& second);

// "a,b,c", or a file with one entry per line or with a JSON list of texts. `option` is named in errors.
std::vector<std::string> ReadList(const std::string& option, const std::string& text);
// The entries of a JSON list of texts; empty where `json` is something else.
std::vector<std::string> ParseJsonList(const std::string& json);

// Prints a text. Control characters and marks that nobody sees, such as those of direction, become "\u202e", as
// JSON writes them too. Throws where not all of it could be written, as on a full disk.
void WriteStdout(const std::string& text);
// Prints lines whose bytes count, as they are.
void WriteStdoutAsIs(const std::string& text);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_FILES_H_
