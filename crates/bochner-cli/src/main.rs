fn main() -> std::process::ExitCode {
    bochner_cli::run(std::env::args_os())
}
