"""The Abseil packages that this workspace uses: name -> libraries to link.

A name is also the pkg-config module absl_<name>. The lists are those of the LTS
release 20220623 and serve only machines without pkg-config; they name a
superset, of which the linker keeps what is used.
"""

_STRINGS = [
    "strings",
    "strings_internal",
    "str_format_internal",
    "int128",
    "throw_delegate",
    "base",
    "raw_logging_internal",
    "log_severity",
    "spinlock_wait",
]

_SYNCHRONIZATION = [
    "synchronization",
    "graphcycles_internal",
    "stacktrace",
    "symbolize",
    "debugging_internal",
    "demangle_internal",
    "malloc_internal",
    "time",
    "civil_time",
    "time_zone",
] + _STRINGS

_HASH = [
    "hash",
    "city",
    "low_level_hash",
    "bad_variant_access",
    "bad_optional_access",
] + _STRINGS

_SWISS_TABLE = [
    "raw_hash_set",
    "hashtablez_sampler",
    "exponential_biased",
] + _HASH + _SYNCHRONIZATION

_STATUS = [
    "status",
    "strerror",
    "cord",
    "cordz_info",
    "cord_internal",
    "cordz_functions",
    "cordz_handle",
] + _SWISS_TABLE

ABSL_PACKAGES = {
    "algorithm_container": [],
    "base": ["base", "raw_logging_internal", "log_severity", "spinlock_wait"],
    "btree": _STRINGS,
    "cleanup": [],
    "core_headers": [],
    "fixed_array": _STRINGS,
    "flat_hash_map": _SWISS_TABLE,
    "flat_hash_set": _SWISS_TABLE,
    "function_ref": [],
    "hash": _HASH,
    "inlined_vector": _STRINGS,
    "int128": ["int128"],
    "memory": [],
    "node_hash_map": _SWISS_TABLE,
    "span": _STRINGS,
    "status": _STATUS,
    "statusor": ["statusor"] + _STATUS,
    "str_format": _STRINGS,
    "strings": _STRINGS,
    "synchronization": _SYNCHRONIZATION,
    "time": ["time", "civil_time", "time_zone"] + _STRINGS,
}

# name -> where Abseil's own BUILD files have it: folder and target of its repository.
ABSL_TARGETS = {
    "algorithm_container": "absl/algorithm:container",
    "base": "absl/base:base",
    "btree": "absl/container:btree",
    "cleanup": "absl/cleanup:cleanup",
    "core_headers": "absl/base:core_headers",
    "fixed_array": "absl/container:fixed_array",
    "flat_hash_map": "absl/container:flat_hash_map",
    "flat_hash_set": "absl/container:flat_hash_set",
    "function_ref": "absl/functional:function_ref",
    "hash": "absl/hash:hash",
    "inlined_vector": "absl/container:inlined_vector",
    "int128": "absl/numeric:int128",
    "memory": "absl/memory:memory",
    "node_hash_map": "absl/container:node_hash_map",
    "span": "absl/types:span",
    "status": "absl/status:status",
    "statusor": "absl/status:statusor",
    "str_format": "absl/strings:str_format",
    "strings": "absl/strings:strings",
    "synchronization": "absl/synchronization:synchronization",
    "time": "absl/time:time",
}
