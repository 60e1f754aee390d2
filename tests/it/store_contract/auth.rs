//! Tokens, sign-in links and sessions, on a real store.

use std::time::Duration;

use omniforge::auth::{Auth, AuthError, Lifetime, TokenRequest};
use omniforge::model::{Caller, Scope, Scopes};
use omniforge::store::{Store, Token};
use sqlx::Row;

use super::Bench;

/// What the hashes of credentials are keyed with.
const KEY: [u8; 32] = [7; 32];
const HOUR: Duration = Duration::from_secs(3600);

fn request(bench: &Bench, lifetime: Lifetime) -> TokenRequest {
    TokenRequest {
        principal: bench.owner.clone(),
        name: "laptop".to_owned(),
        scopes: Scopes::of(&[Scope::Call, Scope::Author]),
        expires_at: Some(bench.clock.later(HOUR)),
        lifetime,
        toolset: None,
    }
}

fn by(auth: &Auth) -> Caller {
    auth.owner_caller(Scopes::of(&Scope::ALL))
}

async fn start() -> (Bench, Auth) {
    let bench = Bench::new().await;
    let auth = Auth::new(bench.store.clone(), KEY).await.unwrap();
    (bench, auth)
}

#[tokio::test]
async fn the_first_start_makes_owner_and_local() {
    let dir = tempfile::TempDir::new().unwrap();
    let store = Store::open(dir.path(), omniforge::clock::Clock::system()).await.unwrap();
    assert!(Auth::new(store.clone(), KEY).await.unwrap().is_first_start());
    let auth = Auth::new(store.clone(), KEY).await.unwrap();
    assert!(!auth.is_first_start());
    let local = auth.local_caller(Scopes::of(&[Scope::Call]));
    assert_eq!(local.principal_name, "local");
    assert_ne!(local.principal, auth.owner().id);
    assert_eq!(store.list_principals().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_token_lets_its_principal_in_until_it_expires() {
    for lifetime in [Lifetime::Stored, Lifetime::Process] {
        let (bench, auth) = start().await;
        let (token, text) = auth.create_token(&by(&auth), request(&bench, lifetime)).await.unwrap();
        let header = format!("Bearer {text}");
        for _ in 0..2 {
            let caller = auth.authenticate(Some(&header)).await.unwrap();
            assert_eq!((&caller.principal, caller.principal_name.as_str()), (&bench.owner, "owner"));
            assert_eq!((caller.token_id.as_ref(), caller.scopes), (Some(&token.id), token.scopes));
        }
        let used = Token { last_used_at: Some(bench.clock.now()), ..token };
        assert_eq!(auth.list_tokens(Some(&bench.owner)).await.unwrap(), [(used, lifetime)]);
        bench.clock.advance(HOUR);
        assert!(matches!(auth.authenticate(Some(&header)).await, Err(AuthError::Expired)), "also from the cache");
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    for lifetime in [Lifetime::Stored, Lifetime::Process] {
        let (bench, auth) = start().await;
        let (token, text) = auth.create_token(&by(&auth), request(&bench, lifetime)).await.unwrap();
        let header = format!("Bearer {text}");
        auth.authenticate(Some(&header)).await.unwrap();
        assert!(auth.revoke_token(&by(&auth), &token.id).await.unwrap());
        assert!(!auth.revoke_token(&by(&auth), &token.id).await.unwrap());
        let refused = auth.authenticate(Some(&header)).await.unwrap_err();
        assert!(matches!(refused, AuthError::Revoked | AuthError::Invalid), "{refused}");
        assert_eq!(matches!(refused, AuthError::Revoked), lifetime == Lifetime::Stored);
    }
}

#[tokio::test]
async fn a_wrong_secret_and_a_wrong_id_look_the_same() {
    let (bench, auth) = start().await;
    let (token, text) = auth.create_token(&by(&auth), request(&bench, Lifetime::Stored)).await.unwrap();
    let (_, process) = auth.create_token(&by(&auth), request(&bench, Lifetime::Process)).await.unwrap();
    let wrong_secret = format!("Bearer ofk_{}_{}", token.id, "0".repeat(43));
    let wrong_id = format!("Bearer ofk_{}_{}", "0".repeat(16), text.rsplit('_').next().unwrap());
    let wrong_process = format!("Bearer {}x", &process[..process.len() - 1]);
    let mut messages = vec![];
    for header in [wrong_secret, wrong_id, wrong_process] {
        messages.push(auth.authenticate(Some(&header)).await.unwrap_err().to_string());
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(matches!(auth.authenticate(None).await, Err(AuthError::Missing)));
    assert!(matches!(auth.authenticate(Some("Basic b2s6")).await, Err(AuthError::Malformed)));
}

#[tokio::test]
async fn a_revoked_token_that_also_had_the_wrong_secret_tells_nothing() {
    let (bench, auth) = start().await;
    let (token, _) = auth.create_token(&by(&auth), request(&bench, Lifetime::Stored)).await.unwrap();
    auth.revoke_token(&by(&auth), &token.id).await.unwrap();
    let header = format!("Bearer ofk_{}_{}", token.id, "0".repeat(43));
    assert!(matches!(auth.authenticate(Some(&header)).await, Err(AuthError::Invalid)));
}

#[tokio::test]
async fn a_process_token_dies_with_the_process_and_no_secret_is_on_disk() {
    let (bench, auth) = start().await;
    let (_, stored) = auth.create_token(&by(&auth), request(&bench, Lifetime::Stored)).await.unwrap();
    let (_, process) = auth.create_token(&by(&auth), request(&bench, Lifetime::Process)).await.unwrap();
    let code = auth.new_sign_in_link().await.unwrap();
    let session = auth.spend_sign_in_code(&auth.new_sign_in_link().await.unwrap(), None).await.unwrap();
    let next = Auth::new(bench.store.clone(), KEY).await.unwrap();
    next.authenticate(Some(&format!("bearer {stored}"))).await.unwrap();
    assert!(matches!(next.authenticate(Some(&format!("Bearer {process}"))).await, Err(AuthError::Invalid)));
    assert!(next.session(&session).await.unwrap().is_some());

    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut bench.raw().await).await.unwrap();
    let file = std::fs::read(bench.dir.path().join("omniforge.db")).unwrap();
    for secret in [stored.rsplit('_').next().unwrap(), &code, &session] {
        assert!(!file.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[tokio::test]
async fn whoever_writes_the_database_makes_no_credential() {
    let (bench, auth) = start().await;
    let mut raw = bench.raw().await;
    let (token, text) = auth.create_token(&by(&auth), request(&bench, Lifetime::Stored)).await.unwrap();
    for change in [
        "scopes = 'call author approve admin'",
        "expires_at = expires_at + 1",
        "principal = (SELECT id FROM principals WHERE id <> principal LIMIT 1)",
    ] {
        let fresh = Auth::new(bench.store.clone(), KEY).await.unwrap();
        assert!(fresh.authenticate(Some(&format!("Bearer {text}"))).await.is_ok());
        sqlx::query("CREATE TABLE kept AS SELECT * FROM tokens").execute(&mut raw).await.unwrap();
        let changed = sqlx::AssertSqlSafe(format!("UPDATE tokens SET {change} WHERE id = '{}'", token.id));
        assert_eq!(sqlx::query(changed).execute(&mut raw).await.unwrap().rows_affected(), 1, "{change}");
        let fresh = Auth::new(bench.store.clone(), KEY).await.unwrap();
        let refused = fresh.authenticate(Some(&format!("Bearer {text}"))).await;
        assert!(matches!(refused, Err(AuthError::Invalid)), "{change}");
        sqlx::query("DELETE FROM tokens").execute(&mut raw).await.unwrap();
        sqlx::query("INSERT INTO tokens SELECT * FROM kept").execute(&mut raw).await.unwrap();
        sqlx::query("DROP TABLE kept").execute(&mut raw).await.unwrap();
    }
    // A code and a session of one's own making, hashed as anybody can.
    let own = "a".repeat(43);
    let hash = blake3::hash(own.as_bytes());
    for table in [
        "sign_in_links (code_hash, principal, created_at, expires_at) VALUES ($1, $2, 0, 9000000000000)",
        "sessions (id_hash, principal, created_at, last_seen_at) VALUES ($1, $2, 9000000000000, 9000000000000)",
    ] {
        let insert = sqlx::query(sqlx::AssertSqlSafe(format!("INSERT INTO {table}")));
        insert.bind(hash.as_bytes().as_slice()).bind(&bench.owner.0).execute(&mut raw).await.unwrap();
    }
    assert!(auth.session(&own).await.unwrap().is_none());
    assert!(matches!(auth.spend_sign_in_code(&own, None).await, Err(AuthError::BadSignInCode)));
    // Under another key nothing of before counts.
    let other = Auth::new(bench.store.clone(), [8; 32]).await.unwrap();
    assert!(matches!(other.authenticate(Some(&format!("Bearer {text}"))).await, Err(AuthError::Invalid)));
}

#[tokio::test]
async fn useless_tokens_are_not_made() {
    let (bench, auth) = start().await;
    let good = request(&bench, Lifetime::Stored);
    let bad = [
        TokenRequest { scopes: Scopes::default(), ..good.clone() },
        TokenRequest { name: " ".to_owned(), ..good.clone() },
        TokenRequest { expires_at: Some(bench.clock.now()), ..good.clone() },
        TokenRequest { principal: omniforge::model::PrincipalId("nobody".to_owned()), ..good },
    ];
    for request in bad {
        assert!(matches!(auth.create_token(&by(&auth), request).await, Err(AuthError::BadRequest(_))));
    }
}

#[tokio::test]
async fn without_authentication_everybody_is_the_owner_but_nobody_approves() {
    let bench = Bench::new().await;
    let auth = Auth::anonymous(bench.store.clone(), KEY).await.unwrap();
    let caller = auth.authenticate(None).await.unwrap();
    assert_eq!((caller.principal, caller.scopes.to_string().as_str()), (bench.owner.clone(), "call author"));
}

#[tokio::test]
async fn a_sign_in_link_works_once_and_for_15_minutes() {
    let (bench, auth) = start().await;
    let code = auth.new_sign_in_link().await.unwrap();
    let (one, two) = tokio::join!(auth.spend_sign_in_code(&code, None), auth.spend_sign_in_code(&code, None));
    assert!(one.is_ok() != two.is_ok(), "only one of two racing requests gets a session");
    let late = auth.new_sign_in_link().await.unwrap();
    bench.clock.advance(Duration::from_secs(15 * 60));
    assert!(matches!(auth.spend_sign_in_code(&late, None).await, Err(AuthError::BadSignInCode)));
    assert!(matches!(auth.spend_sign_in_code("", None).await, Err(AuthError::BadSignInCode)));
}

#[tokio::test]
async fn a_session_lives_while_it_is_used() {
    let (bench, auth) = start().await;
    let code = auth.new_sign_in_link().await.unwrap();
    let cookie = auth.spend_sign_in_code(&code, None).await.unwrap();
    assert_ne!(cookie, code);
    let session = auth.session(&cookie).await.unwrap().unwrap();
    assert_eq!(
        (session.caller.principal.clone(), session.caller.scopes),
        (bench.owner.clone(), Scopes::of(&Scope::ALL))
    );
    assert!(session.accepts_csrf(&session.csrf) && !session.accepts_csrf("") && session.csrf != cookie);
    for _ in 0..3 {
        bench.clock.advance(11 * HOUR);
        assert!(auth.session(&cookie).await.unwrap().is_some());
    }
    bench.clock.advance(12 * HOUR);
    assert!(auth.session(&cookie).await.unwrap().is_none());
    assert!(auth.session("' OR 1=1 --").await.unwrap().is_none());
    bench.clock.advance(HOUR);
    assert_eq!(auth.forget_expired().await.unwrap(), 1);
    let left = sqlx::query("SELECT count(*) FROM sessions").fetch_one(&mut bench.raw().await).await.unwrap();
    assert_eq!(left.get::<i64, _>(0), 0);
}

#[tokio::test]
async fn signing_out_ends_the_session() {
    let (_bench, auth) = start().await;
    let cookie = auth.spend_sign_in_code(&auth.new_sign_in_link().await.unwrap(), None).await.unwrap();
    assert!(auth.sign_out(&cookie, None).await.unwrap());
    assert!(auth.session(&cookie).await.unwrap().is_none());
    assert!(!auth.sign_out(&cookie, None).await.unwrap());
}
