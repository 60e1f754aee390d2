//! One binary of tests that go through real files, processes and sockets.

mod store_contract;
