//! Compiles rules for system calls into a seccomp program: a binary search over ranges of numbers. The kernel runs the
//! filter once per number when it is attached, so a linear chain of 350 rules would cost about a millisecond there.

use std::collections::BTreeMap;

use libc::sock_filter;

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is made.
    Allow,
    /// It fails with this error number.
    Fail(i32),
    /// It is made when `argument` (its lower half) passes one of the tests, else it fails with `otherwise`.
    Check {
        /// Which argument, from 0.
        argument: u8,
        /// What it may be.
        accept: Vec<Accept>,
        /// The error number otherwise.
        otherwise: i32,
    },
}

/// A value that a checked argument may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    /// Exactly this.
    Equal(u32),
    /// Exactly this, when another argument is that value too.
    EqualWith(u32, u8, u32),
    /// None of these bits.
    NoneOf(u32),
    /// Anything but these two.
    NeitherOf(u32, u32),
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;

/// The offset of the number and of the architecture in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
#[cfg(target_arch = "x86_64")]
const THIS_ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const THIS_ARCHITECTURE: u32 = 0xC000_00B7;
/// Above every number in use; x32's numbers are far above it and so fall under the default.
const NUMBERS: u32 = 600;

fn statement(code: u16, value: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k: value }
}

fn branch(code: u16, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code, jt: if_true, jf: if_false, k: value }
}

/// The lower half of an argument (both architectures are little-endian).
fn argument(index: u8) -> u32 {
    16 + 8 * u32::from(index)
}

fn fail(errno: i32) -> sock_filter {
    statement(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32)
}

/// Compiles the rules; what has none fails with `ENOSYS`, a foreign architecture is killed.
pub(super) fn compile(rules: &BTreeMap<u32, Rule>) -> Vec<sock_filter> {
    let default = Rule::Fail(libc::ENOSYS);
    let mut ranges: Vec<(u32, &Rule)> = Vec::new();
    for number in 0..=NUMBERS {
        let rule = rules.get(&number).unwrap_or(&default);
        if ranges.last().is_none_or(|(_, last)| *last != rule) {
            ranges.push((number, rule));
        }
    }
    let mut program = vec![
        statement(LOAD, ARCHITECTURE),
        branch(IF_EQUAL, THIS_ARCHITECTURE, 1, 0),
        statement(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        statement(LOAD, NUMBER),
    ];
    program.extend(search(&ranges));
    program
}

fn search(ranges: &[(u32, &Rule)]) -> Vec<sock_filter> {
    if let [(_, rule)] = ranges {
        return leaf(rule);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (first_high, low, high) = (high[0].0, search(low), search(high));
    let mut program = match u8::try_from(low.len()) {
        Ok(distance) => vec![branch(IF_AT_LEAST, first_high, distance, 0)],
        // Too far for a conditional jump: over an unconditional one.
        Err(_) => vec![branch(IF_AT_LEAST, first_high, 0, 1), statement(JUMP, low.len() as u32)],
    };
    program.extend(low);
    program.extend(high);
    program
}

fn leaf(rule: &Rule) -> Vec<sock_filter> {
    let allow = statement(RETURN, libc::SECCOMP_RET_ALLOW);
    match rule {
        Rule::Allow => vec![allow],
        Rule::Fail(errno) => vec![fail(*errno)],
        Rule::Check { argument: index, accept, otherwise } => {
            let mut program = Vec::new();
            for test in accept {
                program.push(statement(LOAD, argument(*index)));
                match *test {
                    Accept::Equal(value) => program.push(branch(IF_EQUAL, value, 0, 1)),
                    Accept::EqualWith(value, other, other_value) => program.extend([
                        branch(IF_EQUAL, value, 0, 3),
                        statement(LOAD, argument(other)),
                        branch(IF_EQUAL, other_value, 0, 1),
                    ]),
                    Accept::NoneOf(bits) => program.push(branch(IF_ANY_BIT, bits, 1, 0)),
                    Accept::NeitherOf(one, two) => {
                        program.extend([branch(IF_EQUAL, one, 2, 0), branch(IF_EQUAL, two, 1, 0)]);
                    }
                }
                program.push(allow);
            }
            program.push(fail(*otherwise));
            program
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would.
    fn run(program: &[sock_filter], number: u32, arguments: [u32; 6]) -> u32 {
        let (mut at, mut accumulator) = (0usize, 0u32);
        loop {
            let step = program[at];
            at += 1;
            let jump = |condition: bool| usize::from(if condition { step.jt } else { step.jf });
            match step.code {
                LOAD => {
                    accumulator = match step.k {
                        NUMBER => number,
                        ARCHITECTURE => THIS_ARCHITECTURE,
                        offset => arguments[(offset as usize - 16) / 8],
                    }
                }
                RETURN => return step.k,
                JUMP => at += step.k as usize,
                IF_EQUAL => at += jump(accumulator == step.k),
                IF_AT_LEAST => at += jump(accumulator >= step.k),
                IF_ANY_BIT => at += jump(accumulator & step.k != 0),
                code => panic!("unknown instruction {code}"),
            }
        }
    }

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const fn failed(errno: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | errno as u32
    }

    #[test]
    fn every_number_gets_its_rule() {
        let rules: BTreeMap<u32, Rule> = (0..500)
            .filter(|number| number % 3 != 0)
            .map(|number| (number, if number % 2 == 0 { Rule::Allow } else { Rule::Fail(libc::EPERM) }))
            .collect();
        let program = compile(&rules);
        for number in 0..700 {
            let expected = match rules.get(&number) {
                Some(Rule::Allow) => ALLOWED,
                Some(_) => failed(libc::EPERM),
                None => failed(libc::ENOSYS),
            };
            assert_eq!(run(&program, number, [0; 6]), expected, "{number}");
        }
        assert_eq!(run(&program, 0x4000_0001, [0; 6]), failed(libc::ENOSYS));
    }

    #[test]
    fn arguments_are_checked() {
        let check = |accept: Vec<Accept>| Rule::Check { argument: 0, accept, otherwise: libc::EPERM };
        let rules = BTreeMap::from([
            (1, check(vec![Accept::Equal(5), Accept::EqualWith(16, 2, 0)])),
            (2, check(vec![Accept::NoneOf(0b110)])),
            (3, check(vec![Accept::NeitherOf(7, 8)])),
        ]);
        let program = compile(&rules);
        let cases = [
            (1, [5, 0, 9, 0, 0, 0], ALLOWED),
            (1, [16, 0, 0, 0, 0, 0], ALLOWED),
            (1, [16, 0, 9, 0, 0, 0], failed(libc::EPERM)),
            (1, [6, 0, 0, 0, 0, 0], failed(libc::EPERM)),
            (2, [0b1001, 0, 0, 0, 0, 0], ALLOWED),
            (2, [0b0010, 0, 0, 0, 0, 0], failed(libc::EPERM)),
            (3, [7, 0, 0, 0, 0, 0], failed(libc::EPERM)),
            (3, [8, 0, 0, 0, 0, 0], failed(libc::EPERM)),
            (3, [9, 0, 0, 0, 0, 0], ALLOWED),
        ];
        for (number, arguments, expected) in cases {
            assert_eq!(run(&program, number, arguments), expected, "{number} {arguments:?}");
        }
    }
}
