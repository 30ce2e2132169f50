use crate::cli::{Cli, Context};
use crate::failure::{Failure, Outcome};
use crate::output;
use clap::CommandFactory;
use clap_mangen::Man;
use std::path::PathBuf;

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner man | man -l -
  bochner man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write bochner.1, bochner-demo.1, … here instead of printing
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let mut program = Cli::command();
    program.build();
    let Some(folder) = &args.dir else {
        return context.print(&page(program)?);
    };
    output::create_folder(folder)?;
    for command in program.get_subcommands() {
        let name = format!("bochner-{}", command.get_name());
        let file = folder.join(format!("{name}.1"));
        // Page titles are 'static in clap; one leaked name per command in a program that ends right after is nothing.
        let name: &'static str = name.leak();
        output::write_whole(&file, page(command.clone().name(name))?.as_bytes())?;
    }
    output::write_whole(&folder.join("bochner.1"), page(program)?.as_bytes())
}

fn page(command: clap::Command) -> Outcome<String> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    String::from_utf8(text).map_err(|e| Failure::Failed(format!("the manual page is not text: {e}")))
}
