//! How fast a call's events may reach its client: of progress the latest value wins, of logs so many a second are told
//! and the others counted; neither overtakes the other, and nothing is held back from a call that ends.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{LogLevel, RunEvent};

/// So many values of progress at once, and one more each interval: at most 20 in any second.
const PROGRESS_AT_ONCE: u32 = 4;
const PROGRESS_INTERVAL: Duration = Duration::from_micros(62_500);
/// What progress grows by when there is nothing to tell: so little that what the script reports of itself is more.
const STEP: f64 = 1e-6;
/// The most logs in a window of this length.
const LOGS: usize = 100;
const LOG_WINDOW: Duration = Duration::from_secs(1);
/// The most logs that wait for a client that reads slowly.
const LOGS_WAITING: usize = 256;

/// What is to be done for a call's client.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Tell this.
    Tell(RunEvent),
    /// Wait for another event, or until then.
    Wait(Option<Instant>),
    /// All is told.
    End,
}

/// The events of one call that its client was not told yet.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: VecDeque<RunEvent>,
    last_progress: f64,
    /// When the next value of progress could go if none had gone at once.
    progress_due: Option<Instant>,
    logs_waiting: usize,
    /// When the window began, and how many logs it has seen.
    window: Option<(Instant, usize)>,
    left_out: Option<(usize, LogLevel)>,
    ended: bool,
}

impl Backlog {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            last_progress: f64::NEG_INFINITY,
            progress_due: None,
            logs_waiting: 0,
            window: None,
            left_out: None,
            ended: false,
        }
    }

    /// Takes an event in.
    pub(super) fn offer(&mut self, event: RunEvent, now: Instant) {
        match event {
            RunEvent::Progress { progress, .. } => {
                // The specification wants every value to be greater than the one before.
                if progress.partial_cmp(&self.last_progress) != Some(Ordering::Greater) {
                    return;
                }
                self.last_progress = progress;
                match self.waiting.back_mut() {
                    Some(older @ RunEvent::Progress { .. }) => *older = event,
                    _ => self.waiting.push_back(event),
                }
            }
            RunEvent::CloseStream => self.waiting.push_back(event),
            RunEvent::Log { level, .. } => {
                if self.logs_waiting >= LOGS_WAITING || !self.admits_log(now) {
                    let (count, highest) = self.left_out.unwrap_or((0, level));
                    self.left_out = Some((count + 1, highest.max(level)));
                    return;
                }
                if let Some(left_out) = self.left_out.take() {
                    self.push_log(notice(left_out));
                }
                self.push_log(event);
            }
        }
    }

    /// Says that the call goes on: many clients wait for as long as they hear of progress.
    pub(super) fn beat(&mut self) {
        self.last_progress = self.last_progress.max(0.0) + STEP;
        let message = Some("still running".to_owned());
        self.waiting.push_back(RunEvent::Progress { progress: self.last_progress, total: None, message });
    }

    /// No more events come.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// What to do now.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        let progress_at = match self.waiting.front() {
            Some(RunEvent::Progress { .. }) => self.progress_at(now),
            _ => now,
        };
        // A log that waits behind progress takes it along.
        if progress_at <= now || self.ended || self.logs_waiting > 0 {
            match self.waiting.pop_front() {
                Some(event @ RunEvent::Progress { .. }) => {
                    self.progress_due = Some(self.progress_due.unwrap_or(now).max(now) + PROGRESS_INTERVAL);
                    return Next::Tell(event);
                }
                Some(RunEvent::CloseStream) => return Next::Tell(RunEvent::CloseStream),
                Some(event @ RunEvent::Log { .. }) => {
                    self.logs_waiting -= 1;
                    return Next::Tell(event);
                }
                None => {}
            }
        }
        let notice_at = self.window.map_or(now, |(began, _)| began + LOG_WINDOW);
        if self.ended || notice_at <= now {
            if let Some(left_out) = self.left_out.take() {
                return Next::Tell(notice(left_out));
            }
            if self.ended {
                return Next::End;
            }
        }
        let progress_at = (!self.waiting.is_empty()).then_some(progress_at);
        let notice_at = self.left_out.map(|_| notice_at);
        Next::Wait(progress_at.into_iter().chain(notice_at).min())
    }

    fn push_log(&mut self, event: RunEvent) {
        self.logs_waiting += 1;
        self.waiting.push_back(event);
    }

    fn admits_log(&mut self, now: Instant) -> bool {
        let (began, seen) = self.window.filter(|(began, _)| now < *began + LOG_WINDOW).unwrap_or((now, 0));
        self.window = Some((began, seen + 1));
        seen < LOGS
    }

    fn progress_at(&self, now: Instant) -> Instant {
        let at_once = PROGRESS_INTERVAL * (PROGRESS_AT_ONCE - 1);
        self.progress_due.and_then(|due| due.checked_sub(at_once)).unwrap_or(now)
    }
}

fn notice((count, level): (usize, LogLevel)) -> RunEvent {
    let text = format!(
        "{count} log message(s) were left out: more than {LOGS} a second are not sent; omniforge_get_run shows the run's log"
    );
    RunEvent::Log { level, data: text.into(), logger: Some("omniforge".to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn progress(progress: f64) -> RunEvent {
        RunEvent::Progress { progress, total: None, message: None }
    }

    fn log(level: LogLevel, data: impl Into<Value>) -> RunEvent {
        RunEvent::Log { level, data: data.into(), logger: None }
    }

    /// What a client that reads at once is told now: progress as numbers, logs as their data.
    fn told(backlog: &mut Backlog, now: Instant) -> Vec<Value> {
        let mut told = Vec::new();
        while let Next::Tell(event) = backlog.next(now) {
            told.push(match event {
                RunEvent::Progress { progress, .. } => json!(progress),
                RunEvent::Log { data, .. } => data,
                RunEvent::CloseStream => json!("close"),
            });
        }
        told
    }

    #[test]
    fn progress_comes_at_most_twenty_times_a_second_and_the_latest_wins() {
        let (mut backlog, began) = (Backlog::new(), Instant::now());
        let mut all = Vec::new();
        for step in 1..=1000_u32 {
            let now = began + Duration::from_millis(step.into());
            backlog.offer(progress(step.into()), now);
            all.extend(told(&mut backlog, now).into_iter().map(|value| (now, value)));
        }
        for (at, _) in &all {
            let within = all.iter().filter(|(other, _)| *other >= *at && *other < *at + Duration::from_secs(1));
            assert!(within.count() <= 20);
        }
        assert!(all.len() >= 15, "{all:?}");
        backlog.end();
        assert_eq!(told(&mut backlog, began + Duration::from_secs(1)), [json!(1000.0)]);
        assert_eq!(backlog.next(began), Next::End);
    }

    #[test]
    fn held_progress_comes_when_its_time_has_come() {
        let (mut backlog, now) = (Backlog::new(), Instant::now());
        (1..=6).for_each(|step| {
            backlog.offer(progress(f64::from(step)), now);
            if step < 5 {
                assert_eq!(told(&mut backlog, now).len(), 1);
            }
        });
        let Next::Wait(Some(then)) = backlog.next(now) else { panic!("not held") };
        assert_eq!(then, now + PROGRESS_INTERVAL);
        assert_eq!(told(&mut backlog, then), [json!(6.0)]);
        assert_eq!(backlog.next(then), Next::Wait(None));
    }

    #[test]
    fn a_log_never_overtakes_progress_nor_progress_a_log() {
        let (mut backlog, now) = (Backlog::new(), Instant::now());
        let mut expected = Vec::new();
        for step in 1..=20 {
            backlog.offer(progress(f64::from(step)), now);
            backlog.offer(log(LogLevel::Info, step), now);
            expected.extend([json!(f64::from(step)), json!(step)]);
        }
        assert_eq!(told(&mut backlog, now), expected);
    }

    #[test]
    fn logs_over_the_bound_are_counted_and_the_count_stands_where_they_stood() {
        let (mut backlog, began) = (Backlog::new(), Instant::now());
        for number in 0..250 {
            backlog.offer(log(if number == 200 { LogLevel::Error } else { LogLevel::Info }, number), began);
        }
        assert_eq!(told(&mut backlog, began).len(), 100);
        assert_eq!(backlog.next(began), Next::Wait(Some(began + LOG_WINDOW)));
        let later = began + LOG_WINDOW;
        backlog.offer(log(LogLevel::Info, "after"), later);
        let Next::Tell(RunEvent::Log { level, data, .. }) = backlog.next(later) else { panic!("no notice") };
        assert!(level == LogLevel::Error && data.as_str().unwrap().starts_with("150 log message(s) were left out"));
        assert_eq!(told(&mut backlog, later), [json!("after")]);
    }

    #[test]
    fn a_count_comes_by_itself_when_nothing_follows() {
        for ends in [false, true] {
            let (mut backlog, mut now) = (Backlog::new(), Instant::now());
            (0..101).for_each(|number| backlog.offer(log(LogLevel::Info, number), now));
            assert_eq!(told(&mut backlog, now).len(), 100);
            if ends {
                backlog.end();
            } else {
                now += LOG_WINDOW;
            }
            assert!(told(&mut backlog, now)[0].as_str().unwrap().starts_with("1 log message(s)"));
        }
    }

    #[test]
    fn what_waits_for_a_slow_client_is_bounded() {
        let (mut backlog, mut now) = (Backlog::new(), Instant::now());
        for step in 0..10_000 {
            now += Duration::from_millis(10);
            backlog.offer(progress(f64::from(step)), now);
            backlog.offer(log(LogLevel::Info, step), now);
        }
        assert!(backlog.waiting.len() <= 2 * LOGS_WAITING + 1);
        backlog.end();
        let all = told(&mut backlog, now);
        assert!(all.contains(&json!(9999.0)));
        assert!(all.last().unwrap().as_str().unwrap().starts_with("9744 log message(s)"), "{all:?}");
    }

    #[test]
    fn a_beat_is_progress_that_the_scripts_own_overtakes() {
        let (mut backlog, now) = (Backlog::new(), Instant::now());
        backlog.beat();
        backlog.offer(log(LogLevel::Info, "."), now);
        backlog.offer(progress(0.1), now);
        assert_eq!(told(&mut backlog, now), [json!(STEP), json!("."), json!(0.1)]);
    }

    #[test]
    fn progress_that_does_not_grow_is_no_news() {
        let (mut backlog, now) = (Backlog::new(), Instant::now());
        [1.0, 1.0, 0.5, f64::NAN, 2.0].into_iter().for_each(|value| {
            backlog.offer(progress(value), now);
            backlog.offer(log(LogLevel::Info, "."), now);
        });
        let numbers: Vec<Value> = told(&mut backlog, now).into_iter().filter(Value::is_number).collect();
        assert_eq!(numbers, [json!(1.0), json!(2.0)]);
    }
}
