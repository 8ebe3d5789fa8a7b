fn main() {
    std::fs::write("tests/only.rs", "#[test] fn value_is_right() {}").unwrap();
}
