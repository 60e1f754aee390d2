//! The stub resolver's wire format: a question in, an answer out. Names lead to addresses of the namespace alone.

use std::net::Ipv4Addr;

const HEADER: usize = 12;
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
/// The name in the answer is the one at offset 12: the question's.
const POINTER: [u8; 2] = [0xc0, 0x0c];

/// A question as it was asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question<'a> {
    /// The name in lower case, without the last dot.
    pub(super) name: String,
    kind: u16,
    /// Header and question.
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    /// Reads a query. None where it is no question that this resolver could answer.
    pub(super) fn read(query: &'a [u8]) -> Option<Self> {
        let header = query.get(..HEADER)?;
        let is_query = header[2] & 0xf8 == 0;
        let questions = u16::from_be_bytes([header[4], header[5]]);
        if !is_query || questions != 1 {
            return None;
        }
        let mut labels: Vec<String> = Vec::new();
        let mut at = HEADER;
        loop {
            let length = usize::from(*query.get(at)?);
            at += 1;
            match length {
                0 => break,
                1..=63 => labels.push(std::str::from_utf8(query.get(at..at + length)?).ok()?.to_ascii_lowercase()),
                _ => return None,
            }
            at += length;
        }
        let tail = query.get(at..at + 4)?;
        let (kind, class) = (u16::from_be_bytes([tail[0], tail[1]]), u16::from_be_bytes([tail[2], tail[3]]));
        let name = labels.join(".");
        let plain = name.bytes().all(|byte| byte.is_ascii_graphic()) && name.len() <= 253 && !name.is_empty();
        (class == CLASS_IN && plain).then(|| Self { name, kind, bytes: &query[..at + 4] })
    }

    /// Whether it asks for the address of a host.
    pub(super) fn is_for_address(&self) -> bool {
        matches!(self.kind, TYPE_A | TYPE_AAAA)
    }

    /// The answer: that address where IPv4 was asked for, nothing of any other kind. `None`: there is no such name.
    pub(super) fn answer(&self, address: Option<Ipv4Addr>) -> Vec<u8> {
        let with_record = address.filter(|_| self.kind == TYPE_A);
        let mut answer = self.bytes.to_vec();
        // An answer to this query, recursion available.
        answer[2] = 0x80 | (answer[2] & 0x01);
        answer[3] = 0x80 | if address.is_none() { 3 } else { 0 };
        answer[6..HEADER].copy_from_slice(&[0, u8::from(with_record.is_some()), 0, 0, 0, 0]);
        if let Some(address) = with_record {
            answer.extend(POINTER);
            answer.extend(TYPE_A.to_be_bytes());
            answer.extend(CLASS_IN.to_be_bytes());
            answer.extend(60u32.to_be_bytes());
            answer.extend(4u16.to_be_bytes());
            answer.extend(address.octets());
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut query = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        for label in name.split('.') {
            query.push(label.len() as u8);
            query.extend(label.bytes());
        }
        query.push(0);
        query.extend(kind.to_be_bytes());
        query.extend(CLASS_IN.to_be_bytes());
        // An EDNS record, as many resolvers send one.
        query.extend([0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0]);
        query
    }

    #[test]
    fn an_address_is_answered_under_the_asked_name() {
        let query = query("API.example.org", TYPE_A);
        let question = Question::read(&query).unwrap();
        assert_eq!(question.name, "api.example.org");
        let answer = question.answer(Some(Ipv4Addr::new(127, 77, 0, 1)));
        assert_eq!(answer[..12], [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert!(answer.ends_with(&[0, 4, 127, 77, 0, 1]));
        assert_eq!(question.answer(None)[3] & 0x0f, 3);
    }

    #[test]
    fn other_kinds_of_an_existing_name_are_empty() {
        let query = query("a.example", TYPE_AAAA);
        let question = Question::read(&query).unwrap();
        let answer = question.answer(Some(Ipv4Addr::LOCALHOST));
        assert_eq!((answer[3] & 0x0f, answer[7], answer.len()), (0, 0, question.bytes.len()));
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        let whole = query("a.example", TYPE_A);
        for cut in 0..whole.len() - 11 {
            assert_eq!(Question::read(&whole[..cut]), None, "{cut}");
        }
        let mut reply = whole.clone();
        reply[2] |= 0x80;
        assert_eq!(Question::read(&reply), None);
        let mut pointer = whole;
        pointer[HEADER] = 0xc0;
        assert_eq!(Question::read(&pointer), None);
    }
}
