//! The settings of what runs may reach.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::{ConfigError, List};
use crate::model::{HostPattern, NetworkEntry};

/// Ranges of addresses, the value of this setting.
pub(super) fn ranges(name: &'static str, given: Option<List>) -> Result<Vec<IpNet>, ConfigError> {
    let range = |text: &String| {
        let single = || text.parse::<IpAddr>().map(IpNet::from).ok();
        text.parse().ok().or_else(single).ok_or_else(|| ConfigError::Value {
            name,
            value: text.clone(),
            expected: "a range of addresses, such as 10.1.0.0/16 or fd00:1::/32, or one address".to_owned(),
        })
    };
    given.unwrap_or_default().0.iter().map(range).collect()
}

/// Names and their addresses.
pub(super) fn hosts(given: Option<List>) -> Result<BTreeMap<String, IpAddr>, ConfigError> {
    let host = |text: &String| {
        let (name, address) = text.split_once('=')?;
        match NetworkEntry::parse(name).ok()? {
            NetworkEntry { host: HostPattern::Name(name), port: None } => Some((name, address.trim().parse().ok()?)),
            _ => None,
        }
    };
    let wrong = |text: &String| ConfigError::Value {
        name: "network_hosts",
        value: text.clone(),
        expected: "a name and its address, such as db.internal=10.1.2.3".to_owned(),
    };
    given.unwrap_or_default().0.iter().map(|text| host(text).ok_or_else(|| wrong(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Option<List> {
        Some(List(entries.iter().map(|entry| (*entry).to_owned()).collect()))
    }

    #[test]
    fn ranges_and_names_are_read_and_others_are_told_what_would_be_right() {
        let found = ranges("network_private_allow", list(&["10.1.0.0/16", "192.168.1.5", "fd00::/8"])).unwrap();
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.1.0.0/16", "192.168.1.5/32", "fd00::/8"]
        );
        let names = hosts(list(&["DB.Internal=10.1.2.3"])).unwrap();
        assert_eq!(names.get("db.internal"), Some(&"10.1.2.3".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "inner", ""] {
            let error = ranges("network_private_allow", list(&[wrong])).unwrap_err().to_string();
            assert!(error.contains("10.1.0.0/16"), "{error}");
        }
        for wrong in ["a.example", "a.example=b", "10.0.0.1=10.0.0.2", "*.a.example=10.0.0.1", "a.example:1=10.0.0.1"] {
            let error = hosts(list(&[wrong])).unwrap_err().to_string();
            assert!(error.contains("db.internal=10.1.2.3"), "{error}");
        }
    }
}
