pub fn value() -> i32 {
    41
}
