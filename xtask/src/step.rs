//! One step of a command: a line that says what is being done, and then how long it took.
//!
//! What a program prints is kept, and shown only if it fails. On a terminal its latest line stands behind the step's
//! name while it runs.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use crate::Result;

/// The steps of one command, counted.
pub struct Steps {
    total: usize,
    done: usize,
}

impl Steps {
    pub fn new(total: usize) -> Steps {
        Steps { total, done: 0 }
    }

    /// Does the next step; its value, or its error, comes back behind a line with its time.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce(&Line) -> Result<T>) -> Result<T> {
        self.done += 1;
        let line = Line { text: format!("{}/{} {name} …", self.done, self.total) };
        line.begin();
        let start = Instant::now();
        let result = work(&line);
        line.end(if result.is_ok() { "" } else { "failed, " }, start.elapsed());
        result
    }

    /// Announces the next step, which prints for itself.
    pub fn announce(&mut self, name: &str) {
        self.done += 1;
        println!("{}/{} {name}", self.done, self.total);
    }
}

/// The line of a step that is under way.
pub struct Line {
    text: String,
}

const WIDTH: usize = 44;

impl Line {
    fn begin(&self) {
        if std::io::stdout().is_terminal() {
            print!("{}", self.text);
            let _ = std::io::stdout().flush();
        }
    }

    fn end(&self, word: &str, time: Duration) {
        let clear = if std::io::stdout().is_terminal() { "\r\x1b[K" } else { "" };
        let time = seconds(time);
        println!("{clear}{:<WIDTH$} {word}{time}", self.text);
    }

    /// Shows what a program says now; a pipe or a file gets nothing of it.
    fn show(&self, latest: &str) {
        if std::io::stdout().is_terminal() {
            let latest: String = latest.trim().chars().filter(|c| !c.is_control()).take(WIDTH - 8).collect();
            print!("\r\x1b[K{:<WIDTH$} \x1b[2m{latest}\x1b[0m", self.text);
            let _ = std::io::stdout().flush();
        }
    }

    /// Runs a program to its end; what it printed comes back, in the error if it failed.
    pub fn output(&self, command: &mut Command) -> Result<String> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{program} can't be run: {e}"))?;
        let (sender, lines) = mpsc::channel();
        let readers = [
            child.stdout.take().map(|pipe| read(pipe, sender.clone())),
            child.stderr.take().map(|pipe| read(pipe, sender)),
        ];
        let mut output = String::new();
        for line in lines {
            self.show(&line);
            output += &line;
        }
        for reader in readers.into_iter().flatten() {
            let _ = reader.join();
        }
        let status = child.wait().map_err(|e| format!("{program}: {e}"))?;
        if status.success() {
            return Ok(output);
        }
        // A program that was killed had no time to say so.
        if status.code().is_none() || output.trim().is_empty() {
            output += &format!("{program} ended with {status}");
        }
        Err(output.trim_end().to_owned())
    }
}

fn read(pipe: impl Read + Send + 'static, lines: Sender<String>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    })
}

/// Seconds with one decimal, right-aligned.
pub fn seconds(time: Duration) -> String {
    format!("{:>6.1} s", time.as_secs_f64())
}
