//! How runs went, at a glance: counts and times over a spell of time, and of each tool.

use std::collections::HashMap;

use super::DeskError;
use crate::model::{Caller, PrincipalId, Timestamp};
use crate::store::{CountFilter, RunFilter, RunSummary, SlotWidth};
use crate::tools::Tools;

/// A spell of time that ends now, cut into bars of equal width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spell {
    /// 12 bars of 5 minutes.
    Hour,
    /// 48 bars of half an hour.
    Day,
    /// 56 bars of 3 hours.
    Week,
    /// 60 bars of 12 hours.
    Month,
}

/// What a number of runs have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glance {
    /// When it begins.
    pub at: Timestamp,
    /// How many ended.
    pub calls: i64,
    /// How many of them were errors.
    pub failures: i64,
    /// How many took about as long, by the least time of each kind.
    took: Vec<(i64, i64)>,
}

impl Spell {
    /// Every spell.
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    /// How many bars there are, and how wide each is in milliseconds.
    pub fn bars(self) -> (usize, i64) {
        match self {
            Self::Hour => (12, 300_000),
            Self::Day => (48, 1_800_000),
            Self::Week => (56, 10_800_000),
            Self::Month => (60, 43_200_000),
        }
    }

    fn width(self) -> SlotWidth {
        match self {
            Self::Hour => SlotWidth::Minutes,
            Self::Day => SlotWidth::HalfHours,
            Self::Week | Self::Month => SlotWidth::Hours,
        }
    }

    /// When it began, at the edge of a bar; the last bar holds `now`.
    pub fn start(self, now: Timestamp) -> Timestamp {
        let (count, wide) = self.bars();
        let last = now.0 - now.0.rem_euclid(wide);
        Timestamp(last - wide * (i64::try_from(count).unwrap_or(i64::MAX) - 1))
    }
}

impl Glance {
    fn add(&mut self, from_ms: i64, calls: i64, failures: i64) {
        self.calls += calls;
        self.failures += failures;
        match self.took.binary_search_by_key(&from_ms, |(from, _)| *from) {
            Ok(at) => self.took[at].1 += calls,
            Err(at) => self.took.insert(at, (from_ms, calls)),
        }
    }

    /// All of them in one.
    pub fn sum(parts: &[Self]) -> Self {
        let mut sum = Self { at: parts.first().map_or(Timestamp(0), |part| part.at), ..Self::default() };
        for part in parts {
            for (from, count) in &part.took {
                sum.add(*from, *count, 0);
            }
            sum.failures += part.failures;
        }
        sum
    }

    /// The time within which this share of the runs had ended, in milliseconds, right within a tenth; `None` without runs.
    pub fn within(&self, share: f64) -> Option<f64> {
        let total: i64 = self.took.iter().map(|(_, count)| count).sum();
        let wanted = share * total as f64;
        let mut before = 0.0;
        for (from, count) in &self.took {
            let count = *count as f64;
            if before + count >= wanted && count > 0.0 {
                let low = *from as f64;
                let wide = if *from < 4 { 1.0 } else { 2_f64.powf(low.log2().floor()) / 4.0 };
                return Some(low + wide * ((wanted - before) / count).clamp(0.0, 1.0));
            }
            before += count;
        }
        None
    }

    /// The share of errors, between 0 and 1.
    pub fn failing(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.failures as f64 / self.calls as f64 }
    }
}

impl Tools {
    /// How the runs that this caller may see went over a spell, bar by bar.
    ///
    /// # Errors
    /// [`DeskError::Broken`].
    pub async fn glance(
        &self,
        caller: &Caller,
        (spell, principal): (Spell, Option<PrincipalId>),
        tool: Option<&str>,
    ) -> Result<Vec<Glance>, DeskError> {
        let (count, wide) = spell.bars();
        let start = spell.start(self.clock.now());
        let filter = CountFilter {
            principal: caller.sees_only().cloned().or(principal),
            tool_name: tool.map(str::to_owned),
            since: start,
            width: spell.width(),
        };
        let at = |index: usize| Timestamp(start.0 + wide * i64::try_from(index).unwrap_or(0));
        let mut bars: Vec<Glance> = (0..count).map(|index| Glance { at: at(index), ..Glance::default() }).collect();
        for counted in self.store.count_runs(&filter).await? {
            let index = usize::try_from((counted.at.0 - start.0).div_euclid(wide)).ok();
            if let Some(bar) = index.and_then(|index| bars.get_mut(index)) {
                bar.add(counted.from_ms, counted.calls, counted.failures);
            }
        }
        Ok(bars)
    }

    /// How the runs of each tool went over a spell, by the tool's name.
    ///
    /// # Errors
    /// [`DeskError::Broken`].
    pub async fn glance_at_tools(&self, caller: &Caller, spell: Spell) -> Result<HashMap<String, Glance>, DeskError> {
        let since = spell.start(self.clock.now());
        let principal = caller.sees_only().cloned();
        let filter = CountFilter { principal, tool_name: None, since, width: spell.width() };
        let mut tools: HashMap<String, Glance> = HashMap::new();
        for counted in self.store.count_runs_by_tool(&filter).await? {
            tools.entry(counted.tool_name).or_default().add(counted.from_ms, counted.calls, counted.failures);
        }
        Ok(tools)
    }

    /// The last runs of a tool that this caller may see, newest first.
    ///
    /// # Errors
    /// [`DeskError::Broken`].
    pub async fn last_runs(&self, caller: &Caller, tool: &str, count: u32) -> Result<Vec<RunSummary>, DeskError> {
        let (principal, toolset) = (caller.sees_only().cloned(), caller.toolset.clone());
        let filter = RunFilter { principal, toolset, tool_name: Some(tool.to_owned()), ..RunFilter::default() };
        Ok(self.store.list_runs(&filter, count).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_from_counts_within_a_tenth() {
        let mut glance = Glance::default();
        assert_eq!((glance.within(0.5), glance.failing()), (None, 0.0));
        for (from, calls) in [(96, 90), (1024, 9), (1, 1)] {
            glance.add(from, calls, 1);
        }
        let half = glance.within(0.5).unwrap();
        assert!((96.0..112.0).contains(&half), "{half}");
        let most = glance.within(0.95).unwrap();
        assert!((1024.0..1280.0).contains(&most), "{most}");
        assert_eq!((glance.calls, glance.failures), (100, 3));
        assert_eq!(Glance::sum(&[glance.clone(), glance.clone()]).calls, 200);
    }

    #[test]
    fn the_last_bar_of_a_spell_holds_now() {
        let now = Timestamp(1_800_000_000_123);
        for spell in Spell::ALL {
            let (count, wide) = spell.bars();
            let end = spell.start(now).0 + wide * i64::try_from(count).unwrap();
            assert!(end > now.0 && end - wide <= now.0, "{spell:?}");
        }
    }
}
