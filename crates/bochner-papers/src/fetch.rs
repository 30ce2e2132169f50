//! Downloads that continue where they stopped and are believed only when their checksum is right.

use crate::known::{KnownFile, Verdict, check};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::interrupt;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// Downloads `known` from `url` to `target`; what an earlier attempt has left behind is continued.
///
/// Bytes gather in a hidden neighbour of the target, which gets its name when size and checksum are right.
pub fn fetch(url: &str, target: &Path, known: &KnownFile, mut seen: impl FnMut(u64)) -> Outcome {
    let told = |what: String| Failure::Failed(format!("{url}: {what}"));
    let local = ["http://127.0.0.1:", "http://localhost:"].iter().any(|start| url.starts_with(start));
    if !url.starts_with("https://") && !local {
        return Err(told("only https:// addresses are fetched".into()));
    }
    let part = target.with_file_name(format!(".{}.download", known.name));
    let write_failed = |e: std::io::Error| Failure::Failed(format!("cannot write {}: {e}", part.display()));
    let mut have = fs::metadata(&part).map(|m| m.len()).unwrap_or(0);
    if have > known.bytes {
        fs::remove_file(&part).map_err(write_failed)?;
        have = 0;
    }
    if have < known.bytes {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .user_agent(concat!("bochner/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let mut request = agent.get(url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(|e| match e {
            ureq::Error::Io(e) => Failure::Failed(format!("{url} could not be reached: {e}")),
            e => Failure::Failed(format!("{url} could not be reached: {e}")),
        })?;
        let continued = response
            .headers()
            .get("content-range")
            .and_then(|v| v.to_str().ok())
            .is_some_and(|range| range.starts_with(&format!("bytes {have}-")));
        match response.status().as_u16() {
            206 if continued => {}
            200 => have = 0,
            status => return Err(told(format!("the server answered with status {status}"))),
        }
        let mut file = File::options().create(true).append(true).open(&part).map_err(write_failed)?;
        file.set_len(have).map_err(write_failed)?;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            // What has arrived stays for the next attempt.
            interrupt::check()?;
            let n = body.read(&mut buffer).map_err(|e| told(format!("{e}; the same command continues from here")))?;
            if n == 0 {
                break;
            }
            have += n as u64;
            if have > known.bytes {
                drop(file);
                fs::remove_file(&part).map_err(write_failed)?;
                return Err(told(format!("the file is longer than the {} bytes expected", known.bytes)));
            }
            file.write_all(&buffer[..n]).map_err(write_failed)?;
            seen(have);
        }
        file.sync_all().map_err(write_failed)?;
        if have < known.bytes {
            let bytes = known.bytes;
            return Err(told(format!(
                "the connection ended after {have} of {bytes} bytes; the same command continues"
            )));
        }
    }
    match check(&part, known)? {
        Verdict::Intact => fs::rename(&part, target).map_err(write_failed),
        _ => {
            fs::remove_file(&part).map_err(write_failed)?;
            Err(told("the checksum of the download is wrong; it was thrown away".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    /// How the server behaves.
    #[derive(Clone, Copy, PartialEq)]
    enum Behavior {
        /// Answers ranges with ranges.
        Polite,
        /// Closes the connection after so many bytes of the file.
        Cut(usize),
        /// Sends the whole file, whatever is asked for.
        Deaf,
        Missing,
    }

    /// Serves `contents` once per entry of `behaviors`; remembers the ranges that were asked for.
    fn serve(contents: Vec<u8>, behaviors: Vec<Behavior>) -> (String, Arc<Mutex<Vec<Option<String>>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/file.bin", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ranges = Arc::clone(&asked);
        std::thread::spawn(move || {
            for behavior in behaviors {
                let (mut stream, _) = listener.accept().unwrap();
                let mut range = None;
                let reader = std::io::BufReader::new(stream.try_clone().unwrap());
                for line in reader.lines() {
                    let line = line.unwrap();
                    if line.is_empty() {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                        range = Some(value.trim_end_matches('-').to_owned());
                    }
                }
                ranges.lock().unwrap().push(range.clone());
                let start: usize = range.and_then(|r| r.parse().ok()).unwrap_or(0);
                let total = contents.len();
                let (head, body) = match behavior {
                    Behavior::Missing => ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(), Vec::new()),
                    Behavior::Deaf => (format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n"), contents.clone()),
                    _ => {
                        let body = contents[start..].to_vec();
                        let range = format!("Content-Range: bytes {start}-{}/{total}\r\n", total - 1);
                        let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
                        let head = format!("HTTP/1.1 {status}\r\n{range}Content-Length: {}\r\n\r\n", body.len());
                        (head, body)
                    }
                };
                let body = if let Behavior::Cut(len) = behavior { body[..len.min(body.len())].to_vec() } else { body };
                // A client that has heard enough may close the connection.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        (address, asked)
    }

    fn contents() -> Vec<u8> {
        (0..200_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
    }

    fn known(contents: &[u8]) -> KnownFile {
        let sha256 = bochner_table::checkpoint::hash(contents);
        KnownFile { name: "file.bin".into(), bytes: contents.len() as u64, sha256 }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bochner-fetch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_download_continues_where_it_was_cut() {
        let folder = folder("cut");
        let target = folder.join("file.bin");
        let all = contents();
        let (url, asked) = serve(all.clone(), vec![Behavior::Cut(300_000), Behavior::Cut(100_000), Behavior::Polite]);
        for _ in 0..2 {
            let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
            assert!(error.contains("the same command continues"), "{error}");
            assert!(!target.exists(), "half a file never has the name of a whole one");
        }
        fetch(&url, &target, &known(&all), |_| {}).unwrap();
        assert!(fs::read(&target).unwrap() == all);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        let asked = asked.lock().unwrap();
        assert_eq!(asked[0], None);
        assert_eq!(asked[2].as_deref(), Some("400000"), "{asked:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_server_that_cannot_continue_starts_again() {
        let folder = folder("deaf");
        let target = folder.join("file.bin");
        let all = contents();
        let (url, _) = serve(all.clone(), vec![Behavior::Cut(1000), Behavior::Deaf]);
        assert!(fetch(&url, &target, &known(&all), |_| {}).is_err());
        fetch(&url, &target, &known(&all), |_| {}).unwrap();
        assert!(fs::read(&target).unwrap() == all);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn wrong_bytes_are_thrown_away() {
        let folder = folder("wrong");
        let target = folder.join("file.bin");
        let all = contents();
        let mut other = all.clone();
        other[12_345] ^= 1;
        let (url, _) = serve(other, vec![Behavior::Polite]);
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
        let (url, _) = serve([all.clone(), vec![0]].concat(), vec![Behavior::Polite]);
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
        let (url, _) = serve(all.clone(), vec![Behavior::Missing]);
        let error = fetch(&url, &target, &known(&all), |_| {}).unwrap_err().to_string();
        assert!(error.contains("status 404"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/file.bin");
        let error = fetch(&url, &folder("nobody").join("file.bin"), &known(b"x"), |_| {}).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{url} could not be reached: ")) && !error.contains("io:"), "{error}");
    }

    #[test]
    fn only_encrypted_connections_leave_the_machine() {
        let error = fetch("http://example.com/file.bin", Path::new("x"), &known(b"x"), |_| {}).unwrap_err();
        assert!(error.to_string().contains("only https://"), "{error}");
    }
}
