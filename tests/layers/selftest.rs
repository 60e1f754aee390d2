//! Each rule must be able to fail: small sources that break it, beside look-alikes that don't.

use crate::rules;
use crate::source::Source;

fn found(rule: fn(&Source) -> Vec<String>, file: &str, text: &str) -> usize {
    rule(&Source::new(file, text)).len()
}

#[test]
fn an_import_from_above_or_beside_is_found() {
    let imports = |file, text| found(rules::imports, file, text);
    assert_eq!(imports("src/store/mod.rs", "use crate::tools::Catalog;"), 1);
    assert_eq!(imports("src/store/rows.rs", "fn f() { crate::runner::start(); }"), 1);
    assert_eq!(imports("src/runner/mod.rs", "use crate::{model::{Run, Ending}, store::{self, Pool as P}, jobs};"), 2);
    assert_eq!(imports("src/jobs/mod.rs", "use crate::{\n    store,\n    runner::Spec,\n    model,\n};"), 0);
    assert_eq!(imports("src/auth/mod.rs", "use crate::trust::Secret;"), 1);
    assert_eq!(imports("src/model/mod.rs", "use crate::config::Settings;"), 1);
    assert_eq!(imports("src/config/mod.rs", "use crate::model::Limits; use crate::config::Options;"), 0);
    assert_eq!(imports("src/main.rs", "fn main() { omniforge::cli::run() }"), 0);
    assert_eq!(imports("src/model/run.rs", "use omniforge::tools;"), 1);
    assert_eq!(imports("src/misc.rs", ""), 1);
    assert_eq!(imports("src/store/mod.rs", "use crate::nowhere::X;"), 1);
}

#[test]
fn super_counts_from_where_it_stands() {
    let imports = |file, text| found(rules::imports, file, text);
    assert_eq!(imports("src/model/run.rs", "use super::super::tools::X;"), 1);
    assert_eq!(imports("src/model/run.rs", "use super::tools::X;"), 0);
    assert_eq!(imports("src/clock.rs", "use super::tools::X;"), 1);
    assert_eq!(imports("src/clock.rs", "mod tests { use super::tools; }"), 0);
    assert_eq!(imports("src/clock.rs", "mod tests { use super::super::tools; }"), 1);
    assert_eq!(imports("src/model/mod.rs", "use super::tools::X;"), 1);
}

#[test]
fn comments_strings_and_characters_are_no_code() {
    let imports = |text| found(rules::imports, "src/model/mod.rs", text);
    assert_eq!(imports("// crate::tools\n/* a /* crate::tools */ crate::api */ /// crate::web"), 0);
    assert_eq!(imports(r##"const A: &str = "crate::tools \" crate::api"; const B: &str = r#"crate::web"#;"##), 0);
    assert_eq!(imports("const A: char = '\"'; use crate::tools::X; const B: char = '\"';"), 1);
    assert_eq!(imports(r"const A: char = '\''; use crate::tools::X;"), 1);
    assert_eq!(imports("fn f<'a>(x: &'a str) { crate::tools::g(x) } // it's"), 1);
    assert_eq!(imports("const A: char = 'é'; use crate::tools::X; const B: &[u8] = b\"crate::api\";"), 1);
}

#[test]
fn the_outside_world_is_confined() {
    let confined = |file, text| found(rules::confined, file, text);
    assert_eq!(confined("src/tools/mod.rs", "use sqlx::Row;"), 1);
    assert_eq!(confined("src/store/mod.rs", "use sqlx::Row; fn f() { sqlx::query!(\"SELECT 1\"); }"), 0);
    assert_eq!(confined("src/mcp/mod.rs", "fn f(r: axum::Router) {}"), 1);
    assert_eq!(confined("src/http.rs", "use axum::{Router, routing::get};"), 0);
    assert_eq!(confined("src/httpd/mod.rs", "use axum::Router;"), 1);
    assert_eq!(confined("src/jobs/mod.rs", "use std::process::{Command, Stdio};"), 1);
    assert_eq!(confined("src/jobs/mod.rs", "use std::process; fn f() { process::Command::new(\"x\"); }"), 1);
    assert_eq!(confined("src/jobs/mod.rs", "use tokio::{fs, process::Child}; fn f() { libc::fork(); }"), 2);
    assert_eq!(confined("src/main.rs", "fn main() -> std::process::ExitCode { std::process::exit(1) }"), 0);
    assert_eq!(confined("src/runner/spawn.rs", "use tokio::process::Command;"), 0);
    assert_eq!(confined("src/cli/mod.rs", "use std::{env, io}; fn f() { std::env::var(\"A\"); }"), 2);
    assert_eq!(confined("src/config/mod.rs", "use std::env::var_os;"), 0);
    assert_eq!(confined("src/runner/mod.rs", "fn f(p: &str) { std::env::split_paths(p); }"), 0);
    assert_eq!(confined("src/cli/mod.rs", "const V: &str = env!(\"X\"); const A: &str = std::env::consts::ARCH;"), 0);
}

#[test]
fn unsafe_is_confined() {
    let confined = |file, text| found(rules::confined, file, text);
    assert_eq!(confined("src/runner/mod.rs", "fn f() { unsafe { g() } }"), 1);
    assert_eq!(confined("src/runner/sandbox/sys.rs", "fn f() { unsafe { g() } }"), 0);
    assert_eq!(confined("src/runner/mod.rs", "#![deny(unsafe_code)] // unsafe"), 0);
}

#[test]
fn a_module_without_opening_words_is_found() {
    assert_eq!(found(rules::opening, "src/x.rs", "use std::fs;"), 1);
    assert_eq!(found(rules::opening, "src/x.rs", ""), 1);
    assert_eq!(found(rules::opening, "src/x.rs", "#![expect(unsafe_code)]\n//! Words."), 0);
}

#[test]
fn a_long_function_is_found_and_a_declaration_is_not() {
    let of =
        |lines: usize| format!("trait T {{ fn d(&self); }}\nfn f(a: [u8; 2]) -> u8 {{\n{}}}\n", "a();\n".repeat(lines));
    assert_eq!(found(rules::long_functions, "src/x.rs", &of(58)), 0);
    assert_eq!(found(rules::long_functions, "src/x.rs", &of(59)), 1);
    let braces = format!("fn f() {{ let s = \"}}\"; let c = '}}';\n{}}}\n", "a();\n".repeat(60));
    assert_eq!(found(rules::long_functions, "src/x.rs", &braces), 1);
}

#[test]
fn an_ignored_test_is_found() {
    assert_eq!(found(rules::ignored, "tests/x.rs", "#[test]\n#[ignore]\nfn f() {}"), 1);
    assert_eq!(found(rules::ignored, "tests/x.rs", "#[cfg_attr(windows, ignore = \"slow\")]\nfn f() {}"), 1);
    assert_eq!(found(rules::ignored, "tests/x.rs", "// #[ignore]\nfn ignore() { ignore(); }"), 0);
}
