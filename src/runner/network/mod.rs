//! The network of a run: what its grants let through, from listeners inside its namespace to the hosts they name.
//!
//! Nothing of the host's network is in the namespace. Its loopback interface has every address; what is granted is listened
//! on there, by sockets that the sandbox hands to the server, which alone connects to the outside.

mod address;
mod gateway;
mod names;
mod packets;
mod plan;
mod proxy;
mod record;
mod relay;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;

use super::sandbox::sys;
use crate::model::{NetworkUse, SandboxLevel};
pub use gateway::NetworkOptions;
use packets::Attempt;
pub(super) use plan::Plan;
use record::Record;
use relay::Relay;

/// How many packets of attempts are looked at: enough for a person, too few to keep the server busy.
const MOST_PACKETS: usize = 4096;
/// How many questions the stub resolver answers in one run.
const MOST_QUESTIONS: usize = 65_536;

/// What a run may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunNetwork {
    /// Nothing.
    #[default]
    None,
    /// What these approved entries name.
    Granted(Vec<String>),
    /// Nothing; what it tries is recorded.
    Learn,
}

/// What is to be said of a run that was granted a network which its sandbox doesn't have.
pub(super) fn notice(network: &RunNetwork, level: SandboxLevel) -> Option<NetworkUse> {
    let granted = matches!(network, RunNetwork::Granted(_)) && level == SandboxLevel::Landlock;
    let text = "the sandbox `landlock` lets no connection out, also none that was granted; network needs `full`";
    granted.then(|| NetworkUse { notice: Some(text.to_owned()), ..NetworkUse::default() })
}

/// Serves the network of one run. Dropped, it cuts all connections.
#[derive(Debug)]
pub(super) struct Serving {
    relay: Relay,
    tasks: JoinSet<()>,
    packets: Option<Arc<AsyncFd<OwnedFd>>>,
    /// How many descriptors have come.
    arrived: usize,
}

impl Serving {
    pub(super) fn new(plan: Plan, options: Arc<NetworkOptions>) -> Self {
        let relay = Relay::new(Arc::new(Record::new(plan)), options);
        Self { relay, tasks: JoinSet::new(), packets: None, arrived: 0 }
    }

    /// Takes sockets of the namespace, in the order in which [`SandboxNetwork`](super::sandbox::spec::SandboxNetwork) says
    /// that they come.
    pub(super) fn adopt(&mut self, descriptors: Vec<OwnedFd>, sent: usize) -> io::Result<()> {
        if descriptors.len() != sent {
            return Err(io::Error::other("sockets got lost; this process may have too many files open"));
        }
        for descriptor in descriptors {
            let place = self.arrived;
            self.arrived += 1;
            rustix::io::ioctl_fionbio(&descriptor, true)?;
            let record = Arc::clone(&self.relay.record);
            match place {
                0 => {
                    let socket = UdpSocket::from_std(descriptor.into())?;
                    self.tasks.spawn(answer_questions(socket, record));
                }
                1 => {
                    let packets = Arc::new(sys::watch(descriptor)?);
                    self.packets = Some(Arc::clone(&packets));
                    self.tasks.spawn(watch_attempts(packets, record));
                }
                _ => {
                    let listener = TcpListener::from_std(descriptor.into())?;
                    // What it is for is told by where it listens, never by when it came.
                    let here = listener.local_addr()?;
                    let Some((_, role)) = record.plan.listeners.iter().find(|(place, _)| *place == here) else {
                        return Err(io::Error::other(format!("nothing was to listen on {here}")));
                    };
                    self.tasks.spawn(self.relay.clone().listen(listener, role.clone()));
                }
            }
        }
        Ok(())
    }

    /// What the run did, now that its processes are dead.
    pub(super) fn end(mut self) -> NetworkUse {
        self.tasks.abort_all();
        if let Some(packets) = &self.packets {
            for _ in 0..MOST_PACKETS {
                match read_packet(packets.get_ref()) {
                    Ok(attempt) => note(&self.relay.record, attempt),
                    Err(_) => break,
                }
            }
        }
        self.relay.record.end()
    }
}

/// The stub resolver: names lead to the addresses that stand for them in the namespace.
async fn answer_questions(socket: UdpSocket, record: Arc<Record>) {
    let mut buffer = [0u8; 1500];
    for _ in 0..MOST_QUESTIONS {
        let Ok((length, asker)) = socket.recv_from(&mut buffer).await else { return };
        let Some(question) = names::Question::read(&buffer[..length]) else { continue };
        let address = if question.is_for_address() { record.address_of(&question.name) } else { None };
        // Who no longer waits for it doesn't miss it.
        let _gone = socket.send_to(&question.answer(address), asker).await;
    }
}

async fn watch_attempts(packets: Arc<AsyncFd<OwnedFd>>, record: Arc<Record>) {
    for _ in 0..MOST_PACKETS {
        match packets.async_io(tokio::io::Interest::READABLE, read_packet).await {
            Ok(attempt) => note(&record, attempt),
            Err(_) => return,
        }
    }
}

fn note(record: &Record, attempt: Option<Attempt>) {
    if let Some(attempt) = attempt {
        record.attempt(attempt);
    }
}

fn read_packet(socket: &OwnedFd) -> io::Result<Option<Attempt>> {
    let mut buffer = [0u8; 128];
    let length = rustix::io::read(socket, &mut buffer)?;
    Ok(Attempt::read(&buffer[..length]))
}
