//! The network namespace of a run with a network: every address is its own, and what is granted is listened on.
//!
//! Only what needs init's rights happens here. The sockets go to the server, which accepts on them.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, sockopt};

use super::spec::{AtStep, Failure, Report, SandboxNetwork};
use super::sys;
use crate::runner::spawner::send_with_descriptors;

/// Where the stub resolver listens.
const STUB: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 53), 53);
/// How many connections wait to be accepted.
const BACKLOG: i32 = 128;
/// How many descriptors go in one message.
const AT_A_TIME: usize = 8;

/// Says in the root how names are found: those that are granted, and the stub resolver for all others.
pub(super) fn write_files(network: &SandboxNetwork, hosts: &str) -> Result<(), Failure> {
    fs::write("/etc/hosts", format!("{hosts}{}", network.hosts)).at("write /etc/hosts")?;
    let resolver = format!("nameserver {}\noptions timeout:2 attempts:2\n", STUB.ip());
    fs::write("/etc/resolv.conf", resolver).at("write /etc/resolv.conf")
}

/// Makes the sockets and hands them to the server.
pub(super) fn open(network: &SandboxNetwork, status: BorrowedFd<'_>) -> Result<(), Failure> {
    own_all_addresses(AddressFamily::INET).at("take all IPv4 addresses into the namespace")?;
    // A kernel without IPv6 has nothing to take.
    let _absent = own_all_addresses(AddressFamily::INET6);
    let mut sockets = vec![stub().at("open the stub resolver's socket")?, watcher().at("watch for attempts")?];
    for address in &network.listeners {
        sockets.push(listener(*address).at_path("listen on", &address.to_string())?);
    }
    for some in sockets.chunks(AT_A_TIME) {
        let some: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
        let report = Report::Network { sockets: some.len() };
        send_with_descriptors(status, &report.to_bytes(), &some).at("hand the sockets to the server")?;
    }
    Ok(())
}

fn socket(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, protocol)
}

fn stub() -> rustix::io::Result<OwnedFd> {
    let stub = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    rustix::net::bind(&stub, &STUB)?;
    Ok(stub)
}

fn listener(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let listener = socket(family, SocketType::STREAM, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&listener, true)?;
        sockopt::set_ipv6_freebind(&listener, true)?;
    }
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Sees the first packet of each attempt to connect, and UDP, on the namespace's one interface.
fn watcher() -> std::io::Result<OwnedFd> {
    // Protocol 0 receives nothing until the filter is there and it is bound.
    let watcher = socket(AddressFamily::PACKET, SocketType::DGRAM, None)?;
    sys::attach_attempt_filter(watcher.as_fd())?;
    sys::bind_to_all_packets(watcher.as_fd())?;
    Ok(watcher)
}

/// Routes every address to this namespace itself: connecting is answered at once, by a listener or by a refusal.
fn own_all_addresses(family: AddressFamily) -> std::io::Result<()> {
    const NEW_ROUTE: u16 = 24;
    // Request, acknowledge, replace, create.
    const FLAGS: u16 = 0x1 | 0x4 | 0x100 | 0x400;
    const LOCAL_TABLE: u8 = 255;
    const STATIC: u8 = 4;
    const HOST_SCOPE: u8 = 254;
    const LOCAL: u8 = 2;
    const OUT_INTERFACE: u16 = 4;
    const LOOPBACK: u32 = 1;
    let mut request: Vec<u8> = Vec::with_capacity(36);
    request.extend(36u32.to_ne_bytes());
    request.extend(NEW_ROUTE.to_ne_bytes());
    request.extend(FLAGS.to_ne_bytes());
    request.extend([0; 8]);
    let scope = if family == AddressFamily::INET { HOST_SCOPE } else { 0 };
    // Family, lengths of destination and source, service, table, origin, scope, kind, flags.
    request.extend([family.as_raw() as u8, 0, 0, 0, LOCAL_TABLE, STATIC, scope, LOCAL, 0, 0, 0, 0]);
    request.extend(8u16.to_ne_bytes());
    request.extend(OUT_INTERFACE.to_ne_bytes());
    request.extend(LOOPBACK.to_ne_bytes());
    // No protocol means routes.
    let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    rustix::net::send(&netlink, &request, rustix::net::SendFlags::empty())?;
    let mut answer = [0u8; 512];
    let (length, _) = rustix::net::recv(&netlink, &mut answer, rustix::net::RecvFlags::empty())?;
    let errno = answer[..length].get(16..20).and_then(|errno| errno.try_into().ok()).map(i32::from_ne_bytes);
    match errno {
        Some(0) => Ok(()),
        Some(errno) => Err(std::io::Error::from_raw_os_error(-errno)),
        None => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}
