# Sourced by the Makefile's recipes and the other scripts: where the compilers and RocksDB are.
#
# On x86_64 with Debian 12 this gives what `.cargo/config.toml` says, so that a bare `cargo build`
# and `make` share one build; elsewhere it overrides that file. Anything already set is kept.

# rustup puts its binaries there, and a shell opened before the installation does not know.
case ":$PATH:" in
  *":$HOME/.cargo/bin:"*) ;;
  *) [ ! -d "$HOME/.cargo/bin" ] || PATH="$HOME/.cargo/bin:$PATH" ;;
esac
# Debian keeps `ip` and `bridge` there, which is not on everybody's path.
case ":$PATH:" in
  *:/usr/sbin:*) ;;
  *) PATH="$PATH:/usr/sbin:/sbin" ;;
esac
export PATH

if command -v gcc >/dev/null 2>&1; then
  # bindgen's libclang comes without headers of its own (`stddef.h`); gcc's do.
  BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:--I$(gcc -print-file-name=include)}"
  export BINDGEN_EXTRA_CLANG_ARGS
  quorate_triplet="$(gcc -print-multiarch)"
  quorate_rocksdb="${ROCKSDB_LIB_DIR:-/usr/lib/$quorate_triplet}"
  case "$(readlink -f "$quorate_rocksdb/librocksdb.so")" in
    */librocksdb.so.7.*)
      ROCKSDB_LIB_DIR="$quorate_rocksdb"
      ROCKSDB_INCLUDE_DIR="${ROCKSDB_INCLUDE_DIR:-/usr/include}"
      export ROCKSDB_LIB_DIR ROCKSDB_INCLUDE_DIR ;;
    *)
      # The crate that we use links RocksDB 7 only. Other systems compile the one it carries,
      # which takes long, once. The path is relative to the crate's own folder.
      ROCKSDB_COMPILE=1
      ROCKSDB_INCLUDE_DIR=rocksdb/include
      export ROCKSDB_COMPILE ROCKSDB_INCLUDE_DIR ;;
  esac
  unset quorate_triplet quorate_rocksdb
fi
