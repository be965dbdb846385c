//! Compiles the `.proto` files with `protox`, so that no `protoc` is needed.

use std::{env, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "quorate/v1/types.proto",
        "quorate/v1/ipam.proto",
        "quorate/v1/admin.proto",
        "quorate/raft/v1/raft.proto",
        "quorate/storage/v1/storage.proto",
    ];
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // The public services only: reflection describes what callers may use.
    let public = protox::compile(&files[..3], ["proto"])?;
    fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&public))?;
    let grpc = env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .bytes(".quorate.raft.v1")
        .compile_fds(descriptors)?;
    println!("cargo:rerun-if-changed=proto");
    Ok(())
}
