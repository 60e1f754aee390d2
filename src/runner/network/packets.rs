//! What a run tried beyond its grants: the first packet of each attempt, as it passes the loopback interface of the namespace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Where a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) udp: bool,
}

impl Attempt {
    /// Reads an IP packet, from the network header on.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let (address, protocol, transport): (IpAddr, u8, usize) = match packet.first()? >> 4 {
            4 => {
                let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
                (Ipv4Addr::from(address).into(), packet[9], usize::from(packet[0] & 0x0f) * 4)
            }
            6 => {
                let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
                (Ipv6Addr::from(address).into(), packet[6], 40)
            }
            _ => return None,
        };
        let port: [u8; 2] = packet.get(transport + 2..transport + 4)?.try_into().ok()?;
        let udp = match protocol {
            TCP => false,
            UDP => true,
            _ => return None,
        };
        Some(Self { address, port: u16::from_be_bytes(port), udp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_fragments_of_packets_are_not() {
        let mut packet = vec![0u8; 40];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        packet[22..24].copy_from_slice(&443u16.to_be_bytes());
        let attempt = Attempt { address: [192, 0, 2, 1].into(), port: 443, udp: false };
        assert_eq!(Attempt::read(&packet), Some(attempt));
        assert_eq!(Attempt::read(&packet[..23]), None);
        packet[0] = 0x60;
        packet[6] = UDP;
        packet.extend([0, 53, 0, 0]);
        packet[42..44].copy_from_slice(&53u16.to_be_bytes());
        assert_eq!(Attempt::read(&packet).map(|attempt| (attempt.port, attempt.udp)), Some((53, true)));
        assert_eq!(Attempt::read(&[]), None);
    }
}
