//! TEMPORARY until the environment branch lands.
#![allow(missing_docs)]
use crate::model::EnvironmentLock;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
#[derive(Debug, Clone)]
pub struct EnvironmentOptions {
    pub root: PathBuf,
    pub uv: Option<PathBuf>,
    pub search_path: OsString,
    pub index: Option<String>,
    pub allow: Vec<String>,
    pub min_age_days: Option<u32>,
    pub offline: bool,
    pub max_bytes_each: u64,
    pub max_bytes_all: u64,
    pub build_timeout: Duration,
    pub builders: usize,
}
#[derive(Debug, Clone)]
pub struct Environments;
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EnvironmentError(String);
#[derive(Debug, Clone)]
pub struct Requirement;
pub enum EnvironmentState {
    Ready,
    Building,
    Missing,
    Failed(String),
}
impl Environments {
    pub fn new(_: EnvironmentOptions, _: &super::Runner) -> Result<Self, EnvironmentError> {
        Ok(Self)
    }
    pub fn available(&self) -> bool {
        false
    }
    pub async fn lock(&self, _: &[Requirement], _: Option<&str>) -> Result<EnvironmentLock, EnvironmentError> {
        Err(EnvironmentError("no".into()))
    }
    pub async fn ready(&self, _: &EnvironmentLock) -> Result<PathBuf, EnvironmentError> {
        Err(EnvironmentError("no".into()))
    }
    pub fn state(&self, _: &EnvironmentLock) -> EnvironmentState {
        EnvironmentState::Missing
    }
}
pub fn parse_requirements(list: &[String]) -> Result<Vec<Requirement>, EnvironmentError> {
    if list.is_empty() { Ok(vec![]) } else { Err(EnvironmentError("not yet".into())) }
}
pub fn check_requires_python(_: &str, _: &str) -> Result<bool, EnvironmentError> {
    Ok(true)
}
