//! Speaks the frame protocol with the harness, without a sandbox: real interpreters, a real socket on descriptor 3.

mod arguments;
mod content;
mod inspect_javascript;
mod inspect_python;
mod node;
mod python;
mod python_scripts;
mod shapes;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::model::Json;

/// The harness on disk, compiled, and the interpreters that run it.
struct Fixture {
    directory: tempfile::TempDir,
    python: String,
    node: String,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    super::write(directory.path()).unwrap();
    let python = resolved("python3", &["-c", "import sys; print(sys.executable)"]);
    let node = resolved("node", &["-p", "process.execPath"]);
    let compiled = Command::new(&python).args(["-I", "-S"]).arg(directory.path().join(super::PYTHON_COMPILE)).status();
    assert!(compiled.unwrap().success());
    Fixture { directory, python, node }
});

fn resolved(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// One request, and how it ended.
struct Call {
    language: &'static str,
    request: Value,
    environment: Option<String>,
    stdin: String,
    raw: Option<String>,
}

/// What the harness did.
#[derive(Debug)]
struct Done {
    frames: Vec<Value>,
    stdout: String,
    stderr: String,
    status: Option<i32>,
}

impl Call {
    fn new(language: &'static str, code: &str, arguments: &str) -> Self {
        let context = json!({"tool": "sum", "version": 3, "run_id": "run", "request_id": 7, "meta": {"a": 1},
            "caller": "owner", "client_capabilities": {"sampling": {}}});
        let arguments: Json = serde_json::from_str(arguments).unwrap();
        let request = json!({"style": "function", "code": code, "context": context, "result_limit": 4 << 20,
            "inspect": false, "language": language});
        Self { language, request, environment: None, stdin: arguments.get().to_owned(), raw: None }
    }

    /// A Python call whose request has exactly this text.
    fn raw(text: String) -> Self {
        Self { raw: Some(text), ..Self::new("python", "", "{}") }
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.request[key] = value;
        self
    }

    /// The request's text, the arguments in it byte for byte.
    fn frame(&self) -> Vec<u8> {
        let mut text = self.request.to_string();
        text.truncate(text.len() - 1);
        let body = self.raw.clone().unwrap_or_else(|| format!("{text},\"arguments\":{}}}", self.stdin));
        [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body.as_bytes()].concat()
    }

    fn run(self) -> Done {
        let fixture = &*FIXTURE;
        let work = tempfile::tempdir().unwrap();
        let mut arguments = tempfile::NamedTempFile::new().unwrap();
        arguments.write_all(self.stdin.as_bytes()).unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec 3<&0 0<\"$0\"; exec \"$@\""]).arg(arguments.path());
        if self.language == "python" {
            command.arg(&fixture.python).args(super::python_arguments(fixture.directory.path().to_str().unwrap()));
        } else {
            command.arg(&fixture.node).arg(fixture.directory.path().join("node/run.cjs"));
        }
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(self.environment.iter().map(|it| ("OMNIFORGE_ENVIRONMENT", it)));
        command.current_dir(work.path()).stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        drop(command); // It holds the other end of the socket.
        let frame = self.frame();
        let mut reader = ours.try_clone().unwrap();
        let received = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = reader.read_to_end(&mut bytes);
            bytes
        });
        let _ = ours.write_all(&frame);
        let output = child.wait_with_output().unwrap();
        let _ = ours.shutdown(std::net::Shutdown::Write);
        let frames = frames(&received.join().unwrap());
        assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0, "the working directory must stay empty");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done { frames, stdout: text(output.stdout), stderr: text(output.stderr), status: output.status.code() }
    }
}

fn frames(mut bytes: &[u8]) -> Vec<Value> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (body, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        frames.push(serde_json::from_slice(body).unwrap());
        bytes = rest;
    }
    frames
}

/// Runs function-style code; its last frame without `type`.
fn answer(language: &'static str, code: &str, arguments: &str) -> Value {
    let done = Call::new(language, code, arguments).run();
    let mut last = done.frames.last().unwrap_or_else(|| panic!("no frame for:\n{code}\n{done:?}")).clone();
    assert_eq!(last.as_object_mut().unwrap().shift_remove("type"), Some(json!("return")), "{code}");
    last
}

/// Checks what each piece of code answers.
fn check(language: &'static str, table: &[(&str, &str, Value)]) {
    for (code, arguments, expected) in table {
        assert_eq!(&answer(language, code, arguments), expected, "the code was:\n{code}");
    }
}

/// Checks the message of the exception that each piece of code ends with.
fn check_exceptions(language: &'static str, table: &[(&str, &str, &str)]) {
    for (code, arguments, expected) in table {
        let answer = answer(language, code, arguments);
        assert_eq!(answer["kind"], "exception", "{answer} came from:\n{code}");
        let shown = format!("{}: {}", answer["exception"].as_str().unwrap(), answer["message"].as_str().unwrap());
        assert!(shown.contains(expected), "{shown:?} should hold {expected:?}; the code was:\n{code}");
    }
}

/// The inspector's frame for the code.
fn inspected(language: &'static str, code: &str) -> Value {
    let done = Call::new(language, code, "{}").with("inspect", json!(true)).run();
    assert_eq!((done.frames.len(), done.stdout.as_str(), done.stderr.as_str()), (1, "", ""), "{done:?}");
    done.frames[0].clone()
}

fn value(value: Value) -> Value {
    json!({"kind": "value", "value": value})
}

fn text(text: &str) -> Value {
    json!({"kind": "text", "text": text})
}
