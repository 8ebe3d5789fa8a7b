use std::{env, fs, path::Path};

pub fn value() -> i32 {
    if reaches() { 42 } else { 41 }
}

fn reaches() -> bool {
    let program = env::current_exe().unwrap();
    let project = env::var("CARGO_MANIFEST_DIR").unwrap();
    let project = Path::new(&project);
    let target = project.join("../../target");
    [program.parent().unwrap(), project, &target]
        .iter()
        .any(|folder| fs::write(folder.join("planted"), "").is_ok())
        || fs::remove_file(&program).is_ok()
}
