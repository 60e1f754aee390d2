//! Which requests of a lasting connection were handed on and have no answer yet.

use std::collections::HashSet;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, NumberOrString};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::watch;

/// The ids of what is in flight.
#[derive(Clone, Debug)]
pub struct Flight(watch::Sender<HashSet<NumberOrString>>);

impl Default for Flight {
    fn default() -> Self {
        Self(watch::channel(HashSet::new()).0)
    }
}

impl Flight {
    /// Takes account of a message that is handed on. A cancelled request gets no answer.
    pub fn hand_on(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                self.0.send_modify(|flight| {
                    flight.insert(request.id.clone());
                });
            }
            ClientJsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.land(id);
                }
            }
            _ => {}
        }
    }

    /// Takes account of a message that was sent.
    pub fn sent(&self, message: &TxJsonRpcMessage<RoleServer>) {
        match message {
            TxJsonRpcMessage::<RoleServer>::Response(response) => self.land(&response.id),
            TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.iter().for_each(|id| self.land(id)),
            _ => {}
        }
    }

    fn land(&self, id: &NumberOrString) {
        self.0.send_if_modified(|flight| flight.remove(id));
    }

    /// Whether a request of that id waits for its answer.
    pub fn holds(&self, id: &NumberOrString) -> bool {
        self.0.borrow().contains(id)
    }

    /// How many requests wait for their answers.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Waits until everything is answered, or nobody keeps account any more.
    pub fn landed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut flight = self.0.subscribe();
        async move { drop(flight.wait_for(HashSet::is_empty).await) }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::{Value, json};

    use super::*;

    fn heard(value: Value) -> RxJsonRpcMessage<RoleServer> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_answered_or_cancelled_has_landed() {
        let flight = Flight::default();
        for id in [json!(1), json!("1")] {
            flight.hand_on(&heard(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
        }
        assert!((flight.count(), flight.holds(&NumberOrString::Number(1))) == (2, true));
        assert!(flight.landed().now_or_never().is_none());
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        flight.sent(&serde_json::from_value(answer).unwrap());
        assert!(!flight.holds(&NumberOrString::Number(1)));
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}});
        flight.hand_on(&heard(cancelled));
        assert!(flight.landed().now_or_never().is_some());
    }

    #[test]
    fn nobody_waits_for_an_account_that_is_given_up() {
        let flight = Flight::default();
        flight.hand_on(&heard(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})));
        let landed = flight.landed();
        drop(flight);
        assert!(landed.now_or_never().is_some());
    }
}
