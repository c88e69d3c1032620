//! What an attribute may stand on, and what the compiler says where it may not.

#[test]
fn attributes_compile_where_they_fit_and_say_why_where_not() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/pass/*.rs");
    cases.compile_fail("tests/fail/*.rs");
}
