//! The chain of the audit log. Each entry carries a MAC, made with a key of the server's, over the MAC before it and over
//! everything that it says; the head (number and MAC of the last entry) is sealed with the same key.
//!
//! Whoever can write the file but has no key can therefore change, remove, add or move nothing, nor cut off the end,
//! without `verify_audit` finding it. An older copy of the whole file can't be told from inside: a person compares the
//! head with one that they noted.
//!
//! What is wrong stays wrong: an entry after such a hand continues from the sealed head, or, where that is gone, from a
//! value that says so, and never from what the file pretends.

use sqlx::SqliteConnection;
use subtle::ConstantTimeEq as _;

use super::audit::{AuditColumns, AuditEntry, insert};
use super::open::CHAIN_PENDING;
use super::{Store, StoreError};
use crate::clock::Clock;

/// A keyed BLAKE3.
pub(super) type Mac = [u8; 32];

/// What the first entry follows.
pub(super) const BEGINNING: Mac = [0; 32];
/// What an entry follows that found no head.
pub(super) const NO_HEAD: Mac = [0xff; 32];

/// The key of the chain. It shows nothing of itself.
#[derive(Clone)]
pub(super) struct AuditKey([u8; 32]);

impl std::fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// Which of the two seals.
#[derive(Clone, Copy, Debug)]
pub(super) enum SealName {
    /// Where the chain ends.
    Head,
    /// Up to where it was pruned.
    Checkpoint,
}

impl SealName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// A sealed place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of an entry.
    pub(super) number: i64,
    /// When this was sealed.
    pub(super) at: i64,
    /// The entry's MAC.
    pub(super) mac: Mac,
}

/// What is found where a seal should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    /// Nothing.
    Missing,
    /// Something that this server did not seal, with this number.
    Broken(i64),
    /// A place.
    At(Place),
}

impl Sealed {
    pub(super) fn place(self) -> Option<Place> {
        match self {
            Self::At(place) => Some(place),
            Self::Missing | Self::Broken(_) => None,
        }
    }

    fn number(self) -> i64 {
        match self {
            Self::Missing => 0,
            Self::Broken(number) | Self::At(Place { number, .. }) => number,
        }
    }
}

impl AuditKey {
    /// The MAC of an entry after the entry with that MAC.
    pub(super) fn entry(&self, previous: &Mac, row: &AuditColumns) -> Mac {
        let mut mac = blake3::Hasher::new_keyed(&self.0);
        mac.update(b"entry").update(previous).update(&row.number.to_be_bytes()).update(&row.at.to_be_bytes());
        for field in [
            Some(&row.id),
            row.principal.as_ref(),
            row.token.as_ref(),
            row.source.as_ref(),
            Some(&row.action),
            Some(&row.subject),
            Some(&row.detail),
            row.before.as_ref(),
            row.fingerprint.as_ref(),
            Some(&row.outcome),
        ] {
            // Each with its length, and what is absent unlike what is empty, so that no two entries are the same bytes.
            match field {
                None => mac.update(&u64::MAX.to_be_bytes()),
                Some(text) => mac.update(&(text.len() as u64).to_be_bytes()).update(text.as_bytes()),
            };
        }
        mac.finalize().into()
    }

    fn seal(&self, name: SealName, place: &Place) -> Mac {
        let mut mac = blake3::Hasher::new_keyed(&self.0);
        mac.update(b"seal").update(name.as_str().as_bytes()).update(&place.number.to_be_bytes());
        mac.update(&place.at.to_be_bytes()).update(&place.mac);
        mac.finalize().into()
    }
}

/// Whether a stored MAC is this one; in a time that doesn't tell where they differ.
pub(super) fn same(stored: &[u8], mac: &Mac) -> bool {
    stored.ct_eq(mac).into()
}

/// Reads a seal and checks it.
pub(super) async fn read_seal(
    connection: &mut SqliteConnection,
    key: &AuditKey,
    name: SealName,
) -> Result<Sealed, StoreError> {
    let text = name.as_str();
    let row = sqlx::query!("SELECT number, at, mac, seal FROM audit_seals WHERE name = $1", text)
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(Sealed::Missing) };
    let Ok(mac) = Mac::try_from(row.mac) else { return Ok(Sealed::Broken(row.number)) };
    let place = Place { number: row.number, at: row.at, mac };
    Ok(if same(&row.seal, &key.seal(name, &place)) { Sealed::At(place) } else { Sealed::Broken(place.number) })
}

/// Moves a seal to this place.
pub(super) async fn write_seal(
    connection: &mut SqliteConnection,
    key: &AuditKey,
    name: SealName,
    place: &Place,
) -> Result<(), StoreError> {
    let (text, seal) = (name.as_str(), key.seal(name, place));
    let (mac, seal) = (place.mac.as_slice(), seal.as_slice());
    let moved = sqlx::query!(
        "UPDATE audit_seals SET number = $2, at = $3, mac = $4, seal = $5 WHERE name = $1",
        text,
        place.number,
        place.at,
        mac,
        seal
    )
    .execute(&mut *connection)
    .await?;
    if moved.rows_affected() == 0 {
        sqlx::query!(
            "INSERT INTO audit_seals (name, number, at, mac, seal) VALUES ($1, $2, $3, $4, $5)",
            text,
            place.number,
            place.at,
            mac,
            seal
        )
        .execute(connection)
        .await?;
    }
    Ok(())
}

/// Adds an entry at the end, within a writing transaction: other processes wait for it.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    key: &AuditKey,
    mut row: AuditColumns,
) -> Result<AuditColumns, StoreError> {
    let last =
        sqlx::query_scalar!(r#"SELECT max(number) AS "last: i64" FROM audit"#).fetch_one(&mut *connection).await?;
    let last = last.unwrap_or(0);
    let head = read_seal(connection, key, SealName::Head).await?;
    let previous = head.place().map_or(NO_HEAD, |head| head.mac);
    row.number = last.max(head.number()).saturating_add(1);
    let mac = key.entry(&previous, &row);
    row.mac = Some(mac.to_vec());
    insert(connection, &row).await?;
    write_seal(connection, key, SealName::Head, &Place { number: row.number, at: row.at, mac }).await?;
    Ok(row)
}

impl Store {
    /// Gives the audit log its key, once in a process. The chain begins with it, but only where a program has just made the
    /// database or brought it from before the chain: a head that is gone otherwise is for [`Store::verify_audit`] to find.
    /// Whether that is due is kept beside the database, so that a crash in between changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::DataDirectory`].
    pub async fn use_audit_key(&self, key: [u8; 32]) -> Result<(), StoreError> {
        let key = self.audit_key.get_or_init(|| AuditKey(key));
        let pending = self.dir.join(CHAIN_PENDING);
        if !pending.exists() {
            return Ok(());
        }
        let mut transaction = self.write().await?;
        begin(&mut transaction, key, &self.clock).await?;
        transaction.commit().await?;
        match std::fs::remove_file(&pending) {
            // Else another process was faster.
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::DataDirectory { action: "remove", path: pending, source })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn audit_key(&self) -> Result<&AuditKey, StoreError> {
        self.audit_key.get().ok_or(StoreError::NoAuditKey)
    }
}

/// Begins the chain of a database that has none: what stands in the log already is taken in as it is, and an entry says
/// how much that was.
async fn begin(connection: &mut SqliteConnection, key: &AuditKey, clock: &Clock) -> Result<(), StoreError> {
    if read_seal(connection, key, SealName::Head).await? != Sealed::Missing {
        return Ok(());
    }
    let rows = sqlx::query_as!(
        AuditColumns,
        "SELECT number, id, at, principal, token, source, action, subject, detail, before, fingerprint, outcome, mac
         FROM audit ORDER BY number"
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut head = Place { number: 0, at: clock.now().0, mac: BEGINNING };
    for row in &rows {
        head = Place { number: row.number, mac: key.entry(&head.mac, row), ..head };
        let mac = head.mac.as_slice();
        sqlx::query!("UPDATE audit SET mac = $2 WHERE number = $1", row.number, mac).execute(&mut *connection).await?;
    }
    write_seal(connection, key, SealName::Head, &head).await?;
    if !rows.is_empty() {
        let entry = AuditEntry {
            source: Some("cli".to_owned()),
            action: "audit.begin".to_owned(),
            subject: "audit".to_owned(),
            detail: serde_json::json!({"adopted": rows.len()}),
            outcome: "ok".to_owned(),
            ..AuditEntry::default()
        };
        append(connection, key, AuditColumns::of(&entry, clock)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn no_two_entries_have_the_same_mac() {
        let key = AuditKey([7; 32]);
        let entry = AuditEntry { action: "a".into(), subject: "bc".into(), ..AuditEntry::default() };
        let row = || AuditColumns::of(&entry, &Clock::manual(Timestamp(1)));
        let base = key.entry(&BEGINNING, &row());
        let shifted = AuditColumns { action: "ab".into(), subject: "c".into(), ..row() };
        let empty = AuditColumns { principal: Some(String::new()), ..row() };
        let swapped = AuditColumns { before: Some("x".into()), ..row() };
        let other = AuditColumns { fingerprint: Some("x".into()), ..row() };
        let moved = AuditColumns { number: 1, ..row() };
        let later = AuditColumns { at: 2, ..row() };
        for changed in [shifted, empty, swapped, other, moved, later] {
            assert_ne!(key.entry(&BEGINNING, &changed), base);
        }
        assert_eq!(key.entry(&BEGINNING, &row()), base);
        assert_ne!(key.entry(&NO_HEAD, &row()), base);
        assert_ne!(AuditKey([8; 32]).entry(&BEGINNING, &row()), base);
    }
}
