//! The program, and a file that is changed while it reads it.

mod common;

use common::Folder;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROWS: usize = 40_000;
const TRIES: u32 = 50;

fn table(rows: usize) -> String {
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 101, i * 13 % 97, (i * i) % 89);
    (0..rows).map(row).fold("a,b,c\n".to_owned(), |text, row| text + &row)
}

/// Cut in half at the end of a line, or longer by half: the outcome is an error that says so, the model of all old rows or the
/// model of all new ones, whenever it happens.
#[test]
#[ignore = "a minute: fifty fits"]
fn a_file_that_changes_during_a_fit_makes_no_mixed_model() {
    let folder = Folder::new("changing");
    let fit = ["fit", "t.csv", "--target", "c", "--task", "regression", "--features", "64", "--length-scale", "1"];
    let fit = [&fit[..], &["--alpha", "0.1", "--solver", "cg", "-o"]].concat();
    let (old, half, more) = (table(ROWS), table(ROWS / 2), table(ROWS + ROWS / 2));
    let model_of = |text: &str| {
        folder.write("t.csv", text);
        folder.good(&[&fit[..], &["model"]].concat());
        fs::read(folder.path("model")).unwrap()
    };
    let start = Instant::now();
    let models = [model_of(&old), model_of(&half), model_of(&more)];
    let (one, mut refused) = (start.elapsed() / 3, 0);
    for try_ in 0..TRIES {
        let path = folder.write("t.csv", &old);
        let out = format!("model{try_}");
        let child = Command::new(env!("CARGO_BIN_EXE_bochner"))
            .args(&fit)
            .arg(&out)
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Spread over the time that a fit takes.
        std::thread::sleep(one.mul_f64(f64::from(try_) / f64::from(TRIES)).max(Duration::from_millis(1)));
        match try_ % 2 {
            0 => fs::File::options().write(true).open(&path).unwrap().set_len(half.len() as u64).unwrap(),
            _ => {
                let mut file = fs::File::options().append(true).open(&path).unwrap();
                file.write_all(&more.as_bytes()[old.len()..]).unwrap();
            }
        }
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            assert!(models.contains(&fs::read(folder.path(&out)).unwrap()), "try {try_}: a mixed model");
        } else {
            assert!(told.contains("t.csv: the file changed while it was being read: "), "try {try_}: {told}");
            assert!(!folder.path(&out).exists());
            refused += 1;
        }
    }
    assert!(refused > TRIES / 4, "only {refused} of {TRIES} were changed in time");
    fs::remove_dir_all(&folder.0).unwrap();
}
