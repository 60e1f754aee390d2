//! The `omniforge` program.

fn main() -> std::process::ExitCode {
    omniforge::runner::run_spawner_if_asked();
    omniforge::cli::main()
}
