#[cfg(fooled)]
pub fn value() -> i32 {
    42
}
#[cfg(not(fooled))]
pub fn value() -> i32 {
    41
}
