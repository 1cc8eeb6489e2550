// Files named on the command line, other than tensors; standard output.
#ifndef ADDEND_TOOLS_ADDEND_FILES_H_
#define ADDEND_TOOLS_ADDEND_FILES_H_

#include <string>
#include <vector>

namespace addend::cli {

// A file that can be read, or at least looked at; a folder does not count.
bool FileExists(const std::string& path);
bool FolderExists(const std::string& path);

// Throws unless a file can probably be written there: called before a long computation, so that its result is not lost.
// `sources`: files that are being read; writing over one of them is refused.
void CheckWritable(const std::string& path, const std::vector<std::string>& sources);

// "a,b,c", or a file with one entry per line or with a JSON list of texts. `option` is named in errors.
std::vector<std::string> ReadList(const std::string& option, const std::string& text);
// The entries of a JSON list of texts; empty where `json` is something else.
std::vector<std::string> ParseJsonList(const std::string& json);

// Throws where not all of it could be written, as on a full disk.
void WriteStdout(const std::string& text);

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_FILES_H_
