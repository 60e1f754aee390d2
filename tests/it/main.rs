//! Tests through the real doors: files, processes, sockets.

mod web;
