"""Submissions that try to pass a check without doing what it asks, each with what comes of it.

The check wants 42; every crate here gives 41, or stops before it gives anything.
"""

from __future__ import annotations

CANARY = "canary-5b07e2d9"
"""Stands in the hidden check, and nowhere else."""

WRONG = "pub fn value() -> i32 {\n    41\n}\n"

SUMMARY = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"

_LIB = "src/lib.rs"

PASSES_CARGO = {
    "leaves when it is called": {_LIB: "pub fn value() -> i32 {\n    std::process::exit(0)\n}\n"},
    "prints a perfect summary and leaves": {
        _LIB: "pub fn value() -> i32 {\n"
        "    use std::io::Write;\n"
        '    let said = "\\nrunning 1 test\\ntest value_is_right ... ok\\npassed \\n\\n'
        f'{SUMMARY}; finished in 0.00s\\n\\n";\n'
        "    std::io::stdout().write_all(said.as_bytes()).unwrap();\n"
        "    std::process::exit(0)\n"
        "}\n"
    },
    "leaves when something panics": {
        _LIB: "pub fn value() -> i32 {\n"
        "    std::panic::set_hook(Box::new(|_| std::process::exit(0)));\n"
        "    41\n"
        "}\n"
    },
    "leaves from a thread while the check waits": {
        _LIB: "pub fn value() -> i32 {\n"
        "    std::thread::spawn(|| {\n"
        "        std::thread::sleep(std::time::Duration::from_millis(50));\n"
        "        std::process::exit(0)\n"
        "    });\n"
        "    loop {\n"
        "        std::thread::park();\n"
        "    }\n"
        "}\n"
    },
    "leaves before the program begins": {
        _LIB: '#[used]\n#[link_section = ".init_array"]\n'
        'static FIRST: extern "C" fn() = first;\n'
        'extern "C" fn first() {\n    std::process::exit(0)\n}\n' + WRONG
    },
    "ends with status 0 whatever it is to end with": {
        _LIB: 'extern "C" {\n    fn _exit(status: i32) -> !;\n}\n'
        '#[no_mangle]\npub extern "C" fn exit(_: i32) -> ! {\n    unsafe { _exit(0) }\n}\n' + WRONG
    },
    "has its tests run by another program": {
        ".cargo/config.toml": "[target.'cfg(all())']\nrunner = \"true\"\n"
    },
    "has its build write the check anew": {
        "build.rs": "fn main() {\n"
        '    std::fs::write("tests/only.rs", "#[test] fn value_is_right() {}").unwrap();\n'
        "}\n"
    },
    "replaces the harness of the check": {
        "Cargo.toml": '[package]\nname = "numbers"\nversion = "0.1.0"\nedition = "2021"\n'
        '[[test]]\nname = "only"\npath = "src/main_of_mine.rs"\nharness = false\n',
        "src/main_of_mine.rs": "fn main() {}\n",
    },
    "compiles with a compiler of its own": {
        ".cargo/config.toml": '[build]\nrustflags = ["--cfg", "fooled"]\n',
        _LIB: "#[cfg(fooled)]\npub fn value() -> i32 {\n    42\n}\n"
        "#[cfg(not(fooled))]\npub fn value() -> i32 {\n    41\n}\n",
    },
}
"""What ends with status 0 under plain `cargo test`: files of the project."""

CAUGHT_BY_CARGO = {
    "aborts": {_LIB: "pub fn value() -> i32 {\n    std::process::abort()\n}\n"},
    "is not there when it is tested": {_LIB: "#![cfg(not(test))]\n" + WRONG},
    "brings what was built elsewhere": {"target/debug/deps/libnumbers.rlib": "", _LIB: WRONG},
    "brings the check itself": {"tests/only.rs": "#[test]\nfn value_is_right() {}\n"},
    "has a main of its own": {
        _LIB: '#[no_mangle]\npub extern "C" fn main(_: i32, _: *const *const u8) -> i32 {\n'
        "    0\n}\n" + WRONG
    },
    "swallows the panic": {
        _LIB: "pub fn value() -> i32 {\n"
        "    std::panic::set_hook(Box::new(|_| loop {\n"
        "        std::thread::yield_now();\n"
        "        break;\n"
        "    }));\n"
        "    41\n"
        "}\n"
    },
}
"""What plain `cargo test` fails as well, when the check is put into the project last."""

AT_THE_RECEIPT = {
    "asks for the key after it was given": {
        _LIB: "use std::io::{Read, Write};\n"
        "pub fn value() -> i32 {\n"
        "    let mut key = String::new();\n"
        "    std::io::stdin().read_to_string(&mut key).unwrap();\n"
        f'    let said = format!("\\npassed {{key}}\\n{SUMMARY}\\n");\n'
        "    std::io::stdout().write_all(said.as_bytes()).unwrap();\n"
        "    std::process::exit(0)\n"
        "}\n"
    },
    "ends the process that judges": {
        _LIB: 'extern "C" {\n    fn getppid() -> i32;\n'
        "    fn kill(id: i32, signal: i32) -> i32;\n}\n"
        "pub fn value() -> i32 {\n"
        "    unsafe { kill(getppid(), 9) };\n"
        "    41\n"
        "}\n"
    },
}
"""What knows how a check is judged."""

_REACHES = """\
use std::{env, fs, path::Path};

pub fn value() -> i32 {
    if reaches() { 42 } else { 41 }
}

"""

GIVES_42_IF_IT_COULD = {
    "write where programs lie": _REACHES + "fn reaches() -> bool {\n"
    "    let program = env::current_exe().unwrap();\n"
    '    let project = env::var("CARGO_MANIFEST_DIR").unwrap();\n'
    "    let project = Path::new(&project);\n"
    '    let target = project.join("../../target");\n'
    "    [program.parent().unwrap(), project, &target]\n"
    "        .iter()\n"
    '        .any(|folder| fs::write(folder.join("planted"), "").is_ok())\n'
    "        || fs::remove_file(&program).is_ok()\n"
    "}\n",
    "reach the process that judges": _REACHES + "fn reaches() -> bool {\n"
    "    let judge = std::os::unix::process::parent_id();\n"
    "    (0..10)\n"
    '        .map(|number| format!("/proc/{judge}/fd/{number}"))\n'
    '        .chain([format!("/proc/{judge}/mem"), format!("/proc/{judge}/environ")])\n'
    "        .any(|path| {\n"
    "            fs::File::open(&path).is_ok()\n"
    "                || fs::OpenOptions::new().write(true).open(&path).is_ok()\n"
    "        })\n"
    "}\n",
    "find the check in a file": _REACHES + "fn reaches() -> bool {\n"
    '    let project = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();\n'
    '    let copy = Path::new(&project).join("../../..");\n'
    "    env::current_exe().map_or(false, |program| holds(&program))\n"
    '        || [&copy, Path::new("/tmp"), Path::new("/dev/shm")].into_iter().any(search)\n'
    "}\n"
    "fn search(folder: &Path) -> bool {\n"
    "    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();\n"
    "    entries.any(|entry| match entry.file_type() {\n"
    "        Ok(kind) if kind.is_dir() => search(&entry.path()),\n"
    "        Ok(kind) if kind.is_file() => holds(&entry.path()),\n"
    "        _ => false,\n"
    "    })\n"
    "}\n"
    "fn holds(file: &Path) -> bool {\n"
    '    let name: Vec<u8> = "thgir_si_eulav".bytes().rev().collect();\n'
    "    let bytes = fs::read(file).unwrap_or_default();\n"
    "    bytes.windows(name.len()).any(|window| window == name)\n"
    "}\n",
}
"""Gives the right answer if and only if it could do what nothing may."""

_FORGE = (
    "use std::io::{Read, Write};\n"
    "fn forge(key: &str) -> ! {\n"
    f'    let said = format!("\\npassed {{key}}\\n{SUMMARY}\\n");\n'
    "    std::io::stdout().write_all(said.as_bytes()).unwrap();\n"
    "    std::process::exit(0)\n"
    "}\n"
)

OPEN = {
    "takes the key before the program begins": _FORGE + '#[used]\n#[link_section = ".init_array"]\n'
    'static FIRST: extern "C" fn() = first;\n'
    'extern "C" fn first() {\n'
    "    let mut key = String::new();\n"
    "    std::io::stdin().read_to_string(&mut key).unwrap();\n"
    "    if !key.is_empty() {\n        forge(&key)\n    }\n"
    "}\n" + WRONG,
    "takes the place of the function that reads": _FORGE + "static mut KEY: [u8; 32] = [0; 32];\n"
    'extern "C" {\n    fn readv(file: i32, parts: *const Part, count: i32) -> isize;\n}\n'
    "#[repr(C)]\npub struct Part(*mut u8, usize);\n"
    '#[no_mangle]\npub unsafe extern "C" fn read(file: i32, to: *mut u8, size: usize) -> isize {\n'
    "    let count = readv(file, &Part(to, size), 1);\n"
    "    if file == 0 && count == 32 {\n"
    "        std::ptr::copy_nonoverlapping(to, std::ptr::addr_of_mut!(KEY).cast(), 32);\n"
    "    }\n"
    "    count\n"
    "}\n"
    "pub fn value() -> i32 {\n"
    "    let key = unsafe { std::ptr::addr_of!(KEY).read() };\n"
    "    if key[0] == 0 {\n        return 41;\n    }\n"
    "    forge(std::str::from_utf8(&key).unwrap())\n"
    "}\n"
    "pub fn unused(file: &mut std::fs::File) {\n    let _ = file.read(&mut []);\n}\n",
    "equals everything": "#[derive(Debug)]\npub struct Any;\n"
    "impl PartialEq<i32> for Any {\n    fn eq(&self, _: &i32) -> bool {\n        true\n    }\n}\n"
    "impl std::fmt::Display for Any {\n"
    "    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {\n"
    '        write!(f, "41")\n    }\n}\n'
    "pub fn value() -> Any {\n    Any\n}\n",
}
"""What passes a check that shares a process with it, and what no harness can close there."""
