//! Every map and every kernel of the catalogue goes through the program: fitted, transformed, planned for, compared, explained.

mod common;

use bochner::catalogue;
use common::Folder;
use std::fmt::Write;

fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("catalogue-{name}"));
    let mut text = String::from("x,y,u,v\n");
    for i in 0..80u32 {
        let (x, y) = ((f64::from(i) * 0.7).sin() + 1.5, (f64::from(i) * 0.31).cos() + 1.5);
        writeln!(text, "{x},{y},{},{}", 0.5 * x * y - y, x - 0.3 * y * y).unwrap();
    }
    folder.write("t.csv", text);
    folder
}

#[test]
fn every_map_is_drawn_fitted_and_explained() {
    let folder = folder("maps");
    for map in catalogue::maps() {
        let common = ["t.csv", "--map", map.name, "--features", "16"];
        let features = folder.good(&[&["transform"], &common[..], &["--columns", "x,y"]].concat());
        assert_eq!(features.lines().count(), 81, "{}", map.name);
        let fit = ["--target", "u", "--drop", "v", "--alpha", "0.1", "--out", "m.bochner"];
        let told = folder.good(&[&["fit"], &common[..], &fit[..]].concat());
        assert!(told.contains(map.title), "{}: {told}", map.name);
        let explained = folder.good(&["inspect", "m.bochner"]);
        assert!(explained.contains(map.title), "{}: {explained}", map.name);
        assert_eq!(folder.good(&["predict", "m.bochner", "t.csv"]).lines().count(), 81, "{}", map.name);
    }
}

#[test]
fn every_kernel_is_fitted_planned_for_and_compared() {
    let folder = folder("kernels");
    for kernel in catalogue::kernels().chain(catalogue::operator_kernels()) {
        let is_operator = catalogue::operator_kernels().any(|entry| entry.name == kernel.name);
        let targets: &[&str] = if is_operator { &["--target", "u,v"] } else { &["--target", "u", "--drop", "v"] };
        let common = [&["t.csv", "--kernel", kernel.name], targets].concat();
        let fit = ["--features", "16", "--alpha", "0.1", "--out", "m.bochner"];
        folder.good(&[&["fit"], &common[..], &fit[..]].concat());
        folder.good(&["predict", "m.bochner", "t.csv"]);
        let few = ["--rows", "20", "--draws", "1"];
        let planned = folder.good(&[&["plan"], &common[..], &few[..], &["--error", "0.5"]].concat());
        let compared = folder.good(&[&["compare"], &common[..], &few[..], &["--features", "16"]].concat());
        for told in [&planned, &compared] {
            assert!(told.contains(&format!("{} kernel", kernel.title)), "{}: {told}", kernel.name);
        }
        // The default of every parameter can be set, by the same name at all three.
        let default = |name: &str| Some(kernel.parameter(name).ok()?.default());
        for parameter in kernel.parameters.iter().filter(|parameter| parameter.applies(default)) {
            // No more measurements than there are columns.
            let default = if parameter.name == "compressed_dim" { 2u64.into() } else { parameter.default() };
            let pair = format!("{}={default}", parameter.name);
            let set = ["--set", pair.as_str()];
            if parameter.default() != catalogue::Value::None {
                folder.good(&[&["plan"], &common[..], &few[..], &["--error", "0.5"], &set[..]].concat());
            }
        }
    }
}

#[test]
fn help_manual_and_refusals_name_everything_there_is() {
    let folder = folder("help");
    let maps: Vec<&str> = catalogue::maps().map(|map| map.name).collect();
    let kernels: Vec<&str> =
        catalogue::kernels().chain(catalogue::operator_kernels()).map(|kernel| kernel.name).collect();
    let has = |text: &str, names: &[&str], what: &str| {
        let text = text.replace("\\-", "-");
        names.iter().for_each(|name| assert!(text.contains(name), "{name} in {what}: {text}"));
    };
    for command in ["fit", "transform", "plan", "compare"] {
        let options = if ["fit", "transform"].contains(&command) { &[("--map", &maps)][..] } else { &[] };
        for (option, names) in options.iter().chain(&[("--kernel", &kernels)]) {
            has(&folder.good(&[command, "--help"]), names, command);
            has(&folder.good(&[command, "-h"]), names, command);
            let refused = folder.run(&[command, "t.csv", "--target", "u", option, "wavelet"]);
            let refused =
                if command == "transform" { folder.run(&[command, "t.csv", option, "wavelet"]) } else { refused };
            assert!(!refused.status.success());
            has(&String::from_utf8(refused.stderr).unwrap(), names, option);
        }
    }
    folder.good(&["man", "--dir", "pages"]);
    let manual = |name: &str| std::fs::read_to_string(folder.path(&format!("pages/{name}"))).unwrap();
    has(&manual("bochner-fit.1"), &[&maps[..], &kernels[..]].concat(), "the manual");
    has(&manual("bochner-plan.1"), &kernels, "the manual");
    let completions = folder.good(&["completions", "bash"]);
    has(&completions, &[&maps[..], &kernels[..]].concat(), "completions");
    for parameter in catalogue::kernels().flat_map(|kernel| kernel.parameters) {
        has(&folder.good(&["plan", "--help"]), &[parameter.name], "plan --help");
    }
}
