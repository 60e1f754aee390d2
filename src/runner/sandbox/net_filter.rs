//! The socket filter that sees what a run tries to reach: a small program for the kernel.

use libc::sock_filter;

const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE_INDEXED: u16 = 0x50;
/// The length of an IPv4 header into the index.
const LOAD_HEADER_LENGTH: u16 = 0xb1;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// Where the kernel shows what kind of packet it is.
const PACKET_TYPE: u32 = 0xffff_f000 + 4;
/// How much of a packet is shown: both headers.
const SHOWN: u32 = 128;

/// What arrives (not what leaves: on loopback each packet does both): SYN without ACK, and all UDP.
pub(super) fn attempts() -> Vec<sock_filter> {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let load = |code, k| step(code, 0, 0, k);
    vec![
        load(LOAD_WORD, PACKET_TYPE),
        step(JUMP_EQUAL, 0, 18, 0), // to us, else drop
        load(LOAD_BYTE, 0),
        load(AND, 0xf0),
        step(JUMP_EQUAL, 0, 7, 0x40), // IPv4, else IPv6
        load(LOAD_BYTE, 9),
        step(JUMP_EQUAL, 12, 0, 17), // UDP: accept
        step(JUMP_EQUAL, 0, 12, 6),  // TCP, else drop
        load(LOAD_HEADER_LENGTH, 0),
        load(LOAD_BYTE_INDEXED, 13),
        load(AND, 0x12),
        step(JUMP_EQUAL, 7, 8, 0x02), // SYN alone: accept, else drop
        step(JUMP_EQUAL, 0, 7, 0x60), // IPv6, else drop
        load(LOAD_BYTE, 6),
        step(JUMP_EQUAL, 4, 0, 17), // UDP: accept
        step(JUMP_EQUAL, 0, 4, 6),  // TCP, else drop
        load(LOAD_BYTE, 40 + 13),
        load(AND, 0x12),
        step(JUMP_EQUAL, 0, 1, 0x02), // SYN alone: accept, else drop
        load(RETURN, SHOWN),
        load(RETURN, 0),
    ]
}
