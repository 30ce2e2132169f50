//! The report pages of the program in a browser: they show, their plots answer to the pointer, the console stays empty.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn browser() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| runs(name));
    if found.is_none() {
        eprintln!("skipped: no Chromium found, so the report pages were not tried in a browser");
    }
    found
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bochner-pages-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Counts plots, and those whose first mark shows its words when the pointer enters it.
const SCRIPT: &str = r#"
    const tip = document.getElementById("tip");
    const out = {plots: 0, answers: 0, narrow: document.documentElement.scrollWidth <= innerWidth};
    for (const plot of document.querySelectorAll(".plot")) {
        const mark = plot.querySelector(".mark");
        if (!mark) continue;
        out.plots += 1;
        const send = (kind) => mark.dispatchEvent(new PointerEvent(kind, {clientX: 50, clientY: 50}));
        send("pointerenter");
        const shown = !tip.hidden && tip.textContent.length > 0;
        send("pointerleave");
        if (shown && tip.hidden) out.answers += 1;
    }
    document.body.dataset.result = `${out.plots} ${out.answers} ${out.narrow}`;
"#;

/// What the script found, at the width of a phone, and what went to the console.
fn browse(browser: &str, page: &Path, folder: &Path) -> (String, String) {
    let html = std::fs::read_to_string(page).unwrap();
    let with_script = folder.join("with-script.html");
    std::fs::write(&with_script, html.replace("</body>", &format!("<script>{SCRIPT}</script></body>"))).unwrap();
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=500,900"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("file://{}", with_script.display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let dom = text(&output.stdout);
    let result = dom.split("data-result=\"").nth(1).and_then(|r| r.split('"').next()).unwrap_or("nothing").to_owned();
    let console = text(&output.stderr).lines().filter(|l| l.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    (result, console)
}

/// Runs the program and tries the page it wrote.
fn page(name: &str, arguments: &[&str], page: &str, plots: usize) {
    let Some(browser) = browser() else { return };
    let folder = scratch(name);
    let mut text = String::from("x,y,kind,size\n");
    for i in 0..300 {
        let (x, y) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 0.3).cos());
        writeln!(text, "{x},{y},{},{}", if x * y > 0.0 { "<same>" } else { "other & \"else\"" }, x + y * y).unwrap();
    }
    std::fs::write(folder.join("data.csv"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bochner")).args(arguments).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (result, console) = browse(browser, &folder.join(page), &folder);
    assert_eq!(console, "", "{name}: the console stays empty");
    assert_eq!(result, format!("{plots} {plots} true"), "{name}: plots, plots that answer, fits a phone");
    std::fs::remove_dir_all(folder).unwrap();
}

// Two plots, and one of every column that counts.
#[test]
fn the_page_of_a_classification_shows_its_choices_and_its_classes() {
    page("classes", &["fit", "data.csv", "--target", "kind", "--budget", "1", "--report", "p.html"], "p.html", 5);
}

#[test]
fn the_page_of_a_regression_shows_its_choices_and_its_errors() {
    let arguments = ["fit", "data.csv", "--target", "size", "--drop", "kind", "--budget", "1", "--report", "p.html"];
    page("numbers", &arguments, "p.html", 4);
}

#[test]
fn the_page_of_the_demo_shows_its_plots() {
    page("demo", &["demo", "--small", "--out", "."], "report.html", 3);
}
