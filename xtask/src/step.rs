//! A step of a command: prints its name, and then its duration.
//!
//! The output of a program is shown only if the program fails. On a terminal, its latest line is shown after the name of
//! the step while it runs.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use crate::Result;

/// The numbered steps of a command.
pub struct Steps {
    total: usize,
    done: usize,
}

impl Steps {
    pub fn new(total: usize) -> Steps {
        Steps { total, done: 0 }
    }

    /// Runs the next step, prints its duration, and returns its result.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce(&Line) -> Result<T>) -> Result<T> {
        self.done += 1;
        let line = Line { text: format!("{}/{} {name} …", self.done, self.total) };
        line.begin();
        let start = Instant::now();
        let result = work(&line);
        line.end(if result.is_ok() { "" } else { "failed, " }, start.elapsed());
        result
    }

    /// Prints the name of the next step, which prints its own output.
    pub fn announce(&mut self, name: &str) {
        self.done += 1;
        println!("{}/{} {name}", self.done, self.total);
    }
}

/// The line of a running step.
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

    /// Shows the latest line of a program on a terminal.
    fn show(&self, latest: &str) {
        if std::io::stdout().is_terminal() {
            let latest: String = latest.trim().chars().filter(|c| !c.is_control()).take(WIDTH - 8).collect();
            print!("\r\x1b[K{:<WIDTH$} \x1b[2m{latest}\x1b[0m", self.text);
            let _ = std::io::stdout().flush();
        }
    }

    /// Runs a program and returns its output, as the error if it fails.
    pub fn output(&self, command: &mut Command) -> Result<String> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot run {program}: {e}"))?;
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
        // A program that was killed has printed no error.
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

/// Formats a duration in seconds with one decimal, right-aligned.
pub fn seconds(time: Duration) -> String {
    format!("{:>6.1} s", time.as_secs_f64())
}
