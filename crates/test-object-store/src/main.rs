//! An object store without a bucket: `test-object-store ADDRESS FOLDER ACCESS_KEY_ID SECRET_ACCESS_KEY`.

use std::path::Path;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder, access_key_id, secret_access_key] = arguments.as_slice() else {
        bail!("test-object-store ADDRESS FOLDER ACCESS_KEY_ID SECRET_ACCESS_KEY")
    };
    test_object_store::serve_folder(address, Path::new(folder), access_key_id, secret_access_key)
}
