//! Talking MCP: server specs, sessions over stdio and HTTP, isolation, recording and replay.
//!
//! Nothing is here yet; the evaluations that drive live servers bring it.
