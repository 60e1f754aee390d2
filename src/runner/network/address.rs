//! Which addresses are the public internet's. All others are somebody's inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Azure answers questions of its machines at this address, which looks like a public one.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// What kind of inside an address is; `None` for global unicast.
pub(super) fn inside(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => inside_v4(address),
        IpAddr::V6(address) => inside_v6(address),
    }
}

fn inside_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "an address of no host",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "a private address",
        (127, ..) => "a loopback address",
        (169, 254, _) => "a link-local address, where clouds keep their metadata",
        (100, 64..=127, _) => "an address of a carrier's inner network",
        (192, 0, 0) => "an address set aside for protocols",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "an address set aside for examples",
        (192, 88, 99) => "a 6to4 address",
        (198, 18..=19, _) => "an address set aside for benchmarks",
        (224..=239, ..) => "a multicast address",
        (240.., ..) => "a reserved address",
        _ if address == WIRE_SERVER => "an address where a cloud keeps its metadata",
        _ => return None,
    })
}

fn inside_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [a, b, c, ..] = address.segments();
    Some(match (a, b, c) {
        _ if address.is_unspecified() => "an address of no host",
        _ if address.is_loopback() => "a loopback address",
        (0, 0, 0) => "an IPv4 address in another guise",
        (0x64, 0xff9b, _) => "a NAT64 address",
        (0xfc00..=0xfdff, ..) => "a private address",
        (0xfe80..=0xfebf, ..) => "a link-local address",
        (0xff00.., ..) => "a multicast address",
        (0x2001, 0..=0x1ff, _) => "an address set aside for protocols",
        (0x2001, 0xdb8, _) | (0x3fff, 0..=0xfff, _) => "an address set aside for examples",
        (0x2002, ..) => "a 6to4 address",
        (0x2000..=0x3fff, ..) => return None,
        _ => "a reserved address",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_global_unicast_is_outside() {
        for outside in
            ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2001:4860::8888"]
        {
            assert_eq!(inside(outside.parse().unwrap()), None, "{outside}");
        }
        for (address, word) in [
            ("0.0.0.0", "no host"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "metadata"),
            ("168.63.129.16", "metadata"),
            ("100.64.0.1", "carrier"),
            ("100.100.100.200", "carrier"),
            ("192.0.0.192", "protocols"),
            ("192.88.99.1", "6to4"),
            ("198.18.0.1", "benchmarks"),
            ("203.0.113.7", "examples"),
            ("224.0.0.1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("::", "no host"),
            ("::1", "loopback"),
            ("::ffff:8.8.8.8", "guise"),
            ("::8.8.8.8", "guise"),
            ("64:ff9b::a00:1", "NAT64"),
            ("64:ff9b:1::1", "NAT64"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("fec0::1", "reserved"),
            ("ff02::1", "multicast"),
            ("2001::1", "protocols"),
            ("2001:db8::1", "examples"),
            ("2002:a00:1::", "6to4"),
            ("4000::1", "reserved"),
        ] {
            let kind = inside(address.parse().unwrap());
            assert!(kind.is_some_and(|kind| kind.contains(word)), "{address}: {kind:?}");
        }
    }
}
