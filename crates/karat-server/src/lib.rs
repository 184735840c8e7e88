//! Server evaluation: does an MCP server answer right, validly, reliably, fast and safely?
//!
//! Nothing is here yet; it needs the sessions of karat-mcp.
