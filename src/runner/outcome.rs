//! What a run's end means: limits named, results told from failures.

use std::time::Duration;

use super::frames::{Frame, FrameError};
use super::process::{Finished, Stop};
use super::sandbox::spec::{Cause, Report};
use crate::model::{Ending, Limit, Outcome, ReturnValue, SandboxLevel, Style, Usage};

/// The outcome of a finished process.
pub(super) fn of(finished: Finished, style: Style, sandbox: SandboxLevel) -> Outcome {
    let mut problem = None;
    let mut result_too_long = false;
    let returned = match finished.last {
        Ok(Some(Frame::Return(value))) => Some(value),
        Ok(Some(Frame::Answer(_) | Frame::Event(_) | Frame::Request { .. })) => {
            problem = Some("the tool broke the result protocol: it answered as an inspector".to_owned());
            None
        }
        Ok(None) => None,
        Err(error) => {
            result_too_long = matches!(error, FrameError::TooLong { .. });
            problem = Some(error.to_string());
            None
        }
    };
    let process = ProcessEnd::of(finished.report.as_ref());
    let ending = if let Some(stop) = finished.stop {
        match stop {
            Stop::Cancelled => Ending::Cancelled,
            Stop::Timeout => Ending::Timeout,
            Stop::Flooded => Ending::Limit(Limit::Output),
        }
    } else if result_too_long {
        Ending::Limit(Limit::Result)
    } else if let Some(ending) = returned.as_ref().and_then(|value| returned_ending(value, style)) {
        ending
    } else if problem.is_some() {
        Ending::Error
    } else {
        let (ending, why) = process.ending(style);
        problem = why;
        ending
    };
    let usage = Usage { wall: finished.wall, cpu: process.cpu, peak_memory_bytes: process.peak_bytes };
    Outcome {
        ending,
        returned,
        problem,
        stdout: finished.stdout,
        stderr: finished.stderr,
        usage,
        sandbox,
        network: finished.network,
    }
}

/// What the returned value says of the ending; `None` when the process's own end decides.
fn returned_ending(value: &ReturnValue, style: Style) -> Option<Ending> {
    match value {
        ReturnValue::Exception(exception) => Some(match exception.kind.as_str() {
            "ResultTooLarge" => Ending::Limit(Limit::Result),
            "MemoryError" => Ending::Limit(Limit::Memory),
            _ => Ending::Error,
        }),
        ReturnValue::ToolError { .. } | ReturnValue::ProtocolError { .. } => Some(Ending::Error),
        _ if style == Style::Function => Some(Ending::Ok),
        _ => None,
    }
}

#[derive(Default)]
struct ProcessEnd {
    exit: Option<i32>,
    signal: Option<i32>,
    cause: Option<Cause>,
    cpu: Duration,
    peak_bytes: u64,
}

impl ProcessEnd {
    fn of(report: Option<&Report>) -> Self {
        match report {
            Some(Report::Ended { exit, signal, cause, cpu_microseconds, peak_bytes }) => Self {
                exit: *exit,
                signal: *signal,
                cause: *cause,
                cpu: Duration::from_micros(*cpu_microseconds),
                peak_bytes: *peak_bytes,
            },
            _ => Self::default(),
        }
    }

    /// The ending, and what is to be said beyond it.
    fn ending(&self, style: Style) -> (Ending, Option<String>) {
        match (self.cause, self.exit, self.signal) {
            (Some(Cause::Memory), ..) => (Ending::Limit(Limit::Memory), None),
            (Some(Cause::Cpu), ..) | (_, _, Some(libc::SIGXCPU)) => (Ending::Limit(Limit::Cpu), None),
            (Some(Cause::Processes), ..) => {
                (Ending::Signal(libc::SIGKILL), Some("the run had more processes than its limit allows".to_owned()))
            }
            (_, Some(0), _) if style == Style::Function => {
                (Ending::Error, Some("the tool ended before `main` handed a result back".to_owned()))
            }
            (_, Some(0), _) => (Ending::Ok, None),
            (_, Some(status), _) => (Ending::Exit(status), None),
            (_, _, Some(signal)) => (Ending::Signal(signal), None),
            (_, None, None) => {
                let why = "the sandbox was killed from outside; the machine may be out of memory";
                (Ending::Signal(libc::SIGKILL), Some(why.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolException;

    fn finished(report: Option<Report>, last: Result<Option<Frame>, FrameError>) -> Finished {
        let (stdout, stderr) = Default::default();
        Finished { stop: None, report, last, stdout, stderr, wall: Duration::ZERO, network: None }
    }

    fn ended(exit: Option<i32>, signal: Option<i32>, cause: Option<Cause>) -> Option<Report> {
        Some(Report::Ended { exit, signal, cause, cpu_microseconds: 1, peak_bytes: 2 })
    }

    fn ending(finished: Finished, style: Style) -> Ending {
        of(finished, style, SandboxLevel::Full).ending
    }

    #[test]
    fn the_process_decides_where_nothing_was_returned() {
        let cases = [
            (ended(Some(0), None, None), Style::Script, Ending::Ok),
            (ended(Some(0), None, None), Style::Function, Ending::Error),
            (ended(Some(3), None, None), Style::Function, Ending::Exit(3)),
            (ended(None, Some(6), None), Style::Function, Ending::Signal(6)),
            (ended(None, Some(libc::SIGXCPU), None), Style::Script, Ending::Limit(Limit::Cpu)),
            (ended(None, Some(9), Some(Cause::Memory)), Style::Script, Ending::Limit(Limit::Memory)),
            (None, Style::Script, Ending::Signal(9)),
        ];
        for (report, style, expected) in cases {
            assert_eq!(ending(finished(report, Ok(None)), style), expected);
        }
    }

    #[test]
    fn the_result_decides_where_there_is_one() {
        let value = |value| finished(None, Ok(Some(Frame::Return(value))));
        assert_eq!(ending(value(ReturnValue::Nothing), Style::Function), Ending::Ok);
        let exception = |kind: &str| {
            let exception = ToolException { kind: kind.to_owned(), message: String::new(), traceback: String::new() };
            ending(value(ReturnValue::Exception(exception)), Style::Function)
        };
        assert_eq!(exception("ValueError"), Ending::Error);
        assert_eq!(exception("MemoryError"), Ending::Limit(Limit::Memory));
        assert_eq!(exception("ResultTooLarge"), Ending::Limit(Limit::Result));
        let too_long = FrameError::TooLong { length: 9, limit: 8 };
        assert_eq!(ending(finished(None, Err(too_long)), Style::Function), Ending::Limit(Limit::Result));
        let stopped = Finished { stop: Some(Stop::Timeout), ..value(ReturnValue::Nothing) };
        assert_eq!(ending(stopped, Style::Function), Ending::Timeout);
    }
}
