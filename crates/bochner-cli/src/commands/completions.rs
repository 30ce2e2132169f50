use crate::cli::{Cli, Context};
use bochner_table::failure::Outcome;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner completions bash > ~/.local/share/bash-completion/completions/bochner
  bochner completions zsh  > \"${fpath[1]}/_bochner\"
  bochner completions fish > ~/.config/fish/completions/bochner.fish")]
pub(crate) struct Args {
    /// The shell to complete for
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bochner", &mut script);
    context.print(&String::from_utf8_lossy(&script))
}
